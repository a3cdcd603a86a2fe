"""Whole partitions: noise on every bin of a public partition, drawn one by one only where it can show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.add_noise import AddLaplace
from incrowd.mechanisms.noisy_when_small import ClampedWhenSmall

MOST_BINS = 2**46
"""More bins than this cannot be drawn over."""


@dataclass(frozen=True, eq=False)
class Occupied:
    """The bins of a public partition that hold something: their places in order, their counts, of how many in all."""

    places: NDArray[np.int64]
    counts: NDArray[np.int64]
    size: int

    def __post_init__(self) -> None:
        if self.size > MOST_BINS:
            raise InvalidParameter(
                "a partition of more than 2^46 bins cannot be drawn over: use fewer or coarser bins."
            )

    @property
    def empty(self) -> int:
        """How many bins hold nothing; a private number."""
        return self.size - len(self.places)

    def places_of_empty(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where the empty bins of these ranks lie, counted from 0 among the empty ones.

        Before the j-th occupied bin there are place_j − j empty ones, so the empty bin of rank r lies behind exactly
        the occupied bins with place_j − j ≤ r.

        >>> Occupied(np.array([1, 2]), np.array([5, 5]), 5).places_of_empty(np.array([0, 1, 2])).tolist()
        [0, 3, 4]
        """
        before = self.places - np.arange(len(self.places))
        return np.asarray(ranks + np.searchsorted(before, ranks, side="right"), dtype=np.int64)

    def dense(self) -> NDArray[np.int64]:
        """Return the counts of all bins, the empty ones too.

        >>> Occupied(np.array([1]), np.array([7]), 3).dense().tolist()
        [0, 7, 0]
        """
        counts = np.zeros(self.size, dtype=np.int64)
        counts[self.places] = self.counts
        return counts

    def joined(self, ranks: NDArray[np.int64], counts: NDArray[np.int64]) -> Occupied:
        """Return these bins with some that were empty, in order."""
        places = np.concatenate((self.places, self.places_of_empty(ranks)))
        order = np.argsort(places, kind="stable")
        return Occupied(places[order], np.concatenate((self.counts, counts))[order], self.size)

    def where(self, kept: NDArray[np.bool_]) -> Occupied:
        """Return some of these bins."""
        return Occupied(self.places[kept], self.counts[kept], self.size)


def blended(mechanism: ClampedWhenSmall, bins: Occupied, coins: Coins) -> Occupied:
    """Return the bins that come out above zero when small counts get noise: exactly as if all bins had been drawn.

    Every bin's noise is independent.  The occupied bins are drawn one by one; of the empty ones, all alike, those that
    come out above zero are drawn directly (`ClampedWhenSmall.release_empty`).  Bins left out are zeros, which is
    what a reader takes them for: leaving them out is post-processing.

    >>> from fractions import Fraction
    >>> from incrowd.noise.system import SystemCoins
    >>> bins = Occupied(np.array([3, 10**9]), np.array([50, 60]), 10**10)
    >>> blended(ClampedWhenSmall(5, Fraction(40)), bins, SystemCoins()).counts.tolist()
    [50, 60]
    """
    noisy = Occupied(bins.places, mechanism.release(bins.counts, coins), bins.size)
    whole = noisy.joined(*mechanism.release_empty(bins.empty, coins))
    return whole.where(whole.counts > 0)


def noisy_from(noise: AddLaplace, least: int, bins: Occupied, coins: Coins) -> Occupied:
    """Return the bins whose noisy counts are at least `least` ≥ 1: exactly as if all bins had been drawn.

    The threshold is public and the same for every bin, so leaving out what is below is post-processing.

    >>> from fractions import Fraction
    >>> from incrowd.noise.system import SystemCoins
    >>> bins = Occupied(np.array([7]), np.array([1000]), 10**10)
    >>> noisy_from(AddLaplace(Fraction(1)), 60, bins, SystemCoins()).places.tolist()
    [7]
    """
    noisy = Occupied(bins.places, noise.release(bins.counts, coins), bins.size)
    whole = noisy.joined(*coins.outliers(noise.scale, least, bins.empty))
    return whole.where(whole.counts >= least)
