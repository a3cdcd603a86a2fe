"""Add noise: numbers plus integer Laplace or Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.loss import Gaussian, Laplace, Loss, Sequence
from incrowd.core.rounding import Number
from incrowd.mechanisms.integers import integers, plus
from incrowd.mechanisms.parameters import counting_number, positive


@dataclass(frozen=True)
class AddLaplace:
    """Adds independent integer Laplace noise, P[z] proportional to e^(−|z|/scale), to each of a list of whole numbers.

    Promise: `groups` numbers with `Laplace(scale, sensitivity)` each, so epsilon = groups · sensitivity / scale.
    Assumes: one unit of privacy moves at most `groups` of the numbers, each by at most `sensitivity`; the length of
    the list is public.  In a histogram with one row a person both are 1 if people are added or removed; if they are
    replaced, `groups` is 2.
    Source: Ghosh, Roughgarden and Sundararajan 2009 (two-sided geometric noise); losses on the same rows add up.

    >>> AddLaplace.costing(Fraction(1, 2)).loss
    Laplace(scale=Fraction(2, 1), sensitivity=1)
    """

    scale: Fraction
    sensitivity: int = 1
    groups: int = 1
    because: ClassVar[str] = "Ghosh et al. 2009, two-sided geometric noise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive(self.scale, "scale"))
        counting_number(self.sensitivity, "sensitivity")
        counting_number(self.groups, "groups")

    @classmethod
    def costing(cls, epsilon: Number, sensitivity: int = 1, groups: int = 1) -> AddLaplace:
        """Return the mechanism whose promise is exactly `epsilon`."""
        return cls(groups * sensitivity / positive(epsilon, "epsilon"), sensitivity, groups)

    @property
    def loss(self) -> Loss:
        """The promise, from the parameters alone."""
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
class AddGaussian:
    """Adds independent integer Gaussian noise, P[z] proportional to e^(−z²/(2 scale²)), to each of a list of numbers.

    Promise: `groups` numbers with `Gaussian(scale, sensitivity)` each.
    Assumes: as `AddLaplace`.
    Source: Canonne, Kamath and Steinke 2020, Theorem 4: each number is (sensitivity²/(2 scale²))-zero-concentrated.

    >>> AddGaussian(Fraction(5), groups=2).loss.parts[0]
    Gaussian(scale=Fraction(5, 1), sensitivity=1)
    """

    scale: Fraction
    sensitivity: int = 1
    groups: int = 1
    because: ClassVar[str] = "Canonne et al. 2020, Theorem 4"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive(self.scale, "scale"))
        counting_number(self.sensitivity, "sensitivity")
        counting_number(self.groups, "groups")

    @property
    def loss(self) -> Loss:
        """The promise, from the parameters alone."""
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
