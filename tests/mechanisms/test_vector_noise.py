"""Cube and Gaussian noise on vectors: the guarantee on all shifts, and what it saves."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.core.loss import Laplace, Pure
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.numbers import WIDEST
from incrowd.mechanisms.vector_noise import AddCube, AddGaussianVector
from incrowd.noise.system import SystemCoins
from tests.coins import ScriptedCoins, cube_radius

COINS = SystemCoins()


@pytest.mark.parametrize("widths", [(1, 1), (1, 3), (2, 5), (3, 3)])
@pytest.mark.parametrize("fine", [1, 2, 8])
@pytest.mark.parametrize("rows", [1, 2])
def test_no_shift_by_so_many_rows_moves_the_radius_further_than_the_rows(
    widths: tuple[int, ...], fine: int, rows: int
) -> None:
    worst = 0
    shifts = list(itertools.product(*(range(-rows * width, rows * width + 1) for width in widths)))
    for point in itertools.product(*(range(-2 * width, 2 * width + 1) for width in widths)):
        for shift in shifts:
            moved = tuple(x + v for x, v in zip(point, shift, strict=True))
            worst = max(worst, cube_radius(moved, widths, fine) - cube_radius(point, widths, fine))
    assert worst == fine * rows  # P[x] ∝ e^(−epsilon · radius / (fine · rows)): the loss is epsilon exactly


def test_rounding_up_costs_something_where_a_row_is_no_whole_number_of_steps() -> None:
    radius = [math.ceil(abs(x) * 1.5) for x in range(4)]
    assert max(after - before for before, after in itertools.pairwise(radius)) > 1.5


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(7), Fraction(100)])
@pytest.mark.parametrize("rows", [1, 5])
def test_the_law_that_is_drawn_has_the_guaranteed_loss(epsilon: Fraction, rows: int) -> None:
    law = AddCube(epsilon, (1, 50), rows).law
    assert law.fine * rows / law.scale == epsilon
    assert law.scale >= 16
    alone = AddCube(epsilon, (50,), rows).law
    assert 50 * rows / alone.scale == epsilon


def test_one_count_is_laplace_noise_and_more_are_pure() -> None:
    assert AddCube(Fraction(1, 2), (1,)).loss == Laplace(Fraction(2))
    assert AddCube(Fraction(1, 2), (1,), rows=3).loss == Pure(Fraction(1, 2))
    assert AddCube(Fraction(1, 2), (1, 1)).loss == Pure(Fraction(1, 2))


@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_noise_is_narrower_than_split_laplace_noise(d: int) -> None:
    """Given a radius J, drawn with weight |B(J)| e^(−J / scale), a coordinate is uniform within ±⌊J / fine⌋."""
    law = AddCube(Fraction(1), (1,) * d).law
    radii = np.arange(60 * law.fine)
    half = radii // law.fine
    weights = (2.0 * half + 1) ** d * np.exp(-radii / float(law.scale))
    spread = math.sqrt(float(weights @ (half * (half + 1) / 3)) / float(weights.sum()))
    assert spread == pytest.approx(math.sqrt((d + 1) * (d + 2) / 3), rel=0.05)
    assert spread < 0.8 * d * math.sqrt(2)


def test_noise_is_added_and_held() -> None:
    vectors = np.array([[1, 2], [WIDEST, -WIDEST]])
    noisy = AddCube(Fraction(1), (1, 1)).release(vectors, ScriptedCoins(cube=[1, -1, 5, -5]))
    assert noisy.tolist() == [[2, 1], [WIDEST, -WIDEST]]
    assert AddCube(Fraction(1), (4,)).release(np.array([[1], [2]]), ScriptedCoins(laplace=[7, 8])).tolist() == [
        [8],
        [10],
    ]
    gaussian = AddGaussianVector(Fraction(2), (1, 3)).release(np.array([[1, 2]]), ScriptedCoins(gaussian=[10, 20]))
    assert gaussian.tolist() == [[11, 22]]


@pytest.mark.parametrize("rows", [1, 4])
def test_gaussian_noise_costs_at_most_rho_and_hardly_less(rows: int) -> None:
    for rho in (Fraction(1, 1000), Fraction(1, 7), Fraction(3)):
        spent = AddGaussianVector.costing(rho, (1, 10, 100), rows).loss.rho
        assert rho * Fraction(999_999, 10**6) < spent <= rho


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        AddCube(Fraction(0), (1,))
    with pytest.raises(InvalidParameter):
        AddCube(Fraction(1), ())
    with pytest.raises(InvalidParameter):
        AddCube(Fraction(1), (0, 1))
    with pytest.raises(InvalidParameter):
        AddGaussianVector(Fraction(1), ())
    for mechanism in (AddCube(Fraction(1), (1, 2)), AddGaussianVector(Fraction(1), (1, 2))):
        with pytest.raises(InvalidParameter):
            mechanism.release(np.zeros((3, 1), dtype=np.int64), COINS)
