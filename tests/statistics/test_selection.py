"""Do real coins pick as often as the exact law says?"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.mechanisms.selection import Exponential, MonotoneExponential, MonotoneNoisyMax, NoisyMax
from incrowd.noise.system import SystemCoins
from tests.coins import law_of
from tests.statistics.alarm import FALSE_ALARM, escape, p_value

SCORES = np.array([4, 1, 1, 2])
DRAWS = 4000
KINDS: list[type[Exponential | NoisyMax]] = [Exponential, MonotoneExponential, NoisyMax, MonotoneNoisyMax]


def law(kind: type[Exponential | NoisyMax]) -> dict[int, float]:
    mechanism = kind(Fraction(1))
    chances = law_of(lambda coins: mechanism.release(SCORES, coins), rounds=1)
    total = math.fsum(chances.values())
    return {pick: chance / total for pick, chance in chances.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_candidates_are_picked_as_often_as_computed(kind: type[Exponential | NoisyMax]) -> None:
    mechanism, coins = kind(Fraction(1)), SystemCoins()
    picked = np.array([mechanism.release(SCORES, coins) for _ in range(DRAWS)])
    assert p_value(picked, law(kind)) > FALSE_ALARM


def test_so_many_draws_tell_each_mechanism_from_each_other() -> None:
    laws = [law(kind) for kind in KINDS]
    assert max(escape(one, other, DRAWS) for one, other in itertools.permutations(laws, 2)) < FALSE_ALARM
