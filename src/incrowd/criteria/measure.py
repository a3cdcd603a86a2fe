"""Measure: the value of a criterion in a table, its required value, and whether the one meets the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-9
"""The error allowed to a measured number: sums of shares are rounded."""
_STRICTLY = 1e-12  # equal up to rounding is not below


class Bound(StrEnum):
    """How a measured value must relate to the required one."""

    AT_LEAST = "at least"
    AT_MOST = "at most"
    BELOW = "below"


@dataclass(frozen=True)
class Meaning:
    """What is measured: its name, its definition, and how it is bounded."""

    name: str
    means: str
    bound: Bound

    def fits(self, value: Any, expected: float) -> Any:
        """Return whether a number, or each of several, meets the bound.

        >>> Meaning("k", "the fewest rows", Bound.AT_LEAST).fits(4, 5)
        False
        """
        match self.bound:
            case Bound.AT_LEAST:
                return value >= expected * (1 - TOLERANCE)
            case Bound.AT_MOST:
                return value <= expected + TOLERANCE
            case Bound.BELOW:
                return value < expected * (1 - _STRICTLY)

    def worst(self, *values: float) -> float:
        """Return the worst of some numbers."""
        return min(values) if self.bound is Bound.AT_LEAST else max(values)


@dataclass(frozen=True)
class Measured:
    """A measured value (None: no rows), the required one (None: none), and how many rows do not meet it."""

    meaning: Meaning
    expected: float | None
    value: float | None
    short: int | None

    @property
    def passed(self) -> bool | None:
        """Whether the value meets the bound; None without one."""
        if self.expected is None or self.value is None:
            return None if self.expected is None else True
        return bool(self.meaning.fits(self.value, self.expected))

    def joined(self, other: Measured) -> Measured:
        """Return the value of two parts of a table together: the worse one, and the rows that fail in either."""
        if self.value is None or other.value is None:
            return other if self.value is None else self
        short = None if self.short is None or other.short is None else self.short + other.short
        return replace(self, value=self.meaning.worst(self.value, other.value), short=short)


def measured(
    meaning: Meaning,
    values: NDArray[np.float64] | NDArray[np.int64],
    sizes: NDArray[np.int64],
    expected: float | Fraction | None,
) -> Measured:
    """Return the value of the worst class, and how many rows are in classes that do not meet the bound.

    >>> measured(Meaning("k", "the fewest rows", Bound.AT_LEAST), np.array([2, 7]), np.array([2, 7]), 5)
    Measured(meaning=Meaning(name='k', means='the fewest rows', bound=<Bound.AT_LEAST: 'at least'>), expected=5, \
value=2, short=2)
    """
    worst = np.min if meaning.bound is Bound.AT_LEAST else np.max
    value = worst(values).item() if len(values) else None
    if expected is None:
        return Measured(meaning, None, value, None)
    expected = expected if isinstance(expected, int) else float(expected)
    failing = ~np.asarray(meaning.fits(values, expected), np.bool_)
    return Measured(meaning, expected, value, int(sizes[failing].sum()))
