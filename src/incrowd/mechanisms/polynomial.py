"""Polynomial noise: ε-differential privacy at the scale of a smooth sensitivity, with a finite mean; drawn exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from incrowd.errors import InvalidParameter
from incrowd.noise.chance import exp_enclosure

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

_PARTS = 10**12  # ratio and κ are twelfths of a decimal: rounded to the safe side, and checked exactly
_DIGITS = 50  # of the enclosure of e^(−ε): both ends are used on their safe side
_BITS = 32  # randomness read at a time; more is read until one outcome is left


@dataclass(frozen=True)
class PolynomialNoise:
    """Noise with a density proportional to (s + |z|)^(−a), s = S/κ, rounded to a whole number.

    Guarantee: ε-differential privacy, if S is at least the local sensitivity, and falls by no more than the factor
    `ratio` from a dataset to a neighbor.  With β = −ln(ratio) the loss is exactly the largest of β(a − 1), a ln(1 + κ)
    and β + a ln(1 + κ e^(−β)): the ratio of two densities is (s/s')^(a−1) ((s' + |z − Δ|)/(s + |z|))^a with
    |Δ| ≤ κ min(s, s'), it is extreme at z = 0 or far away, and λ + a ln(1 + κ e^(−λ)) is convex in λ = ln(s'/s).

    a = power + 1 is whole and ratio and κ are fractions, so that the chance of every outcome is a fraction too.

    Source: Nissim, Raskhodnikova & Smith 2007 (smooth sensitivity); the constants are proved above.

    >>> noise = PolynomialNoise.of(Fraction(1), 10)
    >>> float(noise.ratio), float(noise.kappa)
    (0.904837418036, 0.094225183959)
    """

    epsilon: Fraction
    power: int
    ratio: Fraction
    kappa: Fraction

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.power < 2 or not 0 < self.ratio < 1 or self.kappa <= 0:
            raise InvalidParameter("polynomial noise needs an epsilon above 0, and a power of at least 2.")
        rarest = exp_enclosure(self.epsilon, _DIGITS)[1]
        if self.ratio**self.power < rarest or not _allowed(self.epsilon, self.power, self.ratio, self.kappa):
            raise InvalidParameter("this polynomial noise costs more than its epsilon.")

    @classmethod
    def of(cls, epsilon: Fraction, power: int) -> PolynomialNoise:
        """Return the least noise of a power that costs at most ε: ratio and κ rounded to the safe side."""
        if epsilon <= 0 or not 2 <= power <= 1000:
            raise InvalidParameter("polynomial noise needs an epsilon above 0, and a power from 2 to 1000.")
        return cls(epsilon, power, *_parameters(epsilon, power))

    def tail(self, sensitivity: Fraction, least: int) -> Fraction:
        """Return P[|z| ≥ least] for a whole number of at least 1."""
        if not sensitivity:
            return Fraction(0)
        return (2 * sensitivity / (2 * sensitivity + (2 * least - 1) * self.kappa)) ** self.power

    def mass(self, sensitivity: Fraction, outcome: int) -> Fraction:
        """Return the chance of one outcome.

        >>> noise = PolynomialNoise.of(Fraction(1), 4)
        >>> sum(noise.mass(Fraction(1), z) for z in range(-9, 10)) + noise.tail(Fraction(1), 10) == 1
        True
        """
        size = abs(outcome)
        above = self.tail(sensitivity, size + 1)
        return 1 - above if not size else (self.tail(sensitivity, size) - above) / 2

    def draw(self, sensitivity: Fraction, coins: Coins) -> int:
        """Draw one number: a uniform number is unrolled bit by bit until only one outcome is left."""
        low, bits = 0, 0
        while True:
            low, bits = (low << _BITS) + int(coins.below(1 << _BITS, 1)[0]), bits + _BITS
            size = self.size(sensitivity, Fraction(low, 1 << bits))
            # at the upper end of what is left the outcome is the smallest
            if self.tail(sensitivity, size + 1) <= Fraction(low, 1 << bits) and (
                not size or self.tail(sensitivity, size) >= Fraction(low + 1, 1 << bits)
            ):
                break
        return size if not size or bool(coins.bernoulli(Fraction(1, 2), 1)[0]) else -size

    def size(self, sensitivity: Fraction, uniform: Fraction) -> int:
        """Return how far from zero the noise lies: the largest m with P[|z| ≥ m] > uniform; 0 if there is none."""
        if not uniform and sensitivity:
            uniform = Fraction(1, 1 << (2 * _BITS))  # unrolled further before it is decided
        high = 1
        while self.tail(sensitivity, high) > uniform:
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.tail(sensitivity, middle) > uniform else (low, middle)
        return low


def _allowed(epsilon: Fraction, power: int, ratio: Fraction, kappa: Fraction) -> bool:
    """Whether (1 + κ)^a and (1 + κ q)^a / q are at most e^ε."""
    rarest = exp_enclosure(epsilon, _DIGITS)[1]
    a = power + 1
    return (1 + kappa) ** a * rarest <= 1 and (1 + kappa * ratio) ** a * rarest <= ratio


@lru_cache(maxsize=64)
def _parameters(epsilon: Fraction, power: int) -> tuple[Fraction, Fraction]:
    high = exp_enclosure(epsilon / power, _DIGITS)[1]
    ratio = Fraction(-(-high.numerator * _PARTS // high.denominator), _PARTS)
    low, top = 0, _PARTS
    while _allowed(epsilon, power, ratio, Fraction(top, _PARTS)):
        top *= 2
    while top - low > 1:
        middle = (low + top) // 2
        low, top = (middle, top) if _allowed(epsilon, power, ratio, Fraction(middle, _PARTS)) else (low, middle)
    if not low or ratio >= 1:
        raise InvalidParameter("this epsilon is too small for noise of such a power: use a smaller power.")
    return ratio, Fraction(low, _PARTS)
