"""Sets of questions over real rows: what they count, what one unit moves, what noise does to them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from incrowd.accounting import accountant
from incrowd.core.coins import Coins
from incrowd.core.domain import Categories, Dates, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Missing, Outside, Role, Schema
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.engines.readers.sources import open_source
from incrowd.engines.sql.duckdb import collect_over, warehouse
from incrowd.engines.sql.engine import StoredTable
from incrowd.queries.batch import Batch, batch
from incrowd.queries.language.tables import ready_rows
from incrowd.queries.language.understanding import understand
from incrowd.queries.query import Catalog, QueryTerms, Relation
from incrowd.queries.steps.workload import AnswerSet
from incrowd.queries.workloads import domain, planning
from incrowd.queries.workloads.atoms import Blocks
from incrowd.queries.workloads.domain import Domain, counting
from incrowd.queries.workloads.marginals import KeyTables
from incrowd.queries.workloads.planning import set_again
from incrowd.queries.workloads.query_set import CountWorkload
from tests.coins import ScriptedCoins
from tests.queries.language.hospital import CATALOG as HOSPITAL
from tests.queries.workloads.dense import least_squares, marginal_matrix

COLUMNS = (
    Column("sex", hierarchy=Flat(Categories(("F", "M")))),
    Column("work", hierarchy=Flat(Categories(("none", "part", "full"))), outside=Outside.DROP, missing=Missing.DROP),
    Column("age", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 9))),
    Column("born", type=Type.DATE, hierarchy=Flat(Dates("2024-01-30", "2024-02-02"))),
    Column("smokes", type=Type.BOOLEAN),
    Column("pay", type=Type.DECIMAL, hierarchy=Flat(Numbers(0, 10, Type.DECIMAL))),
)
PERSON = Unit(Kind.PERSON, column="id", max_rows=2)
BY_KEYS = (
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
    "SELECT work, sex, COUNT(*) AS n FROM people GROUP BY work, sex ORDER BY n DESC LIMIT 3",
    "SELECT smokes, born, COUNT(*) AS n FROM people GROUP BY smokes, born",
    "SELECT COUNT(*) AS n FROM people",
)
RANGES = (
    *(f"SELECT COUNT(*) AS n FROM people WHERE age BETWEEN {low} AND {low + 3}" for low in range(6)),
    "SELECT age // 5 AS half, COUNT(*) AS n FROM people GROUP BY half",
    "SELECT COUNT(*) AS n FROM people WHERE NOT age > 4 OR age IS NULL",
    "SELECT sex, COUNT(*) AS n FROM people WHERE age < 7 GROUP BY sex HAVING COUNT(*) > -1000",
)
OTHERS = (
    "SELECT AVG(age) AS m FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE pay > 3",
    "SELECT COUNT(age) AS n FROM people",
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)",
)


MANY = [f"SELECT {one}, {two}, COUNT(*) AS n FROM people GROUP BY {one}, {two}" for one, two in (
    ("age", "work"), ("age", "born"), ("work", "born"), ("age", "sex"), ("sex", "born"), ("age", "smokes"),
    ("smokes", "born"), ("sex", "smokes"), ("work", "smokes"), ("sex", "work"),
)]  # fmt: skip
"""All pairs of five columns: with a delta, Gaussian noise is narrower."""


def catalog_of(unit: Unit) -> Catalog:
    owner = () if unit.column is None else (Column("id", Role.IDENTIFIER, Type.INTEGER),)
    return Catalog((Relation("people", Schema((*owner, *COLUMNS), unit), "people", ready=True),))


def planned(texts: Sequence[str], unit: Unit = Unit(), delta: Fraction | int = 0) -> Batch:  # noqa: B008 - a value
    catalog = catalog_of(unit)
    questions = [understand(text, catalog) for text in texts]
    return batch(questions, unit, QueryTerms(epsilon=Fraction(1), delta=Fraction(delta)), catalog)


def people(number: int, seed: int = 3) -> list[dict[str, Any]]:
    """Return rows of people, with values that are missing, or that nobody declared."""
    rng = np.random.default_rng(seed)
    days = (date(2024, 1, 30), date(2024, 1, 31), date(2024, 2, 2), date(2023, 5, 5), None)
    values: dict[str, tuple[Any, ...]] = {
        "sex": ("F", "M", "x", None),
        "work": ("none", "part", "full", "full", "odd", None),
        "age": (*range(10), -3, 77, None),
        "born": days,
        "smokes": (True, False, None),
        "pay": (1.0, 5.5, None),
    }
    rows = [{name: each[rng.integers(len(each))] for name, each in values.items()} for _ in range(number)]
    return [{"id": int(rng.integers(number)), **row} for row in rows]


def over(rows: list[dict[str, Any]], unit: Unit, use: Any) -> Any:
    """Return what a function makes of the rows where an engine holds them."""
    (relation,) = catalog_of(unit).relations
    types = {Type.INTEGER: pa.int64(), Type.DATE: pa.date32(), Type.BOOLEAN: pa.bool_(), Type.DECIMAL: pa.float64()}
    fields = [(each.name, types.get(each.type, pa.string())) for each in relation.schema.columns]
    source = open_source(pa.Table.from_pylist(rows, schema=pa.schema(fields)))
    with warehouse({"people": StoredTable(source, relation.schema, ready=ready_rows(relation))}) as asked:
        return use(asked)


class Silent(ScriptedCoins):
    """Coins whose noise is always zero."""

    def _next(self, name: str, size: int) -> NDArray[np.int64]:
        return np.zeros(size, dtype=np.int64)


def answers(found: Batch, rows: list[dict[str, Any]], coins: Coins) -> list[list[dict[str, Any]]]:
    told: list[list[dict[str, Any]]] = [
        each.table.to_pylist() for each in over(rows, found.unit, lambda asked: found.draw(asked, coins)).answers
    ]
    return told


@pytest.mark.parametrize("texts", [BY_KEYS, RANGES, (*OTHERS[:2], *BY_KEYS, *OTHERS[2:], *RANGES)])
@pytest.mark.parametrize("unit", [Unit(), PERSON])
def test_without_noise_every_question_has_its_own_answer_in_its_own_place(texts: tuple[str, ...], unit: Unit) -> None:
    found, rows = planned(texts, unit), people(300)
    assert found.workloads
    assert [each.text for each in found.questions] == [understand(text, catalog_of(unit)).text for text in texts]
    alone = Batch(tuple(planned([text], unit).measurements[0] for text in texts), unit, Fraction(0))
    for mine, other in zip(answers(found, rows, Silent()), answers(alone, rows, Silent()), strict=True):
        assert [row.keys() for row in mine] == [row.keys() for row in other]
        for left, right in zip(mine, other, strict=True):
            assert left == pytest.approx(right, abs=1e-9)


def test_what_cannot_be_counted_together_is_measured_alone() -> None:
    found = planned((*OTHERS, *RANGES))
    assert [each.places for each in found.workloads] == [tuple(range(len(OTHERS), len(OTHERS) + len(RANGES)))]
    assert len(found.measurements) == len(OTHERS)
    assert not planned(OTHERS).workloads
    assert not planned(RANGES[:1]).workloads


def _counts(shared: CountWorkload, asked: Any) -> list[NDArray[np.int64]]:
    return shared.counts(asked.collect_together(shared.statistics))


@pytest.mark.parametrize("texts", [BY_KEYS, RANGES])
def test_no_unit_moves_a_table_further_than_its_noise_is_made_for(texts: tuple[str, ...]) -> None:
    (shared,) = planned(texts, PERSON).workloads
    reach = [part.measurement.sums.rows for part in shared.parts]
    assert reach == [2] * len(shared.parts)
    base = people(4, 1)
    cells = [("F", 0), (None, 4), ("M", 77)]
    furthest = 0
    before = over(base, PERSON, lambda asked: _counts(shared, asked))
    for one, two in itertools.combinations_with_replacement(cells, 2):
        pair = [{**base[0], "id": 99, "work": "full", "sex": sex, "age": age} for sex, age in (one, two)]
        for own in (pair, [*pair, pair[0]]):
            after = over(base + own, PERSON, lambda asked: _counts(shared, asked))
            found = [int(np.abs(new - old).sum()) for old, new in zip(before, after, strict=True)]
            assert max(found) <= 2
            furthest = max(furthest, *found)
    assert furthest == 2, "the bound is met"


JOINED = "FROM visits JOIN wards ON visits.ward = wards.ward"


def test_joined_rows_are_counted_by_their_keys_for_all_rows_of_a_person() -> None:
    texts = [f"SELECT floor, COUNT(*) AS n {JOINED} GROUP BY floor", f"SELECT COUNT(*) AS n {JOINED}"]
    paid, unit = QueryTerms(epsilon=Fraction(1)), HOSPITAL["visits"].unit
    (shared,) = batch([understand(text, HOSPITAL) for text in texts], unit, paid, HOSPITAL).workloads
    assert [part.measurement.sums.rows for part in shared.parts] == [2] * len(shared.parts)
    assert isinstance(shared.over, KeyTables)
    again = [counting(each.question, unit, HOSPITAL) for each in shared.questions]
    told = shared.steps[0]
    assert isinstance(told, AnswerSet)
    assert set_again(told, [each for each in again if each], unit, HOSPITAL).steps == shared.steps
    assert "by t2.floor" in shared.words


def test_people_are_counted_like_rows_only_where_each_has_one() -> None:
    texts = [f"SELECT COUNT(DISTINCT id) AS n FROM people WHERE age < {age}" for age in range(1, 8)]
    (shared,) = planned(texts, replace(PERSON, max_rows=1)).workloads
    assert len(shared.questions) == len(texts)
    assert not planned(texts, PERSON).workloads


def test_questions_can_be_measured_themselves() -> None:
    texts = ("SELECT COUNT(*) AS n FROM people WHERE age < 7", "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex")
    (shared,) = planned(texts).workloads
    first = shared.parts[0]
    own = replace(shared, parts=tuple(replace(first, blocks=Blocks(questions=(place,))) for place in (0, 1)))
    assert "1 group of 1 query of the set; 4 groups of 1 query of the set; atoms are the" in own.words
    matrices, asked = _matrices(own)
    assert np.array_equal(np.concatenate(matrices), asked)
    told = own.steps[0]
    assert isinstance(told, AnswerSet)
    again = set_again(told, shared.questions, Unit(), catalog_of(Unit()))
    assert again.steps == own.steps


def test_a_unit_that_is_replaced_counts_twice() -> None:
    (added,), (replaced,) = (
        planned(BY_KEYS, Unit(adjacency=adjacency)).workloads for adjacency in (Adjacency.ADD_REMOVE, Adjacency.REPLACE)
    )
    pairs = zip(added.parts, replaced.parts, strict=True)
    assert all(2 * one.deviation == pytest.approx(two.deviation) for one, two in pairs)


@pytest.mark.parametrize(("texts", "delta"), [(BY_KEYS, 0), (RANGES, 0), (RANGES * 1, Fraction(1, 10**6))])
def test_answers_are_truths_and_the_least_squares_of_the_noise(texts: tuple[str, ...], delta: Fraction | int) -> None:
    (shared,) = planned(texts, delta=delta).workloads
    rng = np.random.default_rng(9)
    rows = people(120)
    counts = over(rows, Unit(), lambda asked: _counts(shared, asked))
    noise = [rng.integers(-9, 9, len(each)) for each in counts]
    noisy = shared.fit.answers([each + some for each, some in zip(counts, noise, strict=True)])
    true = shared.fit.answers(counts)
    matrices, asked = _matrices(shared)
    factors, variances = least_squares(asked, matrices, [part.deviation**-2 for part in shared.parts])
    off = np.concatenate([(one - two).reshape(-1) for one, two in zip(noisy, true, strict=True)])
    assert np.allclose(off, factors @ np.concatenate(noise), atol=1e-8)
    told = [np.broadcast_to(v, len(q.groups)) for v, q in zip(shared.fit.variances, shared.questions, strict=True)]
    assert np.allclose(np.concatenate(told), variances, rtol=1e-9)


def _matrices(shared: CountWorkload) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """Return what each table counts and what is asked, as matrices over the domain."""
    if isinstance(shared.over, Domain):
        atoms, found = shared.over.atoms, []
        for part in shared.parts:
            blocks = part.blocks or Blocks(1)
            found.append(np.asarray(np.arange(atoms.count(blocks))[:, None] == atoms.blocks(blocks), dtype=np.float64))
        return found, atoms.matrix
    assert isinstance(shared.over, KeyTables)
    keys, sizes = shared.over.keys, shared.over.marginals.sizes
    every = [tuple(keys.index(name) for name in each.names) for each in shared.questions]
    tables = [tuple(keys.index(name) for name in part.table.names) for part in shared.parts]
    parts = [marginal_matrix(sizes, axes) for axes in tables]
    return parts, np.concatenate([marginal_matrix(sizes, axes) for axes in every])


def test_noise_is_drawn_once_for_every_count_and_nothing_else() -> None:
    found = planned(RANGES)
    (shared,) = found.workloads
    assert isinstance(shared.over, Domain)
    number = sum(shared.over.atoms.count(part.blocks or Blocks(1)) for part in shared.parts)
    coins = ScriptedCoins(laplace=[1] * number)
    answers(found, people(50), coins)
    assert coins.used_up


def test_what_is_paid_is_spent_and_never_more() -> None:
    for texts, delta in ((RANGES, 0), ((*BY_KEYS, OTHERS[0]), 0), (MANY, Fraction(1, 1000))):
        guarantee = planned(texts, delta=delta).plan.guarantee
        spent = accountant.charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency)
        assert 0.99 < float(spent.epsilon) <= 1.0
        assert spent.delta == delta


@pytest.mark.parametrize("delta", [0, Fraction(1, 10**6)])
@pytest.mark.parametrize("number", [2, 5, 9])
def test_a_set_is_never_worse_than_equal_shares(number: int, delta: Fraction | int) -> None:
    texts = RANGES[-number:]
    catalog, terms = catalog_of(Unit()), QueryTerms(epsilon=Fraction(1), delta=Fraction(delta))
    questions = [understand(text, catalog) for text in texts]
    together = batch(questions, Unit(), terms, catalog)
    shares = batch(questions, Unit(), terms)
    assert together.squared_error <= shares.squared_error
    assert together.squared_error == pytest.approx(
        sum(each.total for each in together.workloads) + replace(together, workloads=()).squared_error
    )


def test_many_long_conditions_are_run_over_all_cells_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine holds a vector for each node of a tree, and takes its time for each of them."""
    held: list[int] = []

    def measured(tables: Any, query: Any) -> pa.Table:
        held.append(sum(1 for _ in query.walk()))
        return collect_over(tables, query)

    monkeypatch.setattr(domain, "collect_over", measured)
    (whole,) = planned(RANGES).workloads
    assert len(held) == 1
    monkeypatch.setattr(domain, "_NODES", held[0] // 4)
    (apart,) = planned(RANGES).workloads
    assert apart.steps == whole.steps
    assert max(held[1:]) < held[0] / 2
    monkeypatch.setattr(domain, "_MOST_NODES", held[0] // 4)
    held.clear()
    assert not any(isinstance(each.over, Domain) for each in planned(RANGES).workloads)
    assert not held


def test_domains_of_many_sets_of_columns_are_no_more_work_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of conditions about pairs of columns each pair has a domain, as long as these together are not too large."""
    column = Column("a", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 59)), missing=Missing.DROP)
    schema = Schema(tuple(replace(column, name=name) for name in "abc"))
    catalog, paid = Catalog((Relation("t", schema, "t", ready=True),)), QueryTerms(epsilon=Fraction(1))
    pairs = [("a", "b", (3, 9)), ("b", "c", (3, 9)), ("a", "c", (3, 9, 30))]
    texts = [f"SELECT COUNT(*) AS n FROM t WHERE {x} > {k} AND {y} > {k}" for x, y, least in pairs for k in least]
    questions = [understand(text, catalog) for text in texts]
    assert sorted(each.places for each in batch(questions, Unit(), paid, catalog).workloads) == [
        (0, 1),
        (2, 3),
        (4, 5, 6),
    ]
    monkeypatch.setattr(planning, "_MOST_CELLS", 2 * 60 * 60)
    left = batch(questions, Unit(), paid, catalog)
    assert sorted(each.places for each in left.workloads) == [(0, 1), (4, 5, 6)]
    assert [each.text for each in left.questions] == [each.text for each in questions]
