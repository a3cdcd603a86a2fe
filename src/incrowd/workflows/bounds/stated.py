"""Numbers as a person stated them, kept in the range in which they mean anything."""

from __future__ import annotations

from fractions import Fraction

from incrowd.core.rounding import Number, exact
from incrowd.errors import InvalidParameter

_MOST_EPSILON = 10**6


def stated_epsilon(number: Number, name: str = "epsilon") -> Fraction:
    """Return an ε: not negative, and not so large that it promises nothing.

    >>> stated_epsilon("0.5")
    Fraction(1, 2)
    """
    epsilon = exact(number, name)
    if epsilon < 0:
        raise InvalidParameter(f"{name} cannot be negative: 0 means that nothing can be told.")
    if epsilon > _MOST_EPSILON:
        raise InvalidParameter(f"{name} is above a million, which promises nothing: give a smaller one.")
    return epsilon
