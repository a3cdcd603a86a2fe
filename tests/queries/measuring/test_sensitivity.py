"""Through the real engine, on all small neighboring tables: no unit moves statistics further than noise assumes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.core.domain import Type
from incrowd.core.unit import Kind, Unit
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.measuring.groups import collect_groups
from incrowd.queries.measuring.picks import PLACE
from incrowd.queries.query import Aggregate, AggregateKind, Value
from tests.queries.asked import AGE, EVERY, PERSON, ROW, SEX, Visit, asked, terms

ROWS: list[Visit] = [
    (1, "F", "a", 0.0),
    (1, "F", "b", 4.0),
    (1, "M", "a", None),
    (2, "F", "a", 4.0),
    (3, "F", "b", -7.0),
    (3, "F", "b", 1e300),
]
HALF = Value("age", Type.DECIMAL, Fraction(-1), Fraction(1, 3), optional=True)
WIDE = Value("age", Type.INTEGER, Fraction(0), Fraction(2**40), optional=True)
PEOPLE = (Aggregate("people", AggregateKind.PEOPLE),)


def vectors(measured: Measurement) -> dict[frozenset[int], NDArray[np.int64]]:
    """Return the statistics of every table made of some of the rows, all groups one after the other."""
    names = tuple(f"_s{i}" for i in range(len(measured.sums.all)))
    found = {}
    with duckdb.connect() as database:
        database.execute("CREATE TABLE stored (place BIGINT, person BIGINT, sex VARCHAR, ward VARCHAR, age DOUBLE)")
        database.executemany(
            "INSERT INTO stored VALUES (?, ?, ?, ?, ?)", [(1 << i, *row) for i, row in enumerate(ROWS)]
        )
        query = measured.statistics[0].sql("duckdb")
        for mask in range(2 ** len(ROWS)):
            chosen = f"SELECT person, sex, ward, age FROM stored WHERE place & {mask} > 0"
            table = database.sql(f"WITH visits AS ({chosen}) {query}").to_arrow_table()
            rows = frozenset(i for i in range(len(ROWS)) if mask >> i & 1)
            found[rows] = collect_groups(measured.question, table, names).vectors
    return found


def neighbors(table: frozenset[int], unit: Unit) -> set[frozenset[int]]:
    """Return the tables with one unit fewer."""
    if unit.kind is Kind.ROW:
        return {table - {row} for row in table}
    people = {ROWS[row][0] for row in table}
    return {frozenset(row for row in table if ROWS[row][0] != person) for person in people}


@pytest.mark.parametrize("unit", [ROW, PERSON], ids=["row", "person"])
@pytest.mark.parametrize(
    "aggregates",
    [
        EVERY,
        (Aggregate("total", AggregateKind.SUM, AGE),),
        (Aggregate("total", AggregateKind.SUM, HALF), Aggregate("spread", AggregateKind.VARIANCE, HALF)),
        (Aggregate("total", AggregateKind.SUM, WIDE), Aggregate("spread", AggregateKind.VARIANCE, WIDE)),
    ],
    ids=["every", "sum", "decimals", "wide"],
)
def test_no_unit_moves_the_vectors_by_more_than_its_rows(aggregates: tuple[Aggregate, ...], unit: Unit) -> None:
    measured = measurement(asked(aggregates, unit=unit), unit, terms(epsilon=1))
    found, widths = vectors(measured), np.array(measured.sums.widths)
    moved = [
        float(np.abs((found[table] - found[fewer]) / widths).max(axis=1).sum())
        for table in found
        for fewer in neighbors(table, unit)
    ]
    assert max(moved) <= measured.sums.rows
    assert max(moved) >= measured.sums.rows / 2  # the bound is not idle


def test_people_alone_are_bounded_by_the_groups_of_a_person() -> None:
    measured = measurement(asked(PEOPLE, unit=PERSON), PERSON, terms(epsilon=1))
    found = vectors(measured)
    moved = [int(np.abs(found[table] - found[fewer]).sum()) for table in found for fewer in neighbors(table, PERSON)]
    assert max(moved) == measured.sums.rows == 2


def test_people_beside_other_statistics_move_no_further_than_rows() -> None:
    measured = measurement(asked((*PEOPLE, *EVERY[:3]), unit=PERSON), PERSON, terms(epsilon=1))
    found, widths = vectors(measured), np.array(measured.sums.widths)
    assert (
        max(
            float(np.abs((found[table] - found[fewer]) / widths).max(axis=1).sum())
            for table in found
            for fewer in neighbors(table, PERSON)
        )
        <= measured.sums.rows
    )


@pytest.mark.parametrize("at", [Fraction(0), Fraction(1, 2), Fraction(9, 10), Fraction(1)])
@pytest.mark.parametrize("kind", [AggregateKind.QUANTILE, AggregateKind.MODE])
def test_no_row_moves_the_scores_of_candidates_further_than_the_mechanism_assumes(
    kind: AggregateKind, at: Fraction
) -> None:
    aggregate = Aggregate("picked", kind, AGE, at)
    pick = measurement(asked((aggregate,), keys=()), ROW, terms(epsilon=1)).picks[0]
    sensitivity = pick.mechanism.sensitivity
    worst = 0
    for counts in itertools.product(range(3), repeat=5):
        table = np.array([counts])
        for place in range(5):
            more = table.copy()
            more[0, place] += 1
            change = pick._scores(more) - pick._scores(table)
            worst = max(worst, int(np.abs(change).max()))
            assert not pick.monotone or kind is not AggregateKind.MODE or (change >= 0).all()
    assert worst == sensitivity


def test_what_is_no_number_is_held_within_the_width() -> None:
    measured = measurement(asked((Aggregate("total", AggregateKind.SUM, AGE),), keys=()), ROW, terms(epsilon=1))
    with duckdb.connect() as database:
        database.execute("CREATE TABLE visits (person BIGINT, sex VARCHAR, ward VARCHAR, age DOUBLE)")
        for value in (math.nan, math.inf, -math.inf, 1e308):
            database.execute("DELETE FROM visits")
            database.execute("INSERT INTO visits VALUES (1, 'F', 'a', ?)", [value])
            total = database.sql(measured.statistics[0].sql("duckdb")).fetchall()[0][0]
            assert abs(total) <= measured.sums.widths[0]


def test_the_query_of_a_pick_counts_each_present_value_once() -> None:
    measured = measurement(
        asked((Aggregate("m", AggregateKind.QUANTILE, AGE, Fraction(1, 2)),), (SEX,)), ROW, terms(epsilon=1)
    )
    with duckdb.connect() as database:
        database.execute("CREATE TABLE visits (person BIGINT, sex VARCHAR, ward VARCHAR, age DOUBLE)")
        database.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", ROWS)
        table = database.sql(measured.statistics[0].sql("duckdb")).to_arrow_table()
    assert sum(table.column("_number").to_pylist()) == 5
    assert PLACE in table.column_names
