"""Add noise: numbers plus integer Laplace or Gaussian noise; of keys nobody listed, only those above a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.loss import Approximate, Gaussian, Laplace, Loss, Sequence
from incrowd.core.rounding import Number
from incrowd.mechanisms.numbers import counting_number, integers, plus, positive, probability
from incrowd.noise.tails import gaussian_reach, laplace_reach


@dataclass(frozen=True)
class AddNoise:
    """Parameters of noise on a list of integers: one unit moves `groups` of them, each by at most `sensitivity`."""

    scale: Fraction
    sensitivity: int = 1
    groups: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive(self.scale, "scale"))
        counting_number(self.sensitivity, "sensitivity")
        counting_number(self.groups, "groups")


@dataclass(frozen=True)
class AddLaplace(AddNoise):
    """Adds independent integer Laplace noise, P[z] proportional to e^(−|z|/scale), to each of a list of whole numbers.

    Guarantee: `groups` numbers with `Laplace(scale, sensitivity)` each, so epsilon = groups · sensitivity / scale.
    Assumes: one unit of privacy moves at most `groups` of the numbers, each by at most `sensitivity`; the length of
    the list is public.  In a histogram with one row a person both are 1 if people are added or removed; if they are
    replaced, `groups` is 2.
    Source: Ghosh, Roughgarden and Sundararajan 2009 (two-sided geometric noise); losses on the same rows add up.

    >>> AddLaplace.costing(Fraction(1, 2)).loss
    Laplace(scale=Fraction(2, 1), sensitivity=1)
    """

    because: ClassVar[str] = "Ghosh et al. 2009, two-sided geometric noise"

    @classmethod
    def costing(cls, epsilon: Number, sensitivity: int = 1, groups: int = 1) -> AddLaplace:
        """Return the mechanism whose guarantee is exactly `epsilon`."""
        return cls(groups * sensitivity / positive(epsilon, "epsilon"), sensitivity, groups)

    @property
    def loss(self) -> Loss:
        return repeated(Laplace(self.scale, self.sensitivity), self.groups)

    def release(self, values: NDArray[Any], coins: Coins) -> NDArray[np.int64]:
        """Return the noisy values.

        >>> from incrowd.noise.system import SystemCoins
        >>> AddLaplace(Fraction(1)).release(np.array([10, 20]), SystemCoins()).shape
        (2,)
        """
        whole = integers(values)
        return plus(whole, coins.laplace(self.scale, whole.size))


@dataclass(frozen=True)
class AddGaussian(AddNoise):
    """Adds independent integer Gaussian noise, P[z] proportional to e^(−z²/(2 scale²)), to each of a list of numbers.

    Guarantee: `groups` numbers with `Gaussian(scale, sensitivity)` each.
    Assumes: as `AddLaplace`.
    Source: Canonne, Kamath and Steinke 2020, Theorem 4: each number is (sensitivity²/(2 scale²))-zero-concentrated.

    >>> AddGaussian(Fraction(5), groups=2).loss.parts[0]
    Gaussian(scale=Fraction(5, 1), sensitivity=1)
    """

    because: ClassVar[str] = "Canonne et al. 2020, Theorem 4"

    @property
    def loss(self) -> Loss:
        return repeated(Gaussian(self.scale, self.sensitivity), self.groups)

    def release(self, values: NDArray[Any], coins: Coins) -> NDArray[np.int64]:
        """Return the noisy values.

        >>> from incrowd.noise.system import SystemCoins
        >>> AddGaussian(Fraction(1)).release(np.array([[10], [20]]), SystemCoins()).shape
        (2, 1)
        """
        whole = integers(values)
        return plus(whole, coins.gaussian(self.scale, whole.size))


def repeated(loss: Loss, times: int) -> Loss:
    """Return the loss of the same step taken `times` times on the same rows.

    >>> len(repeated(Laplace(Fraction(1)), 3).parts)
    3
    """
    return loss if times == 1 else Sequence((loss,) * times)


@dataclass(frozen=True)
class Threshold:
    """Adds noise to the count of every key that occurs and releases the noisy counts that reach a threshold.

    Guarantee: the loss of `noise`, and (0, delta) once.
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
        released = np.flatnonzero(noisy >= self.threshold)
        return released, noisy[released]
