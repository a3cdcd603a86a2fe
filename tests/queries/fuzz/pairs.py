"""Neighboring databases at random, and what one unit of privacy moves between them; no noise hides anything here."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa

from incrowd.core.domain import Type
from incrowd.core.schema import Schema
from incrowd.core.unit import Adjacency
from incrowd.engines.sql.engine import fields
from incrowd.errors import IncrowdError
from incrowd.noise.system import SystemCoins
from incrowd.queries.combined_measurement import CombinedMeasurement, combined_answer, measure
from incrowd.queries.language.interpretation import interpret
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.query import Catalog, Combination, QueryTerms, Relation
from tests.queries.fuzz.grammar import PATIENTS, question, several
from tests.queries.hostile.judging import moved
from tests.queries.language import hospital

Database = dict[str, list[tuple[Any, ...]]]

_TESTS = hospital.CATALOG["tests"]
CATALOG = Catalog(
    (
        replace(hospital.CATALOG["visits"], dataset="clinic"),
        replace(_TESTS, dataset="clinic"),
        Relation("labs", Schema(_TESTS.schema.columns, hospital.people(max_rows=PATIENTS["labs"])), dataset="labs"),
        *(hospital.CATALOG[name] for name in ("rows", "swapped", "wards", "doctors")),
    )
)
"""A clinic with two tables of one dataset, a laboratory of its own, rows without people, people who are replaced."""
_DATES = (None, date(2024, 1, 1), date(2024, 2, 29), date(2025, 12, 31), date(1900, 1, 1), date.min, date.max)
_PEOPLE = (1, 1, 1, 2, 2, 3, 4, None)
_STRANGER = 9
_BASE = duckdb.connect(config={"threads": 1})


@dataclass(frozen=True)
class Pair:
    """A question with its cap on groups, a database, and one that differs in one unit of a dataset.

    `queries` are what is run: the first gives the rows that take part, the others the statistics.
    """

    sql: str
    max_groups: int | None
    measured: Measurement
    queries: tuple[str, ...]
    here: Database
    there: Database


def pairs(seed: int) -> Iterator[Pair]:
    """Yield pairs without end, of questions that are answered: three of each, over databases of their own."""
    chance = random.Random(seed)
    while True:
        sql, max_groups = question(chance), chance.choice((None, None, 1, 2))
        measured = planned(sql, max_groups, chance)
        if measured is not None:
            queries = queries_of(measured)
            for _ in range(3):
                yield Pair(sql, max_groups, measured, queries, *_neighbors(chance, measured))


@dataclass(frozen=True)
class SeveralPair:
    """A question that is made of several, and a pair of databases for each of its parts."""

    measured: CombinedMeasurement
    parts: tuple[Pair, ...]


def several_pairs(seed: int) -> Iterator[SeveralPair]:
    """Yield pairs without end, of questions that are made of several answers."""
    chance = random.Random(seed)
    while True:
        sql, max_groups = several(chance), chance.choice((None, 1))
        try:
            asked = interpret(sql, CATALOG, max_groups)
        except IncrowdError:
            continue
        if isinstance(asked, Combination):
            unit = next(CATALOG[name].unit for name in asked.parts[0].tables if CATALOG[name].private)
            measured = measure(asked, unit, QueryTerms(epsilon=Fraction(1), delta=Fraction(1, 10**6)))
            assert isinstance(measured, CombinedMeasurement)
            both = _neighbors(chance, measured.measurements[0])
            parts = (Pair(sql, max_groups, each, queries_of(each), *both) for each in measured.measurements)
            yield SeveralPair(measured, tuple(parts))


def several_complaints(pair: SeveralPair) -> list[str]:
    """Return what one unit moves further in some part than was guaranteed, or that the answer changes its shape."""
    found, shapes = [each for part in pair.parts for each in complaints(part)], []
    for database in (pair.parts[0].here, pair.parts[0].there):
        _fill(database)
        answers = [
            part.measured.noisy_answer(
                tuple(_BASE.sql(query).to_arrow_table() for query in part.queries[1:]), SystemCoins()
            )
            for part in pair.parts
        ]
        answer = combined_answer(pair.measured.question, answers)
        shapes.append((answer.table.column_names, answer.table.num_rows))
    known = all(part.measured.question.public_keys for part in pair.parts)
    return [*found, "the answer is of another shape"] if known and shapes[0] != shapes[1] else found


def queries_of(measured: Measurement) -> tuple[str, ...]:
    """Return the rows that take part, and the statistics of them, as SQL."""
    return tuple(each.sql("duckdb") for each in (measured.question.rows, *measured.statistics))


def planned(sql: str, max_groups: int | None, chance: random.Random) -> Measurement | None:
    """Return how a question is answered, or None where it is refused; any other error is a fault."""
    try:
        understood = understand(sql, CATALOG, max_groups)
        unit = next(CATALOG[name].unit for name in understood.tables if CATALOG[name].private)
        return measurement(understood, unit, _terms(chance, known=understood.public_keys))
    except IncrowdError:
        return None


def complaints(pair: Pair) -> list[str]:
    """Return what one unit moves further than was guaranteed, or that something fails; nothing, if all is well."""
    collected = []
    for database in (pair.here, pair.there):
        _fill(database)
        taking_part, *tables = (_asked(query).to_arrow_table() for query in pair.queries)
        answer = pair.measured.answer(tuple(tables), SystemCoins())
        collected.append((taking_part, tables, [str(each.type) for each in answer.table.schema]))
    (rows, sums, shape), (other_rows, other_sums, other_shape) = collected
    found = [*moved(pair.measured, sums, other_sums), *_reached(pair.measured, rows, other_rows)]
    return [*found, "the answer is of another shape"] if shape != other_shape and all(map(len, sums)) else found


@lru_cache(maxsize=64)
def _asked(query: str) -> duckdb.DuckDBPyRelation:
    """Return a query that was read once, and is run each time its rows are taken."""
    return _BASE.sql(query)


def _reached(measured: Measurement, one: pa.Table, other: pa.Table) -> Iterator[str]:
    """Hold the rows that take part, and the groups they lie in, against what one unit may reach."""
    reach, names = measured.question.contribution, [key.name for key in measured.question.keys]
    whole, fewer = (Counter(map(repr, _zeros(table))) for table in (one, other))
    if (whole - fewer).total() + (fewer - whole).total() > reach.rows:
        yield "one unit changed more rows than it may take part with"
    groups = [
        Counter((row[PERSON], *(row[name] for name in names)) for row in _people(table)) for table in (one, other)
    ]
    touched = {key[1:] for key in (groups[0] - groups[1]) + (groups[1] - groups[0])}
    if len(touched) > max(reach.groups, 0) and measured.question.keys:
        yield "one unit lies in more groups than it may"


PERSON = "_person"


def _people(table: pa.Table) -> list[dict[str, Any]]:
    return [{PERSON: None, **row} for row in _zeros(table)]


def _zeros(table: pa.Table) -> Iterable[dict[str, Any]]:
    """Return rows in which a zero has no sign: which of two equal numbers is kept makes no difference."""
    return [{n: v + 0.0 if isinstance(v, float) else v for n, v in row.items()} for row in table.to_pylist()]


def _terms(chance: random.Random, *, known: bool) -> QueryTerms:
    delta = Fraction(1, 10**6) if not known or chance.random() < 0.2 else Fraction(0)
    if chance.random() < 0.2:
        return QueryTerms(rho=Fraction(1, 10), delta=delta)
    return QueryTerms(epsilon=Fraction(1), delta=delta)


def _neighbors(chance: random.Random, measured: Measurement) -> tuple[Database, Database]:
    """Return a database, and the same without one unit of one dataset, or with another in its place."""
    here = {name: _rows(chance, name, chance.randrange(13)) for name in PATIENTS}
    dataset = chance.choice(measured.question.datasets)
    tables = [each.name for each in CATALOG.relations if each.dataset == dataset]
    unit = CATALOG[tables[0]].unit
    if unit.column is None:
        (name,), there = tables, dict(here)
        place = chance.randrange(len(here[name]) + 1)
        return here, there | {name: here[name][:place] + here[name][place + 1 :]}
    one = chance.choice((1, 2, 3, 4))
    there = here | {name: [row for row in here[name] if row[0] != one] for name in tables}
    if unit.adjacency is Adjacency.REPLACE:
        other = chance.choice((one, _STRANGER))
        there |= {name: [*there[name], *_rows(chance, name, chance.randrange(5), (other,))] for name in tables}
    return here, there


def _rows(
    chance: random.Random, name: str, many: int, people: tuple[int | None, ...] = _PEOPLE
) -> list[tuple[Any, ...]]:
    """Return rows with bad values among plain ones; some are there twice."""
    columns = CATALOG[name].schema.columns
    rows = [
        tuple(chance.choice(people) if column.name == "patient" else _value(chance, column.type) for column in columns)
        for _ in range(many)
    ]
    return rows + [chance.choice(rows) for _ in range(many // 3)] if people is _PEOPLE else rows


def _value(chance: random.Random, kind: Type) -> Any:
    values = _DATES if kind is Type.DATE else hospital.WORST[kind]
    found = chance.choice(values if chance.random() < 0.4 else values[1:4])
    return float(found) if kind is Type.DECIMAL and found is not None else found


def _fill(database: Database) -> None:
    """Let all tables hold exactly these rows."""
    for relation in CATALOG.relations:
        schema = fields(relation.schema.columns)
        rows = database.get(relation.name, hospital.PUBLIC.get(relation.name, ()))
        columns = list(zip(*rows, strict=True)) or [()] * len(schema)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
        _BASE.register(relation.name, pa.Table.from_arrays(arrays, schema=schema))
