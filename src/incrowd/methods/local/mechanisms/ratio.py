"""Ratio: two whole weights whose quotient stays below e^ε, so that a draw from them loses ε at most, exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from incrowd.errors import InvalidParameter

BITS = 16  # weights of reports are whole numbers of 16 bits, rounded so that their ratio stays below e^ε
LARGEST = 2**62
"""Whole numbers are drawn below this at most."""
LARGEST_EPSILON = 28
"""The largest ε of a report that is offered, randomized or judged: beyond it a report hides nothing."""
FINEST_EPSILON = 10**40
"""The largest denominator of an ε: as fine as losses are counted."""
_DIGITS = 60  # far beyond `_PLACES`: the error of a logarithm is below 10⁻⁵⁰
_PLACES = 10**18  # an ε is rounded up to 18 decimals
_TERMS = 60  # of the series of e^ε: a partial sum lies below it, and more terms are nearer


@dataclass(frozen=True)
class Weights:
    """The weights of a likely and an unlikely outcome, `own` ≥ `other` > 0.

    >>> Weights.below(Fraction(1))
    Weights(own=173459, other=63812)
    """

    own: int
    other: int

    def __post_init__(self) -> None:
        if not 0 < self.other <= self.own:
            raise InvalidParameter("the weights of a randomizer are whole numbers, the likely outcome's the larger.")

    @classmethod
    def below(cls, epsilon: Fraction, bits: int = BITS) -> Weights:
        """Return the largest fraction below e^ε whose denominator has at most so many bits (2^bits).

        Guarantee: ln(own / other) ≤ ε exactly, since every partial sum of Σ ε^i / i! lies below e^ε.
        Source: Stern 1858, Brocot 1861 for the search of the fraction.

        >>> Weights.below(Fraction(1), 8)
        Weights(own=685, other=252)
        """
        check_epsilon(epsilon)
        ratio = largest_below(exponential_below(epsilon), 2**bits)
        if ratio <= 1:
            raise InvalidParameter("this epsilon is too small for whole weights: ask for at least 0.0001.")
        return cls(ratio.numerator, ratio.denominator)

    @classmethod
    def of(cls, odds: Fraction) -> Weights:
        """Return given odds as weights: the lecture's two coins are 3 : 1.

        >>> Weights.of(Fraction(3))
        Weights(own=3, other=1)
        """
        if odds <= 1:
            raise InvalidParameter("the odds of the true answer are above 1, such as 3: else a report says nothing.")
        return cls(odds.numerator, odds.denominator)

    @property
    def value(self) -> Fraction:
        """How much likelier the likely outcome is."""
        return Fraction(self.own, self.other)


def check_epsilon(epsilon: Fraction) -> None:
    """Refuse an ε of a report that is not above 0, is above 28, or has more than 40 decimals.

    >>> check_epsilon(Fraction(100_000))
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: an epsilon above 28 cannot be drawn exactly, and hides nothing. Ask for less.
    """
    if epsilon <= 0:
        raise InvalidParameter("a report needs an epsilon above 0: at 0 it says nothing. Ask for 0.1 or more.")
    if epsilon > LARGEST_EPSILON:
        raise InvalidParameter(
            f"an epsilon above {LARGEST_EPSILON} cannot be drawn exactly, and hides nothing. Ask for less."
        )
    if epsilon.denominator > FINEST_EPSILON:
        raise InvalidParameter("an epsilon has at most 40 decimals, or a denominator of at most 10^40. Round it.")


def exponential_below(epsilon: Fraction) -> Fraction:
    """Return a partial sum of Σ ε^i / i!, which lies below e^ε; refuse an ε that is not one of a report.

    The sum is 1 + ε/1 (1 + ε/2 (1 + …)), as one fraction of whole numbers from the inside outwards.

    >>> exponential_below(Fraction(1)) < Fraction(math.e) + Fraction(1, 10**15)
    True
    """
    check_epsilon(epsilon)
    above, below = 1, 1
    for number in reversed(range(1, _TERMS + 8 * math.ceil(epsilon))):
        below *= number * epsilon.denominator
        above = below + epsilon.numerator * above
    return Fraction(above, below)


def largest_below(limit: Fraction, most: int) -> Fraction:
    """Return the largest fraction that is not above a limit and has a denominator of at most `most`.

    >>> largest_below(Fraction(355, 113), 7), largest_below(Fraction(5, 2), 7)
    (Fraction(3, 1), Fraction(5, 2))
    """
    top, bottom = limit.numerator, limit.denominator
    low, high = (top // bottom, 1), (top // bottom + 1, 1)
    while True:
        below, above = top * low[1] - low[0] * bottom, high[0] * bottom - top * high[1]
        steps = min(below // above, (most - low[1]) // high[1])
        low = (low[0] + steps * high[0], low[1] + steps * high[1])
        below = top * low[1] - low[0] * bottom
        if below == 0 or low[1] + high[1] > most:
            return Fraction(*low)
        steps = min((above - 1) // below, (most - high[1]) // low[1])
        high = (high[0] + steps * low[0], high[1] + steps * low[1])
        if low[1] + high[1] > most:
            return Fraction(*low)


def logarithm_of(value: Fraction) -> Fraction:
    """Return a number of 18 decimals that is above ln(value), by 10⁻¹⁸ or so.

    >>> float(logarithm_of(Fraction(3)))
    1.0986122886681098
    """
    if value == 1:
        return Fraction(0)
    with localcontext() as context:
        context.prec = _DIGITS
        near = (Decimal(value.numerator) / Decimal(value.denominator)).ln()
        return Fraction(math.floor(Fraction(near) * _PLACES) + 2, _PLACES)
