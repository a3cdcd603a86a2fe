"""The grid: which cell a value is in, how far its point can be, and what has no place."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.days import DayRule
from incrowd.core.domain import Categories, Dates, Domain, Numbers, Type
from incrowd.core.schema import Column, Missing, Outside
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.points.grid import GridAxis, PointGrid
from incrowd.methods.synthesis.points.steps import FINE, Placement
from tests.methods.synthesis.boxes import column, scaled, side

DAY = date(2024, 1, 1)
DOMAINS: list[Domain] = [
    Numbers(0, 99),
    Numbers(-7, 12),
    Numbers("0.1", "0.7", Type.DECIMAL),
    Numbers(-180, 180, Type.DECIMAL),
    Dates(DAY, DAY + timedelta(364)),
]


def values_of(domain: Domain) -> pa.Array:
    """Values all over a domain, both bounds among them."""
    if isinstance(domain, Dates):
        return pa.array([DAY + timedelta(n) for n in range(365)])
    assert isinstance(domain, Numbers)
    low, high = (float(end or 0) for end in domain.bounds)
    if domain.type is Type.INTEGER:
        return pa.array(range(int(low), int(high) + 1))
    return pa.array(np.linspace(low, high, 997))


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("pieces", [1, 2, 3, 7, 10, 500])
def test_no_value_is_further_from_its_center_than_stated(domain: Domain, pieces: int) -> None:
    axis = GridAxis.of(column("x", domain), pieces)
    values = values_of(domain)
    codes = axis.codes(values)
    centers = pa.array(axis.centers[codes])
    centers = centers.cast(pa.int32()).cast(pa.date32()) if isinstance(domain, Dates) else centers
    far = np.abs(scaled(axis, values) - scaled(axis, centers))
    assert far.max() <= float(axis.reach(Placement.CENTERS)) + 1e-12
    assert axis.reach(Placement.CENTERS) <= Fraction(1, 2 * pieces) + Fraction(1, 2 * 365)


@pytest.mark.parametrize("domain", DOMAINS[:4])
@pytest.mark.parametrize("pieces", [1, 2, 3, 7, 10, 500])
def test_numbers_keep_to_the_paper_s_half_a_side(domain: Domain, pieces: int) -> None:
    axis = GridAxis.of(column("x", domain), pieces)
    rounding = Fraction(1, 10**12)
    assert axis.reach(Placement.CENTERS) <= Fraction(1, 2 * pieces) + rounding
    assert axis.reach(Placement.UNIFORM) <= Fraction(1, pieces) + rounding


@settings(max_examples=60)
@given(st.integers(1, 300), st.data())
def test_a_uniform_point_stays_in_its_cell_whatever_its_offset(pieces: int, data: st.DataObject) -> None:
    axis = GridAxis.of(column("x", data.draw(st.sampled_from(DOMAINS))), pieces)
    code = data.draw(st.integers(0, axis.slices.pieces - 1))
    room = int(np.diff(axis.slices.ends)[code]) if axis.slices.whole else FINE
    codes = np.array([code] * 3, np.int32)
    points = axis.inside(codes, np.array([0, room - 1, data.draw(st.integers(0, room - 1))]))
    assert axis.codes(pa.array(points)).tolist() == [code] * 3
    assert points.max() <= axis.slices.ends[-1] - int(axis.slices.whole)


def test_a_grid_of_few_whole_numbers_has_a_cell_for_each() -> None:
    grid = PointGrid.of([column("sex", Numbers(0, 1)), side("x")], 50)
    assert [axis.slices.pieces for axis in grid.axes] == [2, 50]
    assert grid.axes[0].reach(Placement.CENTERS) == grid.axes[0].reach(Placement.UNIFORM) == 0


def test_the_diagonal_is_that_of_the_paper() -> None:
    for d, s in ((2, 10), (3, 7), (10, 4)):
        grid = PointGrid.of([side(f"x{n}") for n in range(d)], s)
        assert math.isclose(grid.reach_squared(Placement.CENTERS), d / (2 * s) ** 2, rel_tol=1e-9)
        assert math.isclose(grid.reach_squared(Placement.UNIFORM), d / s**2, rel_tol=1e-9)
        assert grid.size == s**d


def test_a_grid_can_be_laid_again_from_its_certificate() -> None:
    grid = PointGrid.of([column(f"c{n}", domain) for n, domain in enumerate(DOMAINS)], 6)
    assert PointGrid.laid(grid.sides()).sides() == grid.sides()


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (column("x", Categories(("a", "b"))), "numbers or dates"),
        (column("x", Numbers(0, None)), "needs bounds"),
        (replace(column("day", Dates(DAY, DAY)), days=DayRule(off=("12-25",))), "the declared days of 'day'"),
        (column("x", Numbers(0, 9), outside=Outside.OTHER), "'other' has no place"),
    ],
)
def test_what_has_no_place_on_a_grid_is_refused(told: Column, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        GridAxis.of(told, 4)


def test_missing_values_leave_their_row_out_unless_a_value_is_named() -> None:
    assert GridAxis.of(column("x", Numbers(0, 9)), 2).column.missing is Missing.DROP
    assert GridAxis.of(column("x", Numbers(0, 9), missing="4"), 2).column.fill == "4"
    (stated,) = PointGrid.of([column("x", Numbers(0, 9), missing="4", outside=Outside.DROP)], 2).sides()
    assert (stated.fill, stated.outside) == ("4", Outside.DROP)
