"""Response: the value itself is sent, or another one: randomized response over two or more values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from incrowd.methods.local.mechanisms.randomizer import Categorical, Family, Reports, Values, check_values

if TYPE_CHECKING:
    from incrowd.core.coins import Coins


@dataclass(frozen=True)
class Response(Categorical):
    """The own value has weight `own`, each of the others weight `other`; two values and 3 : 1 are the lecture's coins.

    Guarantee: ε = ln(own / other) for one report.
    Assumes: one report is sent, once; every draw is uniform.
    Source: Warner 1965; Kairouz, Bonawitz & Ramage 2016 for more than two values.

    >>> from incrowd.methods.local.mechanisms.ratio import Weights
    >>> coins = Response(2, Weights(3, 1))
    >>> coins.p, coins.q, coins.ratio
    (Fraction(3, 4), Fraction(1, 4), Fraction(3, 1))
    """

    family: ClassVar[Family] = Family.RESPONSE

    @property
    def total(self) -> int:
        """The sum of all weights."""
        return self.weights.own + (self.size - 1) * self.weights.other

    @property
    def p(self) -> Fraction:
        """The chance that the value itself is sent."""
        return Fraction(self.weights.own, self.total)

    @property
    def q(self) -> Fraction:
        """The chance that a given other value is sent."""
        return Fraction(self.weights.other, self.total)

    @property
    def outcomes(self) -> int:
        """As many as there are values."""
        return self.size

    @property
    def bits(self) -> int:
        """How large a report is."""
        return (self.size - 1).bit_length()

    def randomize(self, values: Values, coins: Coins) -> Reports:
        """Draw below the sum of all weights: the first `own` numbers keep the value, the others name another."""
        check_values(values, self.size)
        drawn = coins.below(self.total, len(values)) - self.weights.own
        other = np.maximum(drawn, 0) // self.weights.other
        return np.where(drawn < 0, values, other + (other >= values))

    def support(self, reports: Reports) -> Values:
        """Return how often each value was sent."""
        return np.bincount(reports, minlength=self.size).astype(np.int64)

    def law(self, value: int) -> Mapping[Any, Fraction]:
        """Return the chance of every value to be sent."""
        return {each: self.p if each == value else self.q for each in range(self.size)}
