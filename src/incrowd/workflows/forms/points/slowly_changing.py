"""The error of slowly changing functions, derived a second time: slowly, obviously, from the grid as it is told.

This file imports neither the accountants nor the method that made the claim: every piece of every side is measured,
and the moments of the noise are summed term by term.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np

_SMALLEST_NOISE = Fraction(1, 10**4)  # below, the sums of the noise become too long to write out
_ENOUGH = 60.0


def moved_squared(columns: Iterable[Mapping[str, Any]], place: str) -> Fraction:
    """Return the square of how far a value and its point are apart at most, sides of the box being 1 long.

    >>> side = {"type": "integer", "low": "0", "high": "99", "pieces": 10}
    >>> moved_squared([side, side], "centers") == 2 * Fraction(45, 1000) ** 2
    True
    """
    return sum((_moved(column, place) ** 2 for column in columns), Fraction(0))


def cells(columns: Iterable[Mapping[str, Any]]) -> int:
    """Return how many cells a grid has."""
    return math.prod(int(column["pieces"]) for column in columns)


def changed(number: int, k: int, noise: Fraction) -> tuple[float, float] | None:
    """Return how many points noise adds or takes away: on average, and 19 times in 20, at most; None if not summed.

    >>> [round(each, 4) for each in changed(10, 5, Fraction(1))]
    [8.5092, 23.0792]
    """
    if noise < _SMALLEST_NOISE:
        return None
    ratio = math.exp(-float(noise))
    z = np.arange(1, math.ceil(_ENOUGH / float(noise)) + 2, dtype=np.float64)
    masses = 2.0 * (1.0 - ratio) / (1.0 + ratio) * np.exp(-float(noise) * z)
    mean = float(np.sum(z * masses))
    variance = float(np.sum(z * z * masses)) - mean**2
    most = float(number * (k - 1))
    return min(most, number * mean), min(most, number * mean + math.sqrt(19.0 * number * variance))


def _moved(column: Mapping[str, Any], place: str) -> Fraction:
    pieces = int(column["pieces"])
    if column["type"] == "decimal":
        low, high = Fraction(str(column["low"])), Fraction(str(column["high"]))
        ends = [Fraction(float(low + Fraction(j, pieces) * (high - low))) for j in range(pieces + 1)]
        middles = [Fraction(float(low + Fraction(2 * j + 1, 2 * pieces) * (high - low))) for j in range(pieces)]
        return max(_apart(ends[j], ends[j + 1], middles[j], place) for j in range(pieces)) / (high - low)
    first, last = (_day(end) if column["type"] == "date" else int(str(end)) for end in (column["low"], column["high"]))
    whole = last - first + 1
    starts = [first + j * whole // pieces for j in range(pieces + 1)]
    worst = Fraction(0)
    for here, there in itertools.pairwise(starts):
        middle = Fraction(here + there - 1, 2) if column["type"] == "integer" else Fraction((here + there - 1) // 2)
        worst = max(worst, _apart(Fraction(here), Fraction(there - 1), middle, place))
    return worst / whole


def _apart(first: Fraction, last: Fraction, middle: Fraction, place: str) -> Fraction:
    return last - first if place == "uniform" else max(middle - first, last - middle)


def _day(text: Any) -> int:
    return date.fromisoformat(str(text)).toordinal()
