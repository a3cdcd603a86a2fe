"""Chances as real numbers whose binary digits can be computed, as many as are asked for.

A coin compares uniform bits with the digits of its chance and stops at the first difference (`toss`), so it is exact
even if its chance is irrational.  The chances of integer noise are rational functions of e^(−x) with x rational.
`Decimal.exp` is correctly rounded, so the neighbors of its result enclose the true value; where the two ends of an
enclosure disagree on a digit, the precision doubles.  This ends: for rational x ≠ 0 the number e^(−x) is
transcendental (Lindemann 1882), hence so is every chance here, and none lies on a dyadic fraction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial

Chance = Callable[[int], int]
"""Gives floor(p · 2^bits) for the number of bits asked for."""

Enclosure = tuple[Fraction, Fraction]
"""Two fractions with the true value between them."""

VANISHING = 2**14
"""Beyond this exponent e^(−x), less than 10^(−7000), is enclosed by zero and something small: never draw from it."""


def rational(probability: Fraction) -> Chance:
    """Return a rational probability as a chance.

    >>> rational(Fraction(3, 4))(3)
    6
    """
    return partial(_rational_digits, probability)


def exponential(x: Fraction) -> Chance:
    """Return the chance e^(−x), for x ≥ 0.

    >>> exponential(Fraction(1))(10) == int(math.exp(-1) * 2**10)
    True
    """
    return partial(_exponential_digits, x)


def logistic(x: Fraction) -> Chance:
    """Return the chance 1 / (1 + e^x), for x > 0.

    >>> logistic(Fraction(1))(10) == int(2**10 / (1 + math.e))
    True
    """
    return partial(_logistic_digits, x)


@lru_cache(maxsize=4096)
def exp_enclosure(x: Fraction, digits: int) -> Enclosure:
    """Return bounds on e^(−x), x ≥ 0, that agree to about `digits` significant decimal digits.

    >>> low, high = exp_enclosure(Fraction(1, 3), 20)
    >>> low < high < low + Fraction(1, 10**18)
    True
    """
    if x > VANISHING:
        return Fraction(0), Fraction(1, 2**VANISHING)
    down, up = Context(prec=digits, rounding=ROUND_FLOOR), Context(prec=digits, rounding=ROUND_CEILING)
    top, bottom = Decimal(-x.numerator), Decimal(x.denominator)
    low, high = down.exp(down.divide(top, bottom)), up.exp(up.divide(top, bottom))
    return Fraction(low.next_minus(down)), Fraction(high.next_plus(up))


def digits_of(enclose: Callable[[int], Enclosure], bits: int) -> int:
    """Return floor(p · 2^bits) of a number that `enclose` bounds ever more tightly and that is no dyadic fraction."""
    digits = bits // 3 + 10
    while True:
        low, high = enclose(digits)
        floor = math.floor(low * (1 << bits))
        if floor == math.floor(high * (1 << bits)):
            return floor
        digits *= 2


def _rational_digits(probability: Fraction, bits: int) -> int:
    return (probability.numerator << bits) // probability.denominator


@lru_cache(maxsize=4096)
def _exponential_digits(x: Fraction, bits: int) -> int:
    if x == 0:
        return 1 << bits
    if x >= bits:  # e^(−x) < 2^(−bits)
        return 0
    return digits_of(partial(exp_enclosure, x), bits)


@lru_cache(maxsize=4096)
def _logistic_digits(x: Fraction, bits: int) -> int:
    if x >= bits:
        return 0

    def enclose(digits: int) -> Enclosure:
        low, high = exp_enclosure(x, digits)
        return low / (1 + low), high / (1 + high)

    return digits_of(enclose, bits)
