"""Shares: how what is paid is divided among the tables of counts that are measured for a set of questions."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_FINE = 1000
_LEAST = 4


class NoiseKind(IntEnum):
    """How the precision of a count, one over its variance, grows with the share of the price that it has."""

    GAUSSIAN = 1
    """The price is ρ: the precision is in proportion to the share."""
    LAPLACE = 2
    """The price is ε: the precision is in proportion to the square of the share."""

    def precisions(self, shares: Floats) -> Floats:
        """Return the precisions, where all that is paid buys a precision of 1.

        >>> NoiseKind.LAPLACE.precisions(np.array([0.5, 0.5])).tolist()
        [0.25, 0.25]
        """
        return np.asarray(shares**self.value)


def equal_shares(number: int) -> Floats:
    """Return the same share for each.

    >>> equal_shares(4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return np.full(number, 1.0 / number)


def balanced(
    shares: Floats, noise: NoiseKind, gains: Callable[[Floats], tuple[float, Floats]], rounds: int
) -> tuple[Floats, float]:
    """Return shares with a smaller total of variances, and that total; never a larger one than these shares have.

    `gains` gives for precisions the total, and by how much it falls with each of them.  Where the total is least, a
    share times its gain (with its power) is the same for all that have one: each round multiplies them towards that.
    """
    best, least = shares, np.inf
    for _ in range(rounds + 1):
        total, falls = gains(noise.precisions(shares))
        if total < least:
            best, least = shares, total
        pull = np.maximum(shares ** (noise.value - 1) * falls, 0.0) ** (1.0 / (noise.value + 1))
        shares = shares * pull
        shares = shares / shares.sum()
    return best, float(least)


def whole_shares(shares: Floats) -> list[int]:
    """Return shares in thousandths, as whole numbers; 0 where next to nothing is left.

    >>> whole_shares(np.array([0.5, 0.4995, 0.0005]))
    [500, 500, 0]
    """
    found = [round(float(share) * _FINE) for share in shares]
    return [each if each >= _LEAST else 0 for each in found]


def exact_shares(parts: list[int]) -> tuple[Fraction, ...]:
    """Return whole numbers as shares that add up to 1.

    >>> exact_shares([1, 3])
    (Fraction(1, 4), Fraction(3, 4))
    """
    return tuple(Fraction(part, sum(parts)) for part in parts)
