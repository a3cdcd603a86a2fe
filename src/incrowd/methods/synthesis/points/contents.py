"""Contents: published points, read again and put into the cells of the stated box, one after another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.domain import ENUMERABLE, Type
from incrowd.core.reading import read
from incrowd.core.schema import Outside
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.points.steps import Placement, Side

_EPOCH = date(1970, 1, 1).toordinal()
_SMALLEST_NOISE = Fraction(1, 10**4)  # below, the sums of the noise become too long to write out
_ENOUGH = 60.0


def ends(side: Side) -> tuple[Fraction, Fraction]:
    """Return the bounds of a side; a day is its number, counted from 1970.

    >>> ends(Side("day", Type.DATE, "1970-01-01", "1970-01-10", 2, Outside.ENDS))
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


def _pieces(side: Side) -> int:
    """Return the number of pieces, which must be such that they can be listed."""
    if side.pieces > ENUMERABLE:
        raise InvalidParameter(f"a side of a box has at most {ENUMERABLE:,} pieces.")
    return side.pieces


def cuts(side: Side) -> list[int] | list[float]:
    """Return where the pieces of a side begin, and last where it ends: beyond the last whole number or day.

    >>> cuts(Side("age", Type.INTEGER, "0", "9", 4, Outside.ENDS))
    [0, 2, 5, 7, 10]
    """
    low, high = ends(side)
    if side.type is Type.DECIMAL:
        return [float(low + Fraction(piece, side.pieces) * (high - low)) for piece in range(_pieces(side) + 1)]
    first, number = int(low), int(high - low) + 1
    return [first + piece * number // side.pieces for piece in range(_pieces(side) + 1)]


def middles(side: Side) -> list[int] | list[float]:
    """Return the center of each piece; of an even number of days it is a day before the middle.

    >>> middles(Side("age", Type.INTEGER, "0", "9", 4, Outside.ENDS))
    [0.5, 3.0, 5.5, 8.0]
    """
    low, high = ends(side)
    if side.type is Type.DECIMAL:
        halves = range(1, 2 * _pieces(side), 2)
        return [float(low + Fraction(half, 2 * side.pieces) * (high - low)) for half in halves]
    pairs = itertools.pairwise(cuts(side))
    if side.type is Type.DATE:
        return [int(here + there - 1) // 2 for here, there in pairs]
    return [float(Fraction(here + there - 1) / 2) for here, there in pairs]


def reach_squared(sides: Iterable[Side], place: Placement) -> Fraction:
    """Return the square of how far a value and its point are apart at most, sides of the box being 1 long.

    >>> side = Side("age", Type.INTEGER, "0", "99", 10, Outside.ENDS)
    >>> reach_squared([side, side], Placement.CENTERS) == 2 * Fraction(45, 1000) ** 2
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


def _reach(side: Side, place: Placement) -> Fraction:
    low, high = ends(side)
    step = 0 if side.type is Type.DECIMAL else 1
    worst = Fraction(0)
    for (here, there), middle in zip(itertools.pairwise(cuts(side)), middles(side), strict=True):
        first, last, center = Fraction(here), Fraction(there) - step, Fraction(middle)
        worst = max(worst, last - first if place is Placement.UNIFORM else max(center - first, last - center))
    return worst / (high - low + step)


Numbers = NDArray[np.int64]
Pieces = tuple[NDArray[Any], NDArray[Any]]
"""Where the pieces of a side begin, and their centers."""


@dataclass(frozen=True, eq=False)
class Contents:
    """What a table of points holds: one cell after another, a piece of each side, and how many points are in it.

    `misplaced` points are missing, outside the box or not where a cell puts its points; cells that are not `ordered`
    may be there more than once.
    """

    cells: Numbers
    counts: Numbers
    misplaced: int
    ordered: bool

    @property
    def total(self) -> int:
        """How many points there are."""
        return int(self.counts.sum())


def contents(sides: tuple[Side, ...], place: Placement, batches: Iterable[pa.RecordBatch]) -> Contents:
    """Go through all points; those of a cell stand together, so a cell ends where the next point has another."""
    pieces = [(np.asarray(cuts(side)), np.asarray(middles(side))) for side in sides]
    cells, counts = [np.zeros((0, len(sides)), np.int64)], [np.zeros(0, np.int64)]
    misplaced = 0
    for batch in batches:
        columns = [_placed(side, place, batch.column(number), pieces[number]) for number, side in enumerate(sides)]
        good = np.logical_and.reduce([flags for _, flags in columns])
        misplaced += int(np.count_nonzero(~good))
        points = np.stack([codes[good] for codes, _ in columns], axis=1)
        starts = np.flatnonzero(np.any(points[1:] != points[:-1], axis=1)) + 1
        first = np.concatenate([np.zeros(min(1, len(points)), np.int64), starts])
        cells.append(points[first])
        counts.append(np.diff(np.append(first, len(points))))
    return _joined(np.concatenate(cells), np.concatenate(counts), misplaced)


def _joined(cells: Numbers, counts: Numbers, misplaced: int) -> Contents:
    """Join what two batches hold of one cell, and see whether each cell comes after the one before."""
    new = np.append(np.ones(min(1, len(cells)), bool), np.any(cells[1:] != cells[:-1], axis=1))
    each = np.add.reduceat(counts, np.flatnonzero(new)) if len(counts) else counts
    return Contents(cells[new], each, misplaced, _rising(cells[new]))


def _rising(cells: Numbers) -> bool:
    """Whether each cell comes after the one before: larger at the first side at which they differ."""
    higher = np.zeros(max(0, len(cells) - 1), bool)
    same = ~higher
    for column in cells.T:
        higher |= same & (column[1:] > column[:-1])
        same &= column[1:] == column[:-1]
    return bool(np.all(higher))


def _placed(side: Side, place: Placement, column: pa.Array, pieces: Pieces) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return the piece of each coordinate, and whether it is where a point of that piece can be."""
    limits, centers = pieces
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    centered = side.type is Type.INTEGER and place is Placement.CENTERS
    values = read(plain, Type.DECIMAL if centered else side.type).values
    known = values.is_valid().to_numpy(zero_copy_only=False)
    stored = values.cast(pa.int32()) if pa.types.is_date(values.type) else values
    numbers = pc.fill_null(stored, 0).to_numpy(zero_copy_only=False)
    codes = np.searchsorted(limits[1:-1], numbers, side="right").astype(np.int64)
    highest = limits[-1] if side.type is Type.DECIMAL else limits[-1] - 1
    inside = known & (numbers >= limits[0]) & (numbers <= highest)
    return codes, inside & (numbers == centers[codes]) if place is Placement.CENTERS else inside
