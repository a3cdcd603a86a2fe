"""Maps of points: what is shown to everybody, and what to the data holder alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from incrowd.core.counts import Counts
from incrowd.core.schema import Schema
from incrowd.methods.synthesis.points.method import PICTURE, SyntheticPoints
from incrowd.methods.synthesis.points.output import Maps, Points, Shades, distance
from incrowd.noise.system import SystemCoins
from tests.methods.synthesis.boxes import Cones, in_units, side, table_of
from tests.statements import statement_of


def made(d: int = 2, s: int = 4, rows: int = 60) -> tuple[Points, Counts]:
    columns = tuple(side(f"x{n}") for n in range(d))
    table = table_of(columns, np.random.default_rng(5).beta(2, 5, (d, rows)))
    points = SyntheticPoints(s=s, k=2).release(table, SystemCoins())
    return points, table.engine.count(table.rows, points.grid.cells)


def drawn(points: Points) -> Markup | None:
    columns = tuple(axis.column for axis in points.grid.axes)
    schema = Schema(tuple(side(column.name) for column in columns))
    return PICTURE.draw(statement_of(SyntheticPoints(s=2, k=2).plan(schema), schema), points)


@pytest.mark.parametrize(("d", "s"), [(1, 4), (2, 4), (2, 200), (4, 3)])
def test_a_map_shows_every_point_once(d: int, s: int) -> None:
    points, _ = made(d, s, 2000)
    shades = Shades.of(points.grid.axes, points.codes(), points.counts)
    assert shades.counts.sum() == len(points)
    assert max(shades.counts.shape) <= 64
    shown = str(drawn(points))
    assert f"{len(points):,} points" in shown
    assert 'role="img"' in shown
    assert ("are added up" in shown) == (d > 2)
    assert "<script" not in shown


def test_a_shade_lies_where_its_points_do() -> None:
    table = table_of((side("x"), side("y")), ([0.9] * 3, [0.1] * 3))
    points = SyntheticPoints(s=2, k=2).release(table, SystemCoins())
    assert Shades.of(points.grid.axes, points.codes(), points.counts).counts.tolist() == [[0, 3], [0, 0]]


def test_without_points_there_is_no_map() -> None:
    table = table_of((side("x"),), ([0.5],))
    assert drawn(SyntheticPoints(s=2, k=2).release(table, SystemCoins())) is None


def test_before_and_after_stand_beside_each_other() -> None:
    points, original = made()
    page = str(Maps(points).section(original))
    assert page.count('role="img"') == 2
    assert "Nothing here may leave" in page
    assert f"{original.total:,}" in page


@given(st.lists(st.integers(0, 5), min_size=6, max_size=6), st.lists(st.integers(0, 5), min_size=6, max_size=6))
def test_the_distance_is_half_the_sum_of_differences(one: list[int], other: list[int]) -> None:
    before, after = np.array(one), np.array(other)
    keys = [np.flatnonzero(each) for each in (before, after)]
    found = distance(keys[0], before[keys[0]], keys[1], after[keys[1]])
    if not before.any() or not after.any():
        assert found == (0.0 if before.any() == after.any() else 1.0)
    else:
        shares = before / before.sum() - after / after.sum()
        assert np.isclose(found, np.abs(shares).sum() / 2)


@given(st.integers(0, 2**32))
def test_the_realized_bound_holds_for_slowly_changing_functions(seed: int) -> None:
    columns = (side("x"), side("y"))
    table = table_of(columns, np.random.default_rng(seed).beta(2, 5, (2, 60)))
    points = SyntheticPoints(s=3, k=4).release(table, SystemCoins())
    if not len(points):
        return
    original = table.engine.count(table.rows, points.grid.cells)
    apart = distance(original.keys, original.counts, points.keys, points.counts)
    g = Cones.random(seed, 2)
    rows = in_units(points.grid, table.rows.table)  # type: ignore[attr-defined]
    off = abs(g(in_units(points.grid, points.to_arrow())).mean() - g(rows).mean())
    assert off <= g.slope * float(points.accuracy.reach) + 2 * g.bound * apart + 1e-9
