"""The best k candidates, and their counts."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from incrowd.core.coins import Coins
from incrowd.core.loss import Laplace, Pure, Sequence
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.noisy_max import MonotoneNoisyMax, NoisyMax
from incrowd.mechanisms.top_k import MostCommon, TopK
from incrowd.noise.system import SystemCoins
from tests.coins import ScriptedCoins, largest_loss, law_of

ONE = Fraction(1)
Scores = tuple[int, ...]


@cache
def top_two(scores: Scores) -> dict[tuple[int, ...], float]:
    mechanism = TopK(2, MonotoneNoisyMax(ONE / 2))
    return law_of(lambda coins: tuple(mechanism.release(np.array(scores), coins).tolist()))


def test_k_picks_cost_k_times_one() -> None:
    assert TopK(3, NoisyMax(ONE)).loss == Sequence((Pure(ONE),) * 3)
    assert TopK(1, NoisyMax(ONE)).loss == Pure(ONE)


def test_the_promise_holds_for_all_monotone_neighbors_of_three_candidates() -> None:
    for scores in itertools.product(range(3), repeat=3):
        for step in itertools.product((0, 1), repeat=3):
            neighbor = tuple(a + b for a, b in zip(scores, step, strict=True))
            assert largest_loss(top_two(scores), top_two(neighbor)) <= 1 + 1e-12


def test_every_candidate_is_picked_at_most_once() -> None:
    for _ in range(20):
        picked = TopK(5, NoisyMax(ONE)).release(np.zeros(5, dtype=np.int64), SystemCoins())
        assert sorted(picked.tolist()) == [0, 1, 2, 3, 4]


def test_picks_come_in_the_order_in_which_they_were_made() -> None:
    coins = ScriptedCoins(decay=[1, 1, 1, 0, 1], below=[2, 0])
    assert TopK(2, NoisyMax(ONE)).release(np.array([0, 5, 9]), coins).tolist() == [2, 1]
    assert coins.used_up


def test_more_candidates_than_there_are_cannot_be_picked() -> None:
    with pytest.raises(InvalidParameter, match="at most all"):
        TopK(3, NoisyMax(ONE)).release(np.array([1, 2]), SystemCoins())


def test_counts_get_noise_of_their_own() -> None:
    coins = ScriptedCoins(decay=[0, 1, 0, 0, 1], below=[0, 0], laplace=[100, -100])
    chosen, counts = MostCommon(2, ONE, ONE).release(np.array([10, 500, 300]), coins)
    assert chosen.tolist() == [1, 2]
    assert counts.tolist() == [600, 200]


def test_choosing_and_counting_both_cost() -> None:
    loss = MostCommon(2, ONE, ONE / 4).loss
    assert loss == Sequence((Sequence((Pure(ONE / 2),) * 2), Sequence((Laplace(Fraction(8)),) * 2)))


def test_the_promise_of_the_most_common_holds_for_people_who_count_in_all_categories() -> None:
    @cache
    def most_common(counts: Scores) -> dict[tuple[int, int], float]:
        def run(coins: Coins) -> tuple[int, int]:
            chosen, noisy = MostCommon(1, ONE / 2, ONE / 2).release(np.array(counts), coins)
            return int(chosen[0]), int(noisy[0])

        return law_of(run, reach=12)

    for counts in itertools.product(range(3), repeat=3):
        for step in itertools.product((0, 1), repeat=3):
            neighbor = tuple(a + b for a, b in zip(counts, step, strict=True))
            one, other = most_common(counts), most_common(neighbor)
            inner = [out for out in one if abs(out[1]) < 6]
            assert all(abs(math.log(one[out] / other[out])) <= 1 + 1e-12 for out in inner)


@pytest.mark.parametrize(("k", "choosing", "counting"), [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_parameters_without_meaning_are_refused(k: int, choosing: int, counting: int) -> None:
    with pytest.raises(InvalidParameter):
        MostCommon(k, Fraction(choosing), Fraction(counting))
