"""Numbers that mechanisms take: parameters read exactly or refused, and integers that bear noise without overflow."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        raise InvalidParameter(f"{name} must be a probability strictly between 0 and 1.")
    return value


def counting_number(number: object, name: str) -> int:
    """Return the number, if it is whole and at least 1.

    >>> counting_number(3, "k")
    3
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InvalidParameter(f"{name} must be a whole number of at least 1.")
    return number


WIDEST = 2**61
"""Integers are held between −2^61 and 2^61: their sum with noise of up to 2^62 fits 64 bits."""


def integers(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the values as 64-bit integers held between −2^61 and 2^61.

    Holding a number in a fixed range never moves two numbers further apart and keeps their order, so sensitivities
    and monotonicity survive.  Numbers with fractions are refused: floating-point noise shows in its last bits
    what it was added to (Mironov 2012).

    >>> integers(np.array([3, 2**63], dtype=np.uint64)).tolist() == [3, WIDEST]
    True
    """
    if values.dtype.kind == "u":
        return np.minimum(values.astype(np.uint64), np.uint64(WIDEST)).astype(np.int64)
    if values.dtype.kind != "i":
        raise InvalidParameter(
            "noise is added to integers only, because floating-point noise discloses what it was added to; "
            "multiply by a fixed factor and round first."
        )
    return np.clip(values.astype(np.int64), -WIDEST, WIDEST)


def plus(values: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return values plus noise, held between −2^61 and 2^61.

    With |values| ≤ 2^61, noise that was cut off at ±2^62 gives the same result as the noise it was cut from: either
    ends at the same edge.  So this is a post-processing of unbounded noise and costs nothing.

    >>> plus(np.array([1, -WIDEST]), np.array([-5, -(2**62)])).tolist() == [-4, -WIDEST]
    True
    """
    return np.asarray(np.clip(values + noise.reshape(values.shape), -WIDEST, WIDEST))
