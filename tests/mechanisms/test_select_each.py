"""Selection in many groups at once has the law of selection in each."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.errors import InvalidParameter
from incrowd.mechanisms import select_each as module
from incrowd.mechanisms.noisy_max import MonotoneNoisyMax, NoisyMax
from incrowd.mechanisms.select import Exponential, MonotoneExponential
from incrowd.mechanisms.select_each import select_each
from incrowd.noise.system import SystemCoins
from tests.coins import law_of

ONE = Fraction(1)
MECHANISMS = (Exponential(ONE), MonotoneExponential(ONE), NoisyMax(ONE), MonotoneNoisyMax(ONE))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("scores", [(0, 1, 3), (2, 2), (5, 0, 5, 1)])
def test_one_group_has_the_law_of_the_mechanism(
    monkeypatch: pytest.MonkeyPatch, mechanism: Exponential | NoisyMax, scores: tuple[int, ...]
) -> None:
    monkeypatch.setattr(module, "_TRIES", 1)
    each = law_of(lambda coins: int(select_each(mechanism, np.array([scores]), coins)[0]), rounds=1)
    total = math.fsum(each.values())
    gaps = [max(scores) - score for score in scores]
    if isinstance(mechanism, NoisyMax):
        alone = law_of(lambda coins: mechanism.release(np.array(scores), coins))
    else:
        weights = [math.exp(-gap / mechanism.scale) for gap in gaps]
        alone = {place: weight / math.fsum(weights) for place, weight in enumerate(weights)}
    assert {place: chance / total for place, chance in each.items()} == pytest.approx(alone)


def test_every_group_is_picked_for() -> None:
    scores = np.zeros((50, 200), dtype=np.int64)
    best = np.arange(50) * 4
    scores[np.arange(50), best] = 10_000
    for mechanism in MECHANISMS:
        assert (select_each(mechanism, scores, SystemCoins()) == best).all()
    assert select_each(MECHANISMS[0], np.zeros((0, 3), dtype=np.int64), SystemCoins()).size == 0


def test_groups_without_candidates_are_refused() -> None:
    for scores in (np.zeros((2, 0), dtype=np.int64), np.zeros(3, dtype=np.int64)):
        with pytest.raises(InvalidParameter):
            select_each(MECHANISMS[0], scores, SystemCoins())
