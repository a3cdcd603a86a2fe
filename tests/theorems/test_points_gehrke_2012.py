"""Gehrke, Hay, Lui & Pass 2012, Example 4: points blend everyone with k, and slowly changing means survive."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.domain import Numbers
from incrowd.core.schema import Column
from incrowd.core.table import Table
from incrowd.methods.synthesis.points.method import SyntheticPoints
from incrowd.methods.synthesis.points.steps import LipschitzError, Placement
from tests.coins import SeededCoins, law_of
from tests.methods.synthesis.boxes import Cones, column, in_units, side, table_of
from tests.theorems.crowd_laws import Database, Mechanism, is_crowd_blending
from tests.theorems.exact_laws import Law

HALF = Fraction(1, 2)
ROUNDING = Fraction(1 + 10**9, 10**9)
UNIVERSES = {1: ("0.2", "0.7"), 2: ("0.1", "0.3", "0.8")}
"""One cell with two places in it; two cells, the first with two places."""


def released(method: SyntheticPoints) -> Mechanism:
    """The method as a law on small databases, by every way its coins can come up."""

    @cache
    def run(database: Database) -> Law:
        table = table_of((side("x"),), (np.array(database, np.float64),))

        def points(coins: Coins) -> tuple[float, ...]:
            return tuple(method.release(table, coins).to_arrow()["x"].to_pylist())

        return {outcome: Fraction(chance) for outcome, chance in law_of(points, reach=method.k or 1).items()}

    return run


@pytest.mark.parametrize("cells", UNIVERSES)
@pytest.mark.parametrize("k", [2, 3])
def test_suppressed_cells_blend_everyone_with_exactly_k(cells: int, k: int) -> None:
    mechanism = released(SyntheticPoints(s=cells, k=k))
    assert is_crowd_blending(mechanism, UNIVERSES[cells], 4, k)
    assert not is_crowd_blending(mechanism, UNIVERSES[cells], 4, k + 1)


@pytest.mark.parametrize("cells", UNIVERSES)
@pytest.mark.parametrize("k", [2, 3])
def test_noisy_cells_blend_everyone_with_k_at_the_noise_s_own_ratio_and_no_better(cells: int, k: int) -> None:
    mechanism = released(SyntheticPoints(s=cells, k=k, noise_epsilon=HALF))
    ratio = Fraction(math.exp(0.5))
    assert is_crowd_blending(mechanism, UNIVERSES[cells], 4, k, ratio * ROUNDING)
    assert not is_crowd_blending(mechanism, UNIVERSES[cells], 4, k, ratio * Fraction(99, 100))


def test_uniform_points_blend_as_centers_do() -> None:
    universe, columns = ("0", "1", "3"), (column("x", Numbers(0, 3)),)  # two cells with two whole numbers each

    @cache
    def run(database: Database) -> Law:
        table, method = (
            table_of(columns, ([int(each) for each in database],)),
            SyntheticPoints(s=2, k=2, place="uniform"),
        )
        made = law_of(lambda coins: tuple(sorted(method.release(table, coins).to_arrow()["x"].to_pylist())))
        return {outcome: Fraction(chance) for outcome, chance in made.items()}

    assert is_crowd_blending(run, universe, 3, 2, ROUNDING)
    assert run(("0", "0")) == run(("0", "1")) == run(("1", "1"))
    assert len(run(("0", "0"))) == 3  # 0 0, 0 1, 1 1


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 3),
    st.integers(1, 6),
    st.sampled_from([None, "1/2", "2"]),
    st.sampled_from(list(Placement)),
)
def test_sums_and_means_of_every_slowly_changing_function_are_as_near_as_stated(
    seed: int, d: int, s: int, epsilon: str | None, place: Placement
) -> None:
    noise = None if epsilon is None else Fraction(epsilon)
    method = SyntheticPoints(s=s, k=4, noise_epsilon=noise, place=place.value)
    table, chance = random_table(seed, d)
    made = method.release(table, SeededCoins(seed))
    grid, counted = made.grid, table.engine.count(table.rows, made.grid.cells)
    before = dict(zip(counted.keys.tolist(), counted.counts.tolist(), strict=True))
    after = dict(zip(made.keys.tolist(), made.counts.tolist(), strict=True))
    changed = sum(abs(before.get(key, 0) - after.get(key, 0)) for key in before.keys() | after.keys())
    rows = in_units(grid, table.rows.table)  # type: ignore[attr-defined]
    points = in_units(grid, made.to_arrow())
    reach = float(made.accuracy.reach)
    for number in range(10):
        g = Cones.random(int(chance.integers(2**32)) + number, d)
        apart = abs(g(points).sum() - g(rows).sum())
        assert apart <= len(points) * g.slope * reach + g.bound * changed + 1e-9
        if len(points):
            off = abs(g(points).mean() - g(rows).mean())
            assert off <= g.slope * reach + 2 * g.bound * changed / len(points) + 1e-9


def test_the_bound_is_attained_by_a_point_in_a_corner() -> None:
    table = table_of((side("x"), side("y")), ([0.0] * 5, [0.0] * 5))
    made = SyntheticPoints(s=4, k=5).release(table, SeededCoins(1))
    corner = Cones(np.zeros((1, 2)), np.zeros(1), 1.0, 2.0)
    assert math.isclose(corner(in_units(made.grid, made.to_arrow())).mean(), float(made.accuracy.reach), rel_tol=1e-8)


def test_a_function_that_changes_along_each_side_changes_by_more_across_the_box() -> None:
    """x + y changes by 1 along each side and by √2 for a step of length 1: its L is √2, and the bound is attained."""
    schema = (side("x"), side("y"))
    table = table_of(schema, ([0.0] * 5, [0.0] * 5))
    method = SyntheticPoints(s=5, k=5)
    made = method.release(table, SeededCoins(1))
    off = float(in_units(made.grid, made.to_arrow()).sum(axis=1).mean())
    (claim,) = (each for each in method.plan(table.schema).claims if isinstance(each, LipschitzError))
    assert math.isclose(off, 0.2, rel_tol=1e-8)
    assert float(claim.moves) < 0.15 < off <= math.sqrt(2) * float(claim.moves) * (1 + 1e-8)
    assert "L times the Euclidean distance of two places, sides of the box being 1 long" in claim.source


def random_table(seed: int, d: int) -> tuple[Table, np.random.Generator]:
    """Rows in clumps, in a box with decimal and whole sides."""
    chance = np.random.default_rng(seed)
    rows = int(chance.integers(1, 200))
    clump = chance.integers(0, 3, rows)
    columns, values = list[Column](), list[NDArray[Any]]()
    for axis in range(d):
        spread = np.clip(chance.uniform(0, 1, 3)[clump] + chance.normal(0, 0.1, rows), 0, 1)
        if axis == 1:
            columns.append(column("n", Numbers(5, 17)))
            values.append(np.round(5 + 12 * spread).astype(np.int64))
        else:
            columns.append(side(f"x{axis}", -2, 3))
            values.append(-2 + 5 * spread)
    return table_of(columns, values), chance
