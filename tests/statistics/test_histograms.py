"""Do histograms that are drawn only where they show have the law of those that are drawn bin by bin?"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.mechanisms.add_noise import AddLaplace
from incrowd.mechanisms.partition import ClampedSmallCounts, OccupiedBins, blend, noisy_from
from incrowd.noise.system import SystemCoins
from tests.statistics.alarm import FALSE_ALARM, escape, p_value

SIZE = 200_000
NOTHING = OccupiedBins(np.empty(0, int), np.empty(0, int), SIZE)
EVERY_TENTH = OccupiedBins(np.arange(0, SIZE, 10), np.full(SIZE // 10, 2), SIZE)


def clamped(count: int, k: int, epsilon: float) -> dict[int, float]:
    a = math.exp(-epsilon)
    inner = {z: (1 - a) / (1 + a) * a ** abs(z - count) for z in range(1, k - 1)}
    return {0: a**count / (1 + a), **inner, k - 1: a ** (k - 1 - count) / (1 + a)}


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1), Fraction(3)])
def test_sparse_counts_fit_the_law_of_dense_ones_in_empty_and_in_occupied_bins(epsilon: Fraction) -> None:
    drawn = blend(ClampedSmallCounts(5, epsilon), EVERY_TENTH, SystemCoins()).dense()
    occupied = np.arange(SIZE) % 10 == 0
    empty, two = (clamped(count, 5, float(epsilon)) for count in (0, 2))
    assert p_value(drawn[~occupied], empty) > FALSE_ALARM / 3
    assert p_value(drawn[occupied], two) > FALSE_ALARM / 3
    assert p_value(drawn[occupied], empty) < FALSE_ALARM
    assert escape(two, empty, SIZE // 10) < FALSE_ALARM / 3


def test_sparse_and_dense_draws_have_one_law() -> None:
    mechanism, occupied = ClampedSmallCounts(6, Fraction(1, 2)), np.arange(SIZE) % 10 == 0
    sparse = blend(mechanism, EVERY_TENTH, SystemCoins()).dense()
    for drawn in (sparse, mechanism.release(EVERY_TENTH.dense(), SystemCoins())):
        assert p_value(drawn[occupied], clamped(2, 6, 0.5)) > FALSE_ALARM / 4
        assert p_value(drawn[~occupied], clamped(0, 6, 0.5)) > FALSE_ALARM / 4


def test_neighboring_sparse_counts_are_independent() -> None:
    drawn = blend(ClampedSmallCounts(3, Fraction(1)), NOTHING, SystemCoins())
    counts, law = drawn.dense(), clamped(0, 3, 1.0)
    pairs = {3 * one + other: law[one] * law[other] for one in law for other in law}
    assert p_value(3 * counts[:-1:2] + counts[1::2], pairs) > FALSE_ALARM


def test_noisy_counts_from_a_threshold_on_fit_the_tail() -> None:
    a = math.exp(-1 / 2)
    drawn = noisy_from(AddLaplace(Fraction(2)), 3, NOTHING, SystemCoins())
    tail = {z: (1 - a) / (1 + a) * a**z for z in range(3, 60)}
    assert p_value(drawn.dense(), {0: 1 - sum(tail.values()), **tail}) > FALSE_ALARM
