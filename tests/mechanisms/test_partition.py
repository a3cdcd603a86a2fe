"""Noise on every bin of a huge partition, drawn only where it shows: the same law as drawing all of it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.coins import Coins
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.add_noise import AddLaplace
from incrowd.mechanisms.noisy_when_small import ClampedWhenSmall
from incrowd.mechanisms.partition import Occupied, blended, noisy_from
from tests.coins import ScriptedCoins, law_of

HALF = Fraction(1, 2)
BINS = Occupied(np.array([1, 3]), np.array([4, 1]), 4)


@given(st.sets(st.integers(0, 30)), st.integers(31, 40))
def test_empty_bins_are_found_in_order_by_their_rank(occupied: set[int], size: int) -> None:
    bins = Occupied(np.array(sorted(occupied), dtype=np.int64), np.ones(len(occupied), np.int64), size)
    empty = [place for place in range(size) if place not in occupied]
    assert bins.places_of_empty(np.arange(bins.empty)).tolist() == empty


def test_the_sparse_way_has_exactly_the_law_of_the_dense_way() -> None:
    mechanism = ClampedWhenSmall(3, HALF)

    def dense(coins: Coins) -> tuple[int, ...]:
        return tuple(mechanism.release(BINS.dense(), coins).tolist())

    def sparse(coins: Coins) -> tuple[int, ...]:
        found = blended(mechanism, BINS, coins)
        assert (found.counts > 0).all()
        return tuple(found.dense().tolist())

    one, other = law_of(dense, reach=3), law_of(sparse, reach=3)
    assert one.keys() == other.keys()
    assert all(abs(one[outcome] - other[outcome]) < 1e-12 for outcome in one)


def test_noisy_counts_from_a_threshold_on_have_the_law_of_all_noisy_counts_cut_there() -> None:
    noise, bins = AddLaplace(Fraction(1)), Occupied(np.array([1]), np.array([2]), 3)

    def dense(coins: Coins) -> tuple[int, ...]:
        noisy = noise.release(bins.dense(), coins)
        return tuple(np.where(noisy >= 2, noisy, 0).tolist())

    def sparse(coins: Coins) -> tuple[int, ...]:
        return tuple(noisy_from(noise, 2, bins, coins).dense().tolist())

    one, other = law_of(dense, reach=4), law_of(sparse, reach=4)
    assert one.keys() == other.keys()
    assert all(abs(one[outcome] - other[outcome]) < 1e-12 for outcome in one)


def test_places_and_counts_stay_together() -> None:
    found = blended(ClampedWhenSmall(3, HALF), BINS, ScriptedCoins(laplace=[9, 1, 2, -1]))
    assert dict(zip(found.places.tolist(), found.counts.tolist(), strict=True)) == {0: 2, 1: 4, 3: 2}


def test_a_partition_that_cannot_be_drawn_over_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="coarser bins"):
        Occupied(np.empty(0, np.int64), np.empty(0, np.int64), 2**46 + 1)
