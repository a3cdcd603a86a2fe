"""Selection: exact probabilities, the guarantee on all neighbors of tiny universes, and counterexamples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from incrowd.core.coins import Coins
from incrowd.core.loss import Pure
from incrowd.errors import InvalidParameter
from incrowd.mechanisms import selection
from incrowd.mechanisms.selection import Exponential, MonotoneExponential, MonotoneNoisyMax, NoisyMax, select_each
from incrowd.noise.system import SystemCoins
from tests.coins import largest_loss, law_of

ONE = Fraction(1)
GENERAL = (Exponential(ONE), NoisyMax(ONE))
MONOTONE = (MonotoneExponential(ONE), MonotoneNoisyMax(ONE))
Selection = Exponential | NoisyMax
Scores = tuple[int, ...]


@cache
def law(mechanism: Selection, scores: Scores) -> dict[int, float]:
    """Return the exact law of the pick; of a rejection sampler, the law of its first round made whole."""
    chances = law_of(lambda coins: mechanism.release(np.array(scores), coins), rounds=1)
    total = math.fsum(chances.values())
    return {pick: chance / total for pick, chance in chances.items()}


def moves(steps: tuple[int, ...], sizes: int) -> Callable[[Scores], Iterator[Scores]]:
    def neighbors(scores: Scores) -> Iterator[Scores]:
        for step in itertools.product(steps, repeat=sizes):
            yield tuple(a + b for a, b in zip(scores, step, strict=True))

    return neighbors


# Scores (0, 1, 3) of sensitivity 1 at epsilon 1, 25 digits.
HALF_RATE = (0.1402443831660884845221988, 0.2312238976221490672258205, 0.6285317192117624482519807)
FULL_RATE = (0.04201006613406605101806541, 0.1141951993845944789301417, 0.8437947344813394700517929)


@pytest.mark.parametrize(("mechanism", "chances"), [(GENERAL[0], HALF_RATE), (MONOTONE[0], FULL_RATE)])
def test_the_exponential_mechanism_has_its_probabilities(mechanism: Selection, chances: tuple[float, ...]) -> None:
    picked = law(mechanism, (0, 1, 3))
    assert [picked[i] for i in range(3)] == pytest.approx(chances, rel=1e-12)


def test_noisy_max_is_the_maximum_after_exponential_noise() -> None:
    # By inclusion and exclusion over the two rivals of each candidate; x = e^(-1/2), scores 0, 1, 3.
    x = math.exp(-0.5)
    heads = (x**3, x**2, 1.0)
    expected = [
        heads[i] * (1 - sum(heads[j] for j in others) / 2 + math.prod(heads[j] for j in others) / 3)
        for i, others in enumerate(((1, 2), (0, 2), (0, 1)))
    ]
    picked = law(NoisyMax(ONE), (0, 1, 3))
    assert [picked[i] for i in range(3)] == pytest.approx(expected, rel=1e-12)
    assert math.isclose(sum(expected), 1.0)


@pytest.mark.parametrize("mechanism", GENERAL)
def test_epsilon_holds_for_all_neighbors_of_three_candidates(mechanism: Selection) -> None:
    for scores in itertools.product(range(3), repeat=3):
        for neighbor in moves((-1, 0, 1), 3)(scores):
            assert largest_loss(law(mechanism, scores), law(mechanism, neighbor)) <= 1 + 1e-12


@pytest.mark.parametrize("mechanism", MONOTONE)
def test_epsilon_holds_for_all_monotone_neighbors_of_three_candidates(mechanism: Selection) -> None:
    for scores in itertools.product(range(3), repeat=3):
        for neighbor in moves((0, 1), 3)(scores):
            assert largest_loss(law(mechanism, scores), law(mechanism, neighbor)) <= 1 + 1e-12


@pytest.mark.parametrize("mechanism", MONOTONE)
def test_half_the_noise_loses_twice_epsilon_if_one_score_rises_and_another_falls(
    mechanism: Selection,
) -> None:
    assert largest_loss(law(mechanism, (0, 12)), law(mechanism, (1, 11))) > 1.99


@pytest.mark.parametrize("mechanism", GENERAL)
def test_the_full_noise_keeps_epsilon_there_and_no_less_would_do(mechanism: Selection) -> None:
    assert 0.98 < largest_loss(law(mechanism, (0, 12)), law(mechanism, (1, 11))) <= 1 + 1e-12


@pytest.mark.parametrize("mechanism", [*GENERAL, *MONOTONE])
def test_equal_scores_are_equally_likely(mechanism: Selection) -> None:
    picked = law(mechanism, (4, 4, 2, 2))
    assert math.isclose(picked[0], picked[1], rel_tol=1e-12)
    assert math.isclose(picked[2], picked[3], rel_tol=1e-12)


@pytest.mark.parametrize(("exponential", "noisy_max"), [GENERAL, MONOTONE])
def test_noisy_max_picks_the_best_at_least_as_often_as_the_exponential_mechanism(
    exponential: Selection, noisy_max: Selection
) -> None:
    for scores in itertools.product(range(3), repeat=3):
        best = max(range(3), key=lambda i: scores[i])
        assert law(noisy_max, scores)[best] >= law(exponential, scores)[best] - 1e-12


def test_a_score_that_moves_by_more_needs_more_noise() -> None:
    assert NoisyMax(ONE, 5).scale == 5 * NoisyMax(ONE).scale == 10
    assert MonotoneExponential(ONE / 2, 3).scale == 6


def test_the_winners_noisy_score_is_not_free() -> None:
    def winner_with_its_score(counts: Scores) -> dict[tuple[int, int], float]:
        def run(coins: Coins) -> tuple[int, int]:
            noisy = np.array(counts) + coins.laplace(ONE, len(counts))
            return int(noisy.argmax()), int(noisy.max())

        return law_of(run, reach=6)

    with_her, without = winner_with_its_score((1, 1, 1)), winner_with_its_score((0, 0, 0))
    low = (0, -3)
    assert abs(math.log(with_her[low] / without[low])) > 2.99  # three counters, three times epsilon


@pytest.mark.parametrize("mechanism", [*GENERAL, *MONOTONE])
def test_the_guarantee_follows_from_the_parameters(mechanism: Selection) -> None:
    assert replace(mechanism, epsilon=Fraction(1, 3)).loss == Pure(Fraction(1, 3))


@pytest.mark.parametrize("mechanism", [*GENERAL, *MONOTONE])
def test_extreme_scores_do_not_overflow(mechanism: Selection) -> None:
    scores = np.array([-(2**63), 2**63 - 1, 0])
    assert mechanism.release(scores, SystemCoins()) == 1


@pytest.mark.parametrize("mechanism", [*GENERAL, *MONOTONE])
def test_candidates_and_parameters_without_meaning_are_refused(mechanism: Selection) -> None:
    with pytest.raises(InvalidParameter):
        replace(mechanism, epsilon=Fraction(0))
    with pytest.raises(InvalidParameter):
        replace(mechanism, sensitivity=0)
    with pytest.raises(InvalidParameter, match="at least one candidate"):
        mechanism.release(np.empty(0, dtype=np.int64), SystemCoins())
    with pytest.raises(InvalidParameter, match="integers only"):
        mechanism.release(np.array([0.5, 1.0]), SystemCoins())


MECHANISMS = (Exponential(ONE), MonotoneExponential(ONE), NoisyMax(ONE), MonotoneNoisyMax(ONE))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("scores", [(0, 1, 3), (2, 2), (5, 0, 5, 1)])
def test_one_group_has_the_law_of_the_mechanism(
    monkeypatch: pytest.MonkeyPatch, mechanism: Exponential | NoisyMax, scores: tuple[int, ...]
) -> None:
    monkeypatch.setattr(selection, "_TRIES", 1)
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
