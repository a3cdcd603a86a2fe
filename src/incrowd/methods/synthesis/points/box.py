"""Box: the sides of a grid as a certificate states them, measured again piece by piece, and what noise does to cells.

This file imports neither the accountants nor the grid that made the points: every piece of every side is measured, and
the moments of the noise are summed term by term.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from datetime import date
from fractions import Fraction

import numpy as np

from incrowd.core.domain import ENUMERABLE, Type
from incrowd.core.schema import Outside
from incrowd.methods.synthesis.points.steps import Place, Side

_EPOCH = date(1970, 1, 1).toordinal()
_SMALLEST_NOISE = Fraction(1, 10**4)  # below, the sums of the noise become too long to write out
_ENOUGH = 60.0


def ends(side: Side) -> tuple[Fraction, Fraction]:
    """Return the bounds of a side; a day is its number, counted from 1970.

    >>> ends(Side("day", Type.DATE, "1970-01-01", "1970-01-10", 2, "row is left out", Outside.ENDS))
    (Fraction(0, 1), Fraction(9, 1))
    """
    if side.type is Type.DATE:
        first, last = (date.fromisoformat(text).toordinal() - _EPOCH for text in (side.low, side.high))
        return Fraction(first), Fraction(last)
    return Fraction(side.low), Fraction(side.high)


def impossible(side: Side) -> bool:
    """Whether no grid has such a side: without order between its bounds, or in more pieces than can be told apart."""
    try:
        low, high = ends(side)
    except (ValueError, ZeroDivisionError):
        return True
    whole = low.denominator == high.denominator == 1
    if side.type is Type.TEXT or side.outside is Outside.OTHER or not 1 <= side.pieces <= ENUMERABLE:
        return True
    if side.type is not Type.DECIMAL:
        return not whole or side.pieces > high - low + 1
    return low >= high or any(here >= there for here, there in itertools.pairwise(cuts(side)))


def cuts(side: Side) -> list[int] | list[float]:
    """Return where the pieces of a side begin, and last where it ends: beyond the last whole number or day.

    >>> cuts(Side("age", Type.INTEGER, "0", "9", 4, "row is left out", Outside.ENDS))
    [0, 2, 5, 7, 10]
    """
    low, high = ends(side)
    if side.type is Type.DECIMAL:
        return [float(low + Fraction(piece, side.pieces) * (high - low)) for piece in range(side.pieces + 1)]
    first, number = int(low), int(high - low) + 1
    return [first + piece * number // side.pieces for piece in range(side.pieces + 1)]


def middles(side: Side) -> list[int] | list[float]:
    """Return the center of each piece; of an even number of days it is a day before the middle.

    >>> middles(Side("age", Type.INTEGER, "0", "9", 4, "row is left out", Outside.ENDS))
    [0.5, 3.0, 5.5, 8.0]
    """
    low, high = ends(side)
    if side.type is Type.DECIMAL:
        halves = range(1, 2 * side.pieces, 2)
        return [float(low + Fraction(half, 2 * side.pieces) * (high - low)) for half in halves]
    pairs = itertools.pairwise(cuts(side))
    if side.type is Type.DATE:
        return [int(here + there - 1) // 2 for here, there in pairs]
    return [float(Fraction(here + there - 1) / 2) for here, there in pairs]


def reach_squared(sides: Iterable[Side], place: Place) -> Fraction:
    """Return the square of how far a value and its point are apart at most, sides of the box being 1 long.

    >>> side = Side("age", Type.INTEGER, "0", "99", 10, "row is left out", Outside.ENDS)
    >>> reach_squared([side, side], Place.CENTERS) == 2 * Fraction(45, 1000) ** 2
    True
    """
    return sum((_reach(side, place) ** 2 for side in sides), Fraction(0))


def changed(number: int, k: int, noise: Fraction) -> tuple[float, float] | None:
    """Return how many points noise adds or takes away: on average, and 19 times in 20, at most; None if not summed.

    >>> [round(each, 4) for each in changed(10, 5, Fraction(1))]
    [8.5092, 23.0792]
    """
    if noise < _SMALLEST_NOISE:
        return None
    each = min(float(noise), 700.0)
    ratio = math.exp(-each)
    z = np.arange(1, math.ceil(_ENOUGH / each) + 2, dtype=np.float64)
    masses = 2.0 * (1.0 - ratio) / (1.0 + ratio) * np.exp(-each * z)
    mean = float(np.sum(z * masses))
    variance = float(np.sum(z * z * masses)) - mean**2
    most = float(number * (k - 1))
    return min(most, number * mean), min(most, number * mean + math.sqrt(19.0 * number * variance))


def _reach(side: Side, place: Place) -> Fraction:
    low, high = ends(side)
    step = 0 if side.type is Type.DECIMAL else 1
    worst = Fraction(0)
    for (here, there), middle in zip(itertools.pairwise(cuts(side)), middles(side), strict=True):
        first, last, center = Fraction(here), Fraction(there) - step, Fraction(middle)
        worst = max(worst, last - first if place is Place.UNIFORM else max(center - first, last - center))
    return worst / (high - low + step)
