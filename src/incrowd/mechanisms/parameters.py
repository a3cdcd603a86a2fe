"""Parameters of primitives: read exactly, or refused."""

from __future__ import annotations

from fractions import Fraction

from incrowd.core.rounding import Number, exact
from incrowd.errors import InvalidParameter


def positive(number: Number, name: str) -> Fraction:
    """Return the number exactly, if it is above zero.

    >>> positive(0.1, "epsilon")
    Fraction(1, 10)
    """
    value = exact(number, name)
    if value <= 0:
        raise InvalidParameter(f"{name} must be above zero.")
    return value


def probability(number: Number, name: str) -> Fraction:
    """Return the number exactly, if it lies strictly between 0 and 1.

    >>> probability("1e-6", "delta")
    Fraction(1, 1000000)
    """
    value = exact(number, name)
    if not 0 < value < 1:
        raise InvalidParameter(f"{name} is a probability strictly between 0 and 1.")
    return value


def counting_number(number: object, name: str) -> int:
    """Return the number, if it is whole and at least 1.

    >>> counting_number(3, "k")
    3
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InvalidParameter(f"{name} must be a whole number of at least 1.")
    return number
