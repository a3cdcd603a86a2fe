"""Contents: the published points read again, and held against the grid of their certificate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.certificate import Certificate
from incrowd.core.domain import Type
from incrowd.core.keys import Codes, Keys, grouped
from incrowd.core.reading import read
from incrowd.engines.readers.sources import open_source
from incrowd.methods.synthesis.grid import Axis, Grid, Place
from incrowd.workflows.forms.checks import steps_of


@dataclass(frozen=True, eq=False)
class Contents:
    """What a file of points holds: its columns, the cells with points in order, and what is out of place in it."""

    names: tuple[str, ...]
    keys: Keys
    counts: NDArray[np.int64]
    misplaced: int = 0
    ordered: bool = True

    @property
    def total(self) -> int:
        """How many points there are."""
        return int(self.counts.sum())


def grid_of(certificate: Certificate) -> Grid:
    """Return the grid as the certificate's steps tell it."""
    return Grid.from_json(steps_of(certificate)["grid"]["columns"])


def place_of(certificate: Certificate) -> Place:
    """Return where in their cells points are put, as the steps tell it."""
    return Place(str(steps_of(certificate)["place points"]["at"]))


def contents(certificate: Certificate, file: Path) -> Contents:
    """Read a file of points batch by batch; a point that is missing, outside, or not at a center is misplaced."""
    grid, place, source = grid_of(certificate), place_of(certificate), open_source(str(file))
    layout, misplaced, ordered = grid.cells.layout, 0, True
    found = [(np.zeros(0, layout.dtype), np.zeros(0, np.int64))]
    if tuple(source.names) != grid.names:
        return Contents(tuple(source.names), *found[0])
    for batch in source.batches(grid.names):
        placed = [_placed(axis, place, batch.column(n)) for n, axis in enumerate(grid.axes)]
        good = np.logical_and.reduce([flags for _, flags in placed])
        misplaced += int(len(good) - good.sum())
        keys = layout.pack([codes[good] for codes, _ in placed])
        ends = np.concatenate([found[-1][0][-1:], keys])
        ordered = ordered and not bool(np.any(ends[1:] < ends[:-1]))
        found.append(grouped(keys))
    keys, counts = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Contents(tuple(source.names), *grouped(keys, counts), misplaced, ordered)


def _placed(axis: Axis, place: Place, column: pa.Array) -> tuple[Codes, NDArray[np.bool_]]:
    """Return the piece of each coordinate, and whether it is where a point of that piece can be."""
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    kind = Type.DECIMAL if pa.types.is_floating(axis.storage(place)) else axis.column.type
    values = read(plain, kind).values
    known = values.is_valid().to_numpy(zero_copy_only=False)
    stored = values.cast(pa.int32()) if pa.types.is_date(values.type) else values
    numbers = pc.fill_null(stored, 0).to_numpy(zero_copy_only=False)
    codes = axis.codes(pa.array(numbers))
    ends = axis.slices.ends
    highest = ends[-1] - 1 if axis.slices.whole else ends[-1]
    inside = known & (numbers >= ends[0]) & (numbers <= highest)
    return codes, inside & (numbers == axis.centers[codes]) if place is Place.CENTERS else inside
