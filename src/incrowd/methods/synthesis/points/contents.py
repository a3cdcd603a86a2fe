"""Contents: published points, read again and put into the cells of the stated box, one after another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.domain import Type
from incrowd.core.reading import read
from incrowd.methods.synthesis.points.box import cuts, middles
from incrowd.methods.synthesis.points.steps import Place, Side

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


def contents(sides: tuple[Side, ...], place: Place, batches: Iterable[pa.RecordBatch]) -> Contents:
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


def _placed(side: Side, place: Place, column: pa.Array, pieces: Pieces) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return the piece of each coordinate, and whether it is where a point of that piece can be."""
    limits, centers = pieces
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    centered = side.type is Type.INTEGER and place is Place.CENTERS
    values = read(plain, Type.DECIMAL if centered else side.type).values
    known = values.is_valid().to_numpy(zero_copy_only=False)
    stored = values.cast(pa.int32()) if pa.types.is_date(values.type) else values
    numbers = pc.fill_null(stored, 0).to_numpy(zero_copy_only=False)
    codes = np.searchsorted(limits[1:-1], numbers, side="right").astype(np.int64)
    highest = limits[-1] if side.type is Type.DECIMAL else limits[-1] - 1
    inside = known & (numbers >= limits[0]) & (numbers <= highest)
    return codes, inside & (numbers == centers[codes]) if place is Place.CENTERS else inside
