"""Noise on every bin of a huge partition, drawn only where it shows: the same law as drawing all of it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core import loss as losses
from incrowd.core.coins import Coins
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.add_noise import AddLaplace
from incrowd.mechanisms.partition import ClampedSmallCounts, NoisySmallCounts, OccupiedBins, blend, noisy_from
from incrowd.noise.system import SystemCoins
from tests.coins import ScriptedCoins, largest_loss, law_of

HALF = Fraction(1, 2)


def clamped_law(counts: tuple[int, ...], k: int) -> dict[tuple[int, ...], float]:
    def run(coins: Coins) -> tuple[int, ...]:
        return tuple(ClampedSmallCounts(k, HALF).release(np.array(counts), coins).tolist())

    return law_of(run, reach=k)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_everyone_in_a_noisy_bin_can_be_left_out_at_epsilon(k: int) -> None:
    for count, other in itertools.product(range(1, k), range(k + 2)):
        loss = largest_loss(clamped_law((count, other), k), clamped_law((count - 1, other), k))
        assert loss <= 0.5 + 1e-12


def test_the_guarantee_is_not_better_than_stated() -> None:
    assert math.isclose(largest_loss(clamped_law((2,), 3), clamped_law((1,), 3)), 0.5, rel_tol=1e-12)


def test_noise_without_clamping_keeps_the_same_guarantee() -> None:
    def law(count: int) -> dict[int, float]:
        return law_of(lambda coins: int(NoisySmallCounts(4, HALF).release(np.array([count]), coins)[0]), reach=30)

    for count in range(1, 4):
        one, other = law(count), law(count - 1)
        assert all(abs(math.log(one[z] / other[z])) <= 0.5 + 1e-12 for z in range(-20, 20))


def test_clamped_noise_has_the_rows_of_the_closed_form() -> None:
    k, a = 5, math.exp(-0.5)
    for count in range(k):
        law = clamped_law((count,), k)
        assert math.isclose(law[(0,)], a**count / (1 + a), rel_tol=1e-12)
        assert math.isclose(law[(k - 1,)], a ** (k - 1 - count) / (1 + a), rel_tol=1e-12)
        for out in range(1, k - 1):
            assert math.isclose(law[(out,)], (1 - a) / (1 + a) * a ** abs(out - count), rel_tol=1e-12)


def test_large_counts_are_exact_whatever_the_noise() -> None:
    coins = ScriptedCoins(laplace=[99, -99, 3])
    assert NoisySmallCounts(5, HALF).release(np.array([5, 80, 4]), coins).tolist() == [5, 80, 7]


def test_empty_bins_get_noise_like_all_others() -> None:
    noisy = NoisySmallCounts(5, HALF).release(np.zeros(3, dtype=np.int64), ScriptedCoins(laplace=[2, -1, 0]))
    assert noisy.tolist() == [2, -1, 0]


def test_leaving_empty_bins_empty_would_betray_whoever_is_alone_in_one() -> None:
    def without_noise_on_empty_bins(count: int) -> dict[int, float]:
        def run(coins: Coins) -> int:
            noisy = int(ClampedSmallCounts(3, HALF).release(np.array([count]), coins)[0])
            return noisy if count else 0

        return law_of(run)

    assert largest_loss(without_noise_on_empty_bins(1), without_noise_on_empty_bins(0)) == math.inf
    assert largest_loss(clamped_law((1,), 3), clamped_law((0,), 3)) <= 0.5 + 1e-12


def test_very_many_empty_bins_have_the_law_of_a_few() -> None:
    def dense(coins: Coins) -> tuple[int, ...]:
        return tuple(ClampedSmallCounts(3, HALF).release(np.zeros(3, dtype=np.int64), coins).tolist())

    def sparse(coins: Coins) -> tuple[int, ...]:
        bins = np.zeros(3, dtype=np.int64)
        where, counts = ClampedSmallCounts(3, HALF).release_empty(3, coins)
        bins[where] = counts
        return tuple(bins.tolist())

    assert law_of(dense, reach=3) == law_of(sparse, reach=3)


def test_with_k_one_no_empty_bin_fills_up() -> None:
    where, counts = ClampedSmallCounts(1, HALF).release_empty(100, SystemCoins())
    assert where.size == counts.size == 0
    assert ClampedSmallCounts(1, HALF).release(np.zeros(100, dtype=np.int64), SystemCoins()).max() == 0


def test_guarantees_follow_from_the_parameters() -> None:
    assert NoisySmallCounts(7, HALF).loss == ClampedSmallCounts(7, HALF).loss == losses.NoisyWhenSmall(7, HALF)


def test_parameters_and_fractions_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        NoisySmallCounts(0, HALF)
    with pytest.raises(InvalidParameter):
        NoisySmallCounts(5, Fraction(0))
    with pytest.raises(InvalidParameter):
        NoisySmallCounts(5, HALF).release(np.array([1.5]), SystemCoins())


BINS = OccupiedBins(np.array([1, 3]), np.array([4, 1]), 4)


@given(st.sets(st.integers(0, 30)), st.integers(31, 40))
def test_empty_bins_are_found_in_order_by_their_rank(occupied: set[int], size: int) -> None:
    bins = OccupiedBins(np.array(sorted(occupied), dtype=np.int64), np.ones(len(occupied), np.int64), size)
    empty = [place for place in range(size) if place not in occupied]
    assert bins.places_of_empty(np.arange(bins.empty)).tolist() == empty


def test_the_sparse_way_has_exactly_the_law_of_the_dense_way() -> None:
    mechanism = ClampedSmallCounts(3, HALF)

    def dense(coins: Coins) -> tuple[int, ...]:
        return tuple(mechanism.release(BINS.dense(), coins).tolist())

    def sparse(coins: Coins) -> tuple[int, ...]:
        found = blend(mechanism, BINS, coins)
        assert (found.counts > 0).all()
        return tuple(found.dense().tolist())

    one, other = law_of(dense, reach=3), law_of(sparse, reach=3)
    assert one.keys() == other.keys()
    assert all(abs(one[outcome] - other[outcome]) < 1e-12 for outcome in one)


def test_noisy_counts_from_a_threshold_on_have_the_law_of_all_noisy_counts_cut_there() -> None:
    noise, bins = AddLaplace(Fraction(1)), OccupiedBins(np.array([1]), np.array([2]), 3)

    def dense(coins: Coins) -> tuple[int, ...]:
        noisy = noise.release(bins.dense(), coins)
        return tuple(np.where(noisy >= 2, noisy, 0).tolist())

    def sparse(coins: Coins) -> tuple[int, ...]:
        return tuple(noisy_from(noise, 2, bins, coins).dense().tolist())

    one, other = law_of(dense, reach=4), law_of(sparse, reach=4)
    assert one.keys() == other.keys()
    assert all(abs(one[outcome] - other[outcome]) < 1e-12 for outcome in one)


def test_places_and_counts_stay_together() -> None:
    found = blend(ClampedSmallCounts(3, HALF), BINS, ScriptedCoins(laplace=[9, 1, 2, -1]))
    assert dict(zip(found.places.tolist(), found.counts.tolist(), strict=True)) == {0: 2, 1: 4, 3: 2}


def test_a_partition_that_cannot_be_drawn_over_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="coarser bins"):
        OccupiedBins(np.empty(0, np.int64), np.empty(0, np.int64), 2**46 + 1)
