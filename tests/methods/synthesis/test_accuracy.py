"""What is known about slowly changing functions: against sums written out, and against draws."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from incrowd.core.domain import Numbers
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.partition import ClampedSmallCounts
from incrowd.methods.synthesis.points.accuracy import (
    MOST_PHANTOMS,
    Accuracy,
    accuracy,
    least_pieces,
    phantoms,
    refusal,
)
from incrowd.methods.synthesis.points.grid import PointGrid
from incrowd.methods.synthesis.points.steps import Placement
from tests.coins import SeededCoins, law_of
from tests.methods.synthesis.boxes import column, side


def square(s: int, d: int = 2) -> PointGrid:
    return PointGrid.of([side(f"x{n}") for n in range(d)], s)


@pytest.mark.parametrize("epsilon", ["1/2", "1", "3"])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_phantoms_are_the_mean_of_the_noise_on_an_empty_cell(k: int, epsilon: str) -> None:
    noisy = ClampedSmallCounts(k, Fraction(epsilon))
    law = law_of(lambda coins: int(noisy.release(np.zeros(1, np.int64), coins)[0]), reach=k)
    mean = math.fsum(count * chance for count, chance in law.items())
    assert math.isclose(phantoms(1, k, Fraction(epsilon)), mean, rel_tol=1e-9)


@pytest.mark.parametrize("epsilon", ["1/2", "1", "3"])
@pytest.mark.parametrize("k", [2, 4])
def test_no_cell_is_expected_to_change_by_more_than_stated(k: int, epsilon: str) -> None:
    noisy = ClampedSmallCounts(k, Fraction(epsilon))
    bound = accuracy(square(1), Placement.CENTERS, k, Fraction(epsilon)).expected
    assert bound is not None
    for count in range(k):
        law = law_of(lambda coins, c=count: int(noisy.release(np.array([c]), coins)[0]), reach=k)  # type: ignore[misc]
        assert math.fsum(abs(out - count) * chance for out, chance in law.items()) <= float(bound)


def test_the_number_of_changed_points_stays_below_its_bound_19_times_in_20() -> None:
    k, epsilon, grid = 6, Fraction(1, 2), square(5)
    stated = accuracy(grid, Placement.CENTERS, k, epsilon)
    assert stated.expected is not None
    assert stated.likely is not None
    coins, counts = SeededCoins(4), np.arange(grid.size) % k
    changed = [int(np.abs(ClampedSmallCounts(k, epsilon).release(counts, coins) - counts).sum()) for _ in range(400)]
    assert np.mean(changed) <= float(stated.expected)
    assert np.mean(np.array(changed) <= float(stated.likely)) >= 0.95


def test_tiny_noise_is_bounded_by_what_cells_can_hold() -> None:
    stated = accuracy(square(4), Placement.CENTERS, 3, Fraction(1, 10**6))
    assert stated.expected == stated.likely == Decimal(2 * 16)


def test_suppression_has_no_public_number_of_lost_points() -> None:
    stated = accuracy(square(4), Placement.CENTERS, 3, None)
    assert stated.likely is None
    assert stated.mean_error(100) is None
    assert list(stated.numbers) == ["points move at most"]


def test_without_points_there_is_no_mean() -> None:
    assert Accuracy(Decimal(1), Decimal(1), Decimal(1)).mean_error(0) is None


@pytest.mark.parametrize("place", Placement)
@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("error", ["1/3", "0.05", "0.0071"])
def test_the_least_s_keeps_the_error_and_one_less_does_not(d: int, error: str, place: Placement) -> None:
    s = least_pieces(square(1, d), place, Fraction(error))
    assert square(s, d).reach_squared(place) <= Fraction(error) ** 2
    assert s == 1 or square(s - 1, d).reach_squared(place) > Fraction(error) ** 2


def test_stated_moves_are_never_below_the_true_ones() -> None:
    for s in range(1, 40):
        grid = square(s, 3)
        stated = accuracy(grid, Placement.UNIFORM, 5, None).reach
        assert Fraction(stated) ** 2 >= grid.reach_squared(Placement.UNIFORM)
        assert float(stated) <= math.sqrt(float(grid.reach_squared(Placement.UNIFORM))) * (1 + 1e-8)


def test_an_error_that_no_grid_reaches_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="pieces"):
        least_pieces(PointGrid.of([column("x", Numbers(0, 10**9))], 1), Placement.CENTERS, Fraction(1, 10**8))


def test_a_huge_grid_with_little_noise_is_refused_with_ways_out_that_work() -> None:
    grid = square(10, 10)
    told = refusal(grid, 20, Fraction(1, 10))
    assert told is not None
    assert "4.25e+10 points would stand for nobody" in told
    epsilon = Fraction(told.split("epsilon of ")[1].split(" ")[0])
    assert refusal(grid, 20, epsilon) is None
    fewer = int(told.split("s of about ")[1].rstrip("."))
    assert phantoms(fewer**10, 20, Fraction(1, 10)) <= MOST_PHANTOMS


def test_more_cells_than_can_be_drawn_over_are_refused_whatever_the_noise() -> None:
    told = refusal(square(100, 10), 20, Fraction(500))
    assert told is not None
    assert "Leave epsilon out" in told
    assert refusal(square(10, 2), 20, Fraction(1, 10)) is None
