"""Threshold: counts of keys nobody listed in advance, released only if they are clearly not one person's."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.loss import Approximate, Loss, Sequence
from incrowd.mechanisms.add_noise import AddGaussian, AddLaplace
from incrowd.mechanisms.parameters import probability
from incrowd.noise.tails import gaussian_reach, laplace_reach


@dataclass(frozen=True)
class Threshold:
    """Adds noise to the count of every key that occurs and releases the noisy counts that reach a threshold.

    Promise: the loss of `noise`, and (0, delta) once.
    Assumes: one unit of privacy has at most `noise.groups` keys and moves the count of each by at most
    `noise.sensitivity`; keys that do not occur are not given.  People that are replaced have twice as many keys.
    Source: Korolova, Kenthapadi, Mishra and Ntoulas 2009; Wilson et al. 2020, for integer noise as follows.

    Proof.  Let one person join.  Split the keys into those others have too and those only that person has, at most
    c = groups of them, each with a count of at most m = sensitivity.  The release is a function of two independent
    parts.  On shared keys only the counts move: the loss of `noise`.  On the person's own keys, nothing is
    released without the person, and with the person something is released with chance at most c · P[m + z ≥ t] ≤ delta,
    because the threshold t is m plus the least r with P[z ≥ r] ≤ delta / c.  Two distributions that differ by at most
    delta in total variation are (0, delta)-close in both directions.  Losses of the two parts add up.  ∎

    >>> mechanism = Threshold(AddLaplace.costing(1), Fraction(1, 10**6))
    >>> mechanism.threshold
    15
    >>> mechanism.loss.parts[1]
    Approximate(epsilon=Fraction(0, 1), delta=Fraction(1, 1000000))
    """

    noise: AddLaplace | AddGaussian
    delta: Fraction
    because: ClassVar[str] = "Korolova et al. 2009, with an exact threshold for integer noise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", probability(self.delta, "delta"))

    @property
    def threshold(self) -> int:
        """The least noisy count that is released; public, and never rounded in our favor."""
        reach = laplace_reach if isinstance(self.noise, AddLaplace) else gaussian_reach
        return self.noise.sensitivity + reach(self.noise.scale, self.delta / self.noise.groups)

    @property
    def loss(self) -> Loss:
        """The promise, from the parameters alone."""
        return Sequence((self.noise.loss, Approximate(Fraction(0), self.delta)))

    def release(self, counts: NDArray[Any], coins: Coins) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions of the keys that are released, and their noisy counts.

        >>> from incrowd.noise.system import SystemCoins
        >>> mechanism = Threshold(AddLaplace.costing(1), Fraction(1, 10**6))
        >>> keys, counts = mechanism.release(np.array([1, 500]), SystemCoins())
        >>> 1 in keys
        True
        """
        noisy = self.noise.release(counts, coins)
        kept = np.flatnonzero(noisy >= self.threshold)
        return kept, noisy[kept]
