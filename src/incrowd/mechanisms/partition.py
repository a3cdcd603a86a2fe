"""Partitions: noise on small counts and on every bin of a public partition, drawn only where it can show."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core import loss as losses
from incrowd.core.coins import Coins
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.add_noise import AddLaplace
from incrowd.mechanisms.numbers import counting_number, integers, plus, positive


@dataclass(frozen=True)
class NoisySmallCounts:
    """Counts below k get integer Laplace noise of scale 1/epsilon; counts of k or more are exact.

    Guarantee: (k, epsilon)-crowd-blending.  In a bin of k or more, everyone can be exchanged for any of the others
    without any change.  In a bin of j < k, leaving someone out moves a noisy count from j to j − 1, and integer Laplace
    noise makes these two e^epsilon-close; no condition ties the noisy k − 1 to the exact k, so it does not matter that
    one can see which counts are noisy.
    Assumes: the bins were fixed without looking at the rows, each row counts in one bin, once, and the counts of ALL
    bins are given, with those that are zero: a bin that is only listed when someone is in it betrays that person.
    Source: Gehrke, Hay, Lui and Pass 2012, Example 2.

    >>> NoisySmallCounts(5, Fraction(1, 2)).loss
    NoisyWhenSmall(k=5, epsilon=Fraction(1, 2))
    """

    k: int
    epsilon: Fraction
    because: ClassVar[str] = "Gehrke et al. 2012, Example 2, with integer Laplace noise"

    def __post_init__(self) -> None:
        counting_number(self.k, "k")
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))

    @property
    def loss(self) -> losses.NoisyWhenSmall:
        return losses.NoisyWhenSmall(self.k, self.epsilon)

    def release(self, counts: NDArray[Any], coins: Coins) -> NDArray[np.int64]:
        """Return the counts of all bins; noisy ones may be negative, or k and more.

        >>> from incrowd.noise.system import SystemCoins
        >>> NoisySmallCounts(5, Fraction(1)).release(np.array([7, 4, 0]), SystemCoins())[0]
        np.int64(7)
        """
        whole = integers(counts)
        return np.where(whole >= self.k, whole, plus(whole, coins.laplace(1 / self.epsilon, whole.size)))


@dataclass(frozen=True)
class ClampedSmallCounts(NoisySmallCounts):
    """As `NoisySmallCounts`, with noisy counts held between 0 and k − 1.

    Guarantee, Assumes, Source: as there.  Clamping needs the noisy count only, so it costs nothing.

    >>> from incrowd.noise.system import SystemCoins
    >>> released = ClampedSmallCounts(5, Fraction(1, 9)).release(np.zeros(50, dtype=np.int64), SystemCoins())
    >>> bool(released.min() >= 0 and released.max() <= 4)
    True
    """

    def release(self, counts: NDArray[Any], coins: Coins) -> NDArray[np.int64]:
        """Return the counts of all bins; noisy ones lie between 0 and k − 1."""
        whole = integers(counts)
        return np.where(whole >= self.k, whole, np.clip(super().release(whole, coins), 0, self.k - 1))

    def release_empty(self, bins: int, coins: Coins) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which of very many empty bins come out above zero, and their counts.

        The same law as `release` on that many zeros, in time that grows with what is found.  The positions count
        through the empty bins in a public order; the number of empty bins is private.

        >>> from incrowd.noise.system import SystemCoins
        >>> where, counts = ClampedSmallCounts(5, Fraction(30)).release_empty(10**12, SystemCoins())
        >>> where.size < 10 and set(counts.tolist()) <= {1, 2, 3, 4}
        True
        """
        if self.k == 1:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        where, counts = coins.outliers(1 / self.epsilon, 1, bins)
        return where, np.minimum(counts, self.k - 1)


MOST_BINS = 2**46
"""More bins than this cannot be drawn over."""


@dataclass(frozen=True, eq=False)
class OccupiedBins:
    """The bins of a public partition that hold something: their places in order, their counts, of how many in all."""

    places: NDArray[np.int64]
    counts: NDArray[np.int64]
    size: int

    def __post_init__(self) -> None:
        if self.size > MOST_BINS:
            raise InvalidParameter("a partition may have at most 2^46 bins: use fewer or coarser bins.")

    @property
    def empty(self) -> int:
        """How many bins hold nothing; a private number."""
        return self.size - len(self.places)

    def places_of_empty(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where the empty bins of these ranks lie, counted from 0 among the empty ones.

        Before the j-th occupied bin there are place_j − j empty ones, so the empty bin of rank r lies behind exactly
        the occupied bins with place_j − j ≤ r.

        >>> OccupiedBins(np.array([1, 2]), np.array([5, 5]), 5).places_of_empty(np.array([0, 1, 2])).tolist()
        [0, 3, 4]
        """
        before = self.places - np.arange(len(self.places))
        return np.asarray(ranks + np.searchsorted(before, ranks, side="right"), dtype=np.int64)

    def dense(self) -> NDArray[np.int64]:
        """Return the counts of all bins, the empty ones too.

        >>> OccupiedBins(np.array([1]), np.array([7]), 3).dense().tolist()
        [0, 7, 0]
        """
        counts = np.zeros(self.size, dtype=np.int64)
        counts[self.places] = self.counts
        return counts

    def joined(self, ranks: NDArray[np.int64], counts: NDArray[np.int64]) -> OccupiedBins:
        """Return these bins with some that were empty, in order."""
        places = np.concatenate((self.places, self.places_of_empty(ranks)))
        order = np.argsort(places, kind="stable")
        return OccupiedBins(places[order], np.concatenate((self.counts, counts))[order], self.size)

    def where(self, chosen: NDArray[np.bool_]) -> OccupiedBins:
        """Return some of these bins."""
        return OccupiedBins(self.places[chosen], self.counts[chosen], self.size)


def blend(mechanism: ClampedSmallCounts, bins: OccupiedBins, coins: Coins) -> OccupiedBins:
    """Return the bins that come out above zero when small counts get noise: exactly as if all bins had been drawn.

    Every bin's noise is independent.  The occupied bins are drawn one by one; of the empty ones, all alike, those that
    come out above zero are drawn directly (`ClampedSmallCounts.release_empty`).  Bins left out are zeros, which is
    what a reader takes them for: leaving them out is post-processing.

    >>> from fractions import Fraction
    >>> from incrowd.noise.system import SystemCoins
    >>> bins = OccupiedBins(np.array([3, 10**9]), np.array([50, 60]), 10**10)
    >>> blend(ClampedSmallCounts(5, Fraction(40)), bins, SystemCoins()).counts.tolist()
    [50, 60]
    """
    noisy = OccupiedBins(bins.places, mechanism.release(bins.counts, coins), bins.size)
    whole = noisy.joined(*mechanism.release_empty(bins.empty, coins))
    return whole.where(whole.counts > 0)


def noisy_from(noise: AddLaplace, least: int, bins: OccupiedBins, coins: Coins) -> OccupiedBins:
    """Return the bins whose noisy counts are at least `least` ≥ 1: exactly as if all bins had been drawn.

    The threshold is public and the same for every bin, so leaving out what is below is post-processing.

    >>> from fractions import Fraction
    >>> from incrowd.noise.system import SystemCoins
    >>> bins = OccupiedBins(np.array([7]), np.array([1000]), 10**10)
    >>> noisy_from(AddLaplace(Fraction(1)), 60, bins, SystemCoins()).places.tolist()
    [7]
    """
    noisy = OccupiedBins(bins.places, noise.release(bins.counts, coins), bins.size)
    whole = noisy.joined(*coins.outliers(noise.scale, least, bins.empty))
    return whole.where(whole.counts >= least)
