"""Rounds release what full-domain generalization releases, or more of it, and every class meets its demands."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Categories, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.tree import TreeHierarchy, tree
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.criteria.closeness import EqualCloseness, OrderedCloseness
from incrowd.criteria.criterion import Criterion, Monotone
from incrowd.criteria.disclosure import DeltaDisclosure
from incrowd.criteria.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from incrowd.criteria.groups import Groups
from incrowd.criteria.likeness import BasicLikeness, EnhancedLikeness
from incrowd.criteria.partition import Partition
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.local_recoding import LocalRecoding
from incrowd.methods.anonymity.search.rounds import WholeTableCriterion
from incrowd.methods.anonymity.shared.demands import Sensitive
from incrowd.methods.shared.microdata import LocallyGeneralized
from incrowd.noise.system import SystemCoins
from tests.plans import steps_json
from tests.tables import Batches

CITY = Column("city", Role.QUASI, hierarchy=tree({"north": ["Oslo", "Bergen"], "south": ["Rome", "Bari"]}))
SEX = Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M"))))
ILL = Column("ill", Role.SENSITIVE, hierarchy=Flat(Categories(("flu", "gout", "none"))))
SCHEMA = Schema((ILL, CITY, SEX))
REGIONS = {"Oslo": "north", "Bergen": "north", "Rome": "south", "Bari": "south"}
LOSSES = {**dict.fromkeys(REGIONS, 0.0), "north": 1 / 3, "south": 1 / 3, "*": 1.0, "F": 0.0, "M": 0.0}
Row = tuple[str, str, str]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["flu", "gout", "none"]),
        st.sampled_from(["Oslo", "Bergen", "Rome", "Bari"]),
        st.sampled_from(["F", "M"]),
    ),
    min_size=1,
    max_size=16,
)


def released(method: LocalRecoding, rows: list[Row], schema: Schema = SCHEMA) -> LocallyGeneralized:
    columns = {
        column.name: pa.array([row[place] for row in rows], pa.string()) for place, column in enumerate(schema.columns)
    }
    return method.release(Table(schema, Batches(pa.table(columns)), LocalEngine()), SystemCoins())


def shown(outcome: LocallyGeneralized) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in outcome.to_arrow().to_pylist()]


def loss(left: list[tuple[Any, ...]], rows: int) -> float:
    return (sum(LOSSES[city] + LOSSES[sex] for _, city, sex in left) + 2.0 * (rows - len(left))) / (2 * rows)


def whole_columns(rows: list[Row], k: int, l: int, allowed: int) -> float | None:  # noqa: E741
    """Try every combination of levels for whole columns and return the least loss, or None."""
    losses = []
    for city, sex in product(range(3), range(2)):
        labels = [(row[0], (row[1], REGIONS[row[1]], "*")[city], (row[2], "*")[sex]) for row in rows]
        classes: dict[tuple[str, str], list[str]] = {}
        for row in labels:
            classes.setdefault(row[1:], []).append(row[0])
        left = [row for row in labels if len(classes[row[1:]]) >= k and len(set(classes[row[1:]])) >= l]
        if len(rows) - len(left) <= allowed and left:
            losses.append(loss(left, len(rows)))
    return min(losses, default=None)


@settings(max_examples=60, deadline=None)
@given(
    ROWS,
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1)]),
    st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(9, 10)]),
)
def test_every_class_meets_the_demands_and_no_more_is_lost_than_with_whole_columns(
    rows: list[Row],
    k: int,
    l: int,  # noqa: E741
    share: Fraction,
    waiting: Fraction,
) -> None:
    left = shown(released(LocalRecoding(k, l=l, suppression=share, left=waiting), rows))
    best = whole_columns(rows, k, l, int(share * len(rows)))
    if best is None:
        assert not left
        return
    classes: dict[tuple[str, str], list[str]] = {}
    for ill, *labels in left:
        classes.setdefault(tuple(labels), []).append(ill)
    assert all(len(ills) >= k and len(set(ills)) >= l for ills in classes.values())
    assert len(rows) - len(left) <= share * len(rows)
    assert loss(left, len(rows)) <= best + 1e-12
    assert Counter(row[0] for row in left) <= Counter(row[0] for row in rows)


@settings(max_examples=30, deadline=None)
@given(ROWS, st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1, 2)]))
def test_closeness_is_to_the_whole_table_in_every_round(rows: list[Row], t: Fraction) -> None:
    left = shown(released(LocalRecoding(1, t=t), rows))
    assert len(left) == len(rows), "one class of all rows is as close as can be"
    whole = Counter(row[0] for row in rows)
    classes: dict[tuple[str, str], Counter[str]] = {}
    for ill, *labels in left:
        classes.setdefault(tuple(labels), Counter())[ill] += 1
    for ills in classes.values():
        gaps = [abs(Fraction(ills[each], ills.total()) - Fraction(whole[each], whole.total())) for each in whole]
        assert sum(gaps) / 2 <= t


def test_few_rare_rows_do_not_coarsen_all() -> None:
    rows: list[Row] = [("flu", "Oslo", "F")] * 5 + [("flu", "Rome", "M")] * 5 + [("flu", "Bergen", "M")] * 2
    outcome = released(LocalRecoding(2), rows)
    assert set(shown(outcome)) == {("flu", "Oslo", "F"), ("flu", "Rome", "M"), ("flu", "Bergen", "M")}
    rows.append(("flu", "Bari", "F"))
    assert shown(released(LocalRecoding(2, suppression=Fraction(1, 10)), rows)) == shown(outcome)
    everyone = released(LocalRecoding(2), rows)
    assert len(everyone) == 13
    assert Counter(shown(everyone)) == {("flu", "*", "F"): 6, ("flu", "Rome", "M"): 5, ("flu", "Bergen", "M"): 2}
    assert everyone.evidence(SCHEMA.unit, private=False)["levels"]["city"][0] == 0


def test_rows_of_several_rounds_that_look_the_same_are_one_class() -> None:
    """`west` is a city as well as the region above it: one round shows the one, another the other."""
    city = Column("city", Role.QUASI, hierarchy=TreeHierarchy((("west", "west"), ("Brest", "west"), ("Lviv", "east"))))
    rows = [("west",)] * 3 + [("Brest",)] + [("Lviv",)] * 3
    outcome = released(LocalRecoding(1), rows, Schema((city,)))  # type: ignore[arg-type]
    assert len(outcome) == 7
    merged = released(LocalRecoding(2, suppression=Fraction(1, 2)), rows, Schema((city,)))  # type: ignore[arg-type]
    assert merged.sizes.min() >= 2


def test_labels_are_text_of_any_level_and_other_columns_keep_their_type() -> None:
    pay = Column("pay", Role.SENSITIVE, Type.INTEGER, hierarchy=Flat(Numbers(0, 9)))
    rows = [("1", "Oslo", "F")] * 3 + [("2", "Rome", "M"), ("3", "Bari", "M")]
    table = released(LocalRecoding(2), rows, Schema((pay, CITY, SEX))).to_arrow()
    assert pa.types.is_integer(table.schema.field("pay").type)
    assert table.column("city").to_pylist() == ["Oslo"] * 3 + ["south"] * 2


def test_one_round_is_the_generalization_of_whole_columns() -> None:
    rows: list[Row] = [("flu", "Oslo", "F")] * 5 + [("flu", "Bergen", "F")]
    assert set(shown(released(LocalRecoding(2, rounds=1), rows))) == {("flu", "north", "F")}
    assert set(shown(released(LocalRecoding(2, left=Fraction(0)), rows))) == {("flu", "north", "F")}


def test_no_rows_and_rows_that_cannot_be_released_give_an_empty_table() -> None:
    assert len(released(LocalRecoding(2), [])) == 0
    assert len(released(LocalRecoding(3, l=2), [("flu", "Oslo", "F")] * 5)) == 0


def test_what_is_demanded_of_single_columns_holds_too() -> None:
    rows: list[Row] = [(ill, city, "F") for city in REGIONS for ill in ("flu", "gout", "none", "none")]
    left = shown(released(LocalRecoding(2, sensitive={"ill": Sensitive(l=3)}), rows))
    assert all(len({row[0] for row in left if row[1:] == one[1:]}) == 3 for one in left)


WHOLE = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=2, max_size=40)


def groups(rows: list[tuple[int, int]], numbers: list[int]) -> Groups:
    """Return how values fall into the classes with these numbers."""
    cells = sorted(Counter(row for row in rows if row[0] in numbers).items())
    starts = [at for at, ((number, _), _) in enumerate(cells) if at == 0 or cells[at - 1][0][0] != number]
    met = sorted({value for (_, value), _ in cells})
    values = np.array([met.index(value) for (_, value), _ in cells], np.int32)
    return Groups(np.array(starts, np.intp), values, np.array([n for _, n in cells]), pa.array(list(map(str, met))))


@pytest.mark.parametrize(
    "criterion",
    [
        EqualCloseness("ill", "0.3"),
        OrderedCloseness("ill", "0.2"),
        DeltaDisclosure("ill", 1),
        BasicLikeness("ill", "0.5"),
        EnhancedLikeness("ill", "0.5"),
        DistinctDiversity("ill", 2),
    ],
    ids=lambda criterion: type(criterion).__name__,
)
@settings(max_examples=30, deadline=None)
@given(rows=WHOLE, part=st.sets(st.integers(0, 3), min_size=1))
def test_classes_of_a_part_are_judged_as_they_are_in_the_whole(
    criterion: Criterion, rows: list[tuple[int, int]], part: set[int]
) -> None:
    every = sorted({number for number, _ in rows})
    some = [number for number in every if number in part]
    if not some:
        return
    whole, here = groups(rows, every), groups(rows, some)
    table, alone = Partition(whole.sizes, {"ill": whole}), Partition(here.sizes, {"ill": here})
    expected = [bool(met) for number, met in zip(every, criterion.met(table), strict=True) if number in part]
    assert WholeTableCriterion(criterion, table).met(alone).tolist() == expected
    assert WholeTableCriterion(criterion, table).monotone is criterion.monotone


@pytest.mark.parametrize(
    "criterion",
    [
        EqualCloseness("ill", "0.3"),
        OrderedCloseness("ill", "0.2"),
        DeltaDisclosure("ill", 1),
        BasicLikeness("ill", "0.5"),
        EnhancedLikeness("ill", "0.5"),
        DistinctDiversity("ill", 2),
        EntropyDiversity("ill", 2),
        RecursiveDiversity("ill", 2, 2),
    ],
    ids=lambda criterion: type(criterion).__name__,
)
def test_unions_of_classes_that_meet_a_demand_meet_it(criterion: Criterion) -> None:
    assert criterion.monotone >= Monotone.UNIONS


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"k": 0}, "at least 1"),
        ({"k": 2, "rounds": 0}, "at least one round"),
        ({"k": 2, "left": Fraction(1)}, "at least 0, below 1"),
        ({"k": 2, "left": Fraction(-1)}, "at least 0, below 1"),
        ({"k": 2, "suppression": Fraction(2)}, "from 0 to 1"),
        ({"k": 2, "seconds": Fraction(0)}, "positive"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        LocalRecoding(**given)


def test_levels_that_cannot_be_are_refused_before_anything_is_read() -> None:
    with pytest.raises(InvalidParameter, match="is searched for"):
        LocalRecoding(2, levels={"sex": 1}).plan(SCHEMA)
    with pytest.raises(InvalidParameter, match="not a quasi-identifier"):
        LocalRecoding(2, lowest={"ill": 1}).plan(SCHEMA)


def test_claims_and_steps_say_what_rounds_leave_open() -> None:
    method = LocalRecoding(5, l=2, left=Fraction(1, 2), rounds=7)
    assert all(
        any(text.startswith("rounds:") for text in map(str, claim.not_protected))
        for claim in method.plan(SCHEMA).claims
    )
    cut = next(step for step in steps_json(method, SCHEMA) if step["step"] == "cut")
    assert (cut["rounds"], cut["left"]) == (7, "1/2")
    assert cut["until"] == {"k": 5, "l": 2}
    assert method.plan(SCHEMA).settings["rounds"] == 7
