"""Grids: whole numbers keep their values, others are near, and all stay within the width."""

from __future__ import annotations

import math
from fractions import Fraction

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter
from incrowd.queries.measuring.statistics import (
    DECIMALS,
    IntegerGrid,
    clamp_number,
    double,
    grid_number,
    grid_of,
    whole_number,
)
from incrowd.queries.query import Value

NUMBERS = st.fractions(-(10**6), 10**6, max_denominator=100)


@given(low=st.integers(-(10**6), 10**6), span=st.integers(1, 10**6), part=st.fractions(0, 1), centered=st.booleans())
def test_whole_numbers_are_kept(low: int, span: int, part: Fraction, centered: bool) -> None:
    grid = IntegerGrid.of(Fraction(low), Fraction(low + span), whole=True, centered=centered)
    steps = (low + round(span * part) - grid.center) / grid.step
    assert steps.denominator == 1
    assert abs(steps) <= grid.width
    assert not centered or grid.width * grid.step == Fraction(span, 2)


@given(low=NUMBERS, span=st.fractions(Fraction(1, 100), 10**6, max_denominator=100), centered=st.booleans())
def test_both_ends_of_decimals_lie_within_the_width(low: Fraction, span: Fraction, centered: bool) -> None:
    grid = IntegerGrid.of(low, low + span, whole=False, centered=centered)
    assert grid.width == DECIMALS
    assert max(abs(end - grid.center) for end in (low, low + span)) == grid.width * grid.step


def test_a_range_of_one_number_has_a_grid() -> None:
    assert IntegerGrid.of(Fraction(7), Fraction(7), whole=True, centered=True).width == 1


def test_ranges_beyond_two_billion_are_coarser() -> None:
    assert IntegerGrid.of(Fraction(0), Fraction(2**40), whole=True, centered=True).width == DECIMALS


def test_values_without_bounds_have_no_grid() -> None:
    with pytest.raises(InvalidParameter, match="CLAMP"):
        grid_of(Value("x", Type.DECIMAL), centered=True)
    with pytest.raises(InvalidParameter, match="low to high"):
        IntegerGrid.of(Fraction(1), Fraction(0), whole=True, centered=True)


def test_the_database_holds_every_double_within_the_width() -> None:
    value = Value("x", Type.DECIMAL, Fraction(-1), Fraction(3))
    grid = grid_of(value, centered=True)
    text = clamp_number(grid_number(value, grid), double(Fraction(grid.width))).sql("duckdb")
    numbers = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, -1.0, 3.0, 3.0000001, 1.0, -1e-9]
    with duckdb.connect() as database:
        database.execute("CREATE TABLE rows (x DOUBLE)")
        database.executemany("INSERT INTO rows VALUES (?)", [[x] for x in numbers])
        found = [row[0] for row in database.sql(f"SELECT {text} FROM rows").fetchall()]
    assert len(found) == len(numbers)
    assert all(abs(z) <= grid.width and z == round(z) for z in found)


RANGES = [(0, 99), (0, 100), (-5, 3), (7, 7), (-7, -7), (0, 1), (-(2**30), 2**30), (2**49 - 9, 2**49), (3, 2**31 - 1)]


@pytest.mark.parametrize("centered", [True, False])
def test_whole_numbers_are_the_same_in_whole_arithmetic(centered: bool) -> None:
    """Each grid, held against doubles: near its ends and its center, where doubles turn coarse, and at the extremes."""
    value, found = Value("x", Type.INTEGER), 0
    with duckdb.connect() as database:
        for low, high in RANGES:
            grid = IntegerGrid.of(Fraction(low), Fraction(high), whole=True, centered=centered)
            whole = whole_number(value, grid)
            found += whole is not None
            if whole is None:
                continue
            near = {at + off for at in (low, high, (low + high) // 2, 0) for off in range(-9, 10)}
            far = {sign * (at + off) for at in (2**31, 2**50, 2**53, 2**62) for off in (-1, 0, 1) for sign in (1, -1)}
            numbers = [None, -(2**63), 1 - 2**63, 2**63 - 1, 2**63 - 2, *sorted(near | far)]
            database.execute("CREATE OR REPLACE TABLE rows AS SELECT UNNEST(?::BIGINT[]) AS x", [numbers])
            doubles = clamp_number(grid_number(value, grid), double(Fraction(grid.width)))
            text = f"SELECT x, {whole.sql('duckdb')} AS z, CAST({doubles.sql('duckdb')} AS BIGINT) FROM rows"
            rows = database.sql(text).fetchall()
            assert len(rows) == len(numbers)
            for x, z, by_doubles in rows:
                exact = None if x is None else max(-grid.width, min(grid.width, (x - grid.center) / grid.step))
                assert z == by_doubles == exact
            assert database.sql(text).types[1] == "BIGINT"
    assert found == (len(RANGES) if centered else len(RANGES) - 2)


@pytest.mark.parametrize(
    ("low", "high"),
    [(2**60, 2**60 + 10), (0, 2**40), (Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 2), Fraction(9, 2))],
)
def test_what_doubles_do_not_hold_exactly_stays_with_them(low: Fraction, high: Fraction) -> None:
    grid = IntegerGrid.of(Fraction(low), Fraction(high), whole=True, centered=True)
    assert whole_number(Value("x", Type.INTEGER), grid) is None
