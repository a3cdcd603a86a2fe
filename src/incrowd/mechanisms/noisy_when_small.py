"""Noisy when small: counts below k get noise, the others are released as they are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core import loss as losses
from incrowd.core.coins import Coins
from incrowd.mechanisms.integers import integers, plus
from incrowd.mechanisms.parameters import counting_number, positive


@dataclass(frozen=True)
class NoisyWhenSmall:
    """Counts below k get integer Laplace noise of scale 1/epsilon; counts of k or more are exact.

    Promise: (k, epsilon)-crowd-blending.  In a bin of k or more, everyone can be exchanged for any of the others
    without any change.  In a bin of j < k, leaving someone out moves a noisy count from j to j − 1, and integer Laplace
    noise makes these two e^epsilon-close; no condition ties the noisy k − 1 to the exact k, so it does not matter that
    one can see which counts are noisy.
    Assumes: the bins were fixed without looking at the rows, each row counts in one bin, once, and the counts of ALL
    bins are given, with those that are zero: a bin that is only listed when someone is in it betrays that person.
    Source: Gehrke, Hay, Lui and Pass 2012, Example 2.

    >>> NoisyWhenSmall(5, Fraction(1, 2)).loss
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
        """The promise, from the parameters alone."""
        return losses.NoisyWhenSmall(self.k, self.epsilon)

    def release(self, counts: NDArray[Any], coins: Coins) -> NDArray[np.int64]:
        """Return the counts of all bins; noisy ones may be negative, or k and more.

        >>> from incrowd.noise.system import SystemCoins
        >>> NoisyWhenSmall(5, Fraction(1)).release(np.array([7, 4, 0]), SystemCoins())[0]
        np.int64(7)
        """
        whole = integers(counts)
        return np.where(whole >= self.k, whole, plus(whole, coins.laplace(1 / self.epsilon, whole.size)))


@dataclass(frozen=True)
class ClampedWhenSmall(NoisyWhenSmall):
    """As `NoisyWhenSmall`, with noisy counts held between 0 and k − 1.

    Promise, Assumes, Source: as there.  Clamping needs the noisy count only, so it costs nothing.

    >>> from incrowd.noise.system import SystemCoins
    >>> released = ClampedWhenSmall(5, Fraction(1, 9)).release(np.zeros(50, dtype=np.int64), SystemCoins())
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
        >>> where, counts = ClampedWhenSmall(5, Fraction(30)).release_empty(10**12, SystemCoins())
        >>> where.size < 10 and set(counts.tolist()) <= {1, 2, 3, 4}
        True
        """
        if self.k == 1:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        where, counts = coins.outliers(1 / self.epsilon, 1, bins)
        return where, np.minimum(counts, self.k - 1)
