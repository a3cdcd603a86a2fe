"""Measure: what a table shows of a criterion, what was expected of it, and whether the one is enough for the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-9
"""By so much a number may miss what was expected: sums of shares are rounded."""
_STRICTLY = 1e-12


class Bound(StrEnum):
    """How what was found must stand to what was expected."""

    AT_LEAST = "at least"
    AT_MOST = "at most"
    BELOW = "below"


@dataclass(frozen=True)
class Meaning:
    """What is measured of a table: its name, what it means in words, and how it is bounded."""

    name: str
    means: str
    bound: Bound

    def fits(self, found: Any, expected: float) -> Any:
        """Return whether a number, or each of several, is what is expected.

        >>> Meaning("k", "the fewest rows", Bound.AT_LEAST).fits(4, 5)
        False
        """
        match self.bound:
            case Bound.AT_LEAST:
                return found >= expected * (1 - TOLERANCE)
            case Bound.AT_MOST:
                return found <= expected + TOLERANCE
            case Bound.BELOW:
                return found < expected * (1 - _STRICTLY)

    def worst(self, *each: float) -> float:
        """Return the worst of some numbers."""
        return min(each) if self.bound is Bound.AT_LEAST else max(each)


@dataclass(frozen=True)
class Measured:
    """What was found (None: there are no rows), what was expected (None: nothing), and how many rows fall short."""

    meaning: Meaning
    expected: float | None
    found: float | None
    short: int | None

    @property
    def passed(self) -> bool | None:
        """Whether what was found is what was expected; None where nothing was."""
        if self.expected is None or self.found is None:
            return None if self.expected is None else True
        return bool(self.meaning.fits(self.found, self.expected))

    def joined(self, other: Measured) -> Measured:
        """Return what was found in both of two parts of a table: the worst, and the rows that fall short in either."""
        if self.found is None or other.found is None:
            return other if self.found is None else self
        short = None if self.short is None or other.short is None else self.short + other.short
        return replace(self, found=self.meaning.worst(self.found, other.found), short=short)


def measured(
    meaning: Meaning,
    each: NDArray[np.float64] | NDArray[np.int64],
    sizes: NDArray[np.int64],
    expected: float | Fraction | None,
) -> Measured:
    """Return the worst class, and how many rows are in classes that are not as expected.

    >>> measured(Meaning("k", "the fewest rows", Bound.AT_LEAST), np.array([2, 7]), np.array([2, 7]), 5)
    Measured(meaning=Meaning(name='k', means='the fewest rows', bound=<Bound.AT_LEAST: 'at least'>), expected=5, \
found=2, short=2)
    """
    worst = np.min if meaning.bound is Bound.AT_LEAST else np.max
    found = worst(each).item() if len(each) else None
    if expected is None:
        return Measured(meaning, None, found, None)
    expected = expected if isinstance(expected, int) else float(expected)
    failing = ~np.asarray(meaning.fits(each, expected), np.bool_)
    return Measured(meaning, expected, found, int(sizes[failing].sum()))
