"""Hardt & Talwar 2010 and Steinke & Ullman 2016 on integers: the loss, the width, and where the guarantee ends."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.accounting.concentrated import largest_rho
from incrowd.mechanisms.vector_noise import AddCube, AddGaussianVector
from tests.coins import cube_radius


def deviation(epsilon: Fraction, d: int) -> float:
    """Return the standard deviation of a coordinate in units of its width, summed over J."""
    law = AddCube(epsilon, (1000,) * d).law
    radius = np.arange(int(80 * law.scale), dtype=np.float64)
    half = np.floor(radius * 1000 / law.fine)
    weights = (2 * half + 1) ** d * np.exp(-radius / float(law.scale))
    return math.sqrt(float((weights * half * (half + 1) / 3).sum() / weights.sum())) / 1000


@pytest.mark.parametrize(("d", "width"), [(2, 2.00), (3, 2.58), (5, 3.74), (10, 6.63)])
def test_the_noise_has_the_width_of_the_continuous_law(d: int, width: float) -> None:
    assert deviation(Fraction(1), d) == pytest.approx(math.sqrt((d + 1) * (d + 2) / 3), rel=2e-3)
    assert deviation(Fraction(1), d) == pytest.approx(width, abs=0.01)


def test_a_count_and_a_sum_together_cost_the_width_of_root_two_less_than_apart() -> None:
    assert deviation(Fraction(1), 2) / (2 * math.sqrt(2)) == pytest.approx(1 / math.sqrt(2), rel=2e-3)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_two_tables_that_differ_in_one_row_are_told_apart_by_epsilon_and_no_more(epsilon: Fraction) -> None:
    law = AddCube(epsilon, (1, 2)).law
    worst = 0.0
    for point, shift in itertools.product(
        itertools.product(range(-4, 5), range(-8, 9)), itertools.product((-1, 0, 1), (-2, -1, 0, 1, 2))
    ):
        moved = (point[0] - shift[0], point[1] - shift[1])
        change = cube_radius(moved, law.widths, law.fine) - cube_radius(point, law.widths, law.fine)
        worst = max(worst, float(change / law.scale))
    assert worst == pytest.approx(float(epsilon))


def test_a_row_that_moves_a_coordinate_further_than_its_width_breaks_the_guarantee() -> None:
    law = AddCube(Fraction(1), (1, 2)).law
    change = cube_radius((0, 3), law.widths, law.fine) - cube_radius((0, 0), law.widths, law.fine)
    assert float(change / law.scale) == pytest.approx(1.5)


@pytest.mark.parametrize(("d", "cube", "gaussian"), [(5, 7.3, 19.9), (20, 22.0, 39.7), (64, 64.0, 71.0)])
def test_cube_noise_is_narrower_than_gaussian_noise_of_the_same_epsilon_and_a_small_delta(
    d: int, cube: float, gaussian: float
) -> None:
    widths = (1000,) * d
    normal = AddGaussianVector.costing(largest_rho(1, "1e-6"), widths)
    found = [noise.law.combined((0, 0), (0.001, 0.0), 0.05) for noise in (AddCube(Fraction(1), widths), normal)]
    assert found == pytest.approx([cube, gaussian], abs=0.06)
