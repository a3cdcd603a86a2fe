"""Do real coins pick as often as the exact law says?"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.mechanisms.noisy_max import MonotoneNoisyMax, NoisyMax
from incrowd.mechanisms.select import Exponential, MonotoneExponential
from incrowd.noise.system import SystemCoins
from tests.coins import law_of
from tests.statistics.alarm import FALSE_ALARM, p_value

SCORES = np.array([3, 0, 2, 3])
DRAWS = 10_000


@pytest.mark.parametrize("kind", [Exponential, MonotoneExponential, NoisyMax, MonotoneNoisyMax])
def test_candidates_are_picked_as_often_as_computed(kind: type[Exponential | NoisyMax]) -> None:
    mechanism = kind(Fraction(1))
    chances = law_of(lambda coins: mechanism.release(SCORES, coins), rounds=1)
    total = math.fsum(chances.values())
    coins = SystemCoins()
    picked = np.array([mechanism.release(SCORES, coins) for _ in range(DRAWS)])
    assert p_value(picked, {pick: chance / total for pick, chance in chances.items()}) > FALSE_ALARM


def test_the_two_mechanisms_can_be_told_apart() -> None:
    mechanism, coins = NoisyMax(Fraction(1)), SystemCoins()
    weights = np.exp(SCORES / 2)
    picked = np.array([mechanism.release(SCORES, coins) for _ in range(DRAWS)])
    assert p_value(picked, dict(enumerate(weights / weights.sum()))) < FALSE_ALARM
