"""Points: one row for each point that came out of a grid, in the order of the cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.keys import Codes, Keys
from incrowd.methods.shared.outcome import Outcome
from incrowd.methods.synthesis.points.accuracy import Accuracy
from incrowd.methods.synthesis.points.grid import PointGrid
from incrowd.methods.synthesis.points.steps import Placement

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

MEAN_ERROR = "error of a mean, 19 times in 20 at most"
_BATCH = 2**17


@dataclass(frozen=True, eq=False)
class Points(Outcome):
    """Points in cells, held as counts: every point of a cell lies at its center, or where its offsets say.

    `offsets` has for each axis and each point, in order, its place inside its cell (`Axis.inside`).
    """

    form: ClassVar[str] = "points"

    grid: PointGrid
    keys: Keys
    counts: NDArray[np.int64]
    accuracy: Accuracy
    offsets: tuple[NDArray[Any], ...] | None = None

    def __len__(self) -> int:
        return int(self.counts.sum())

    @property
    def place(self) -> Placement:
        """Where in their cells the points lie."""
        return Placement.CENTERS if self.offsets is None else Placement.UNIFORM

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the coordinates, known before a row is read."""
        return pa.schema([(axis.column.name, axis.storage(self.place)) for axis in self.grid.axes])

    def codes(self) -> list[Codes]:
        """Return for each axis the piece of each cell that has points."""
        return self.grid.cells.layout.unpack(self.keys)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Unfold the points batch by batch."""
        ends, total = np.cumsum(self.counts), len(self)
        for start in range(0, total, _BATCH):
            stop = min(start + _BATCH, total)
            first, last = np.searchsorted(ends, (start, stop - 1), side="right")
            times = np.diff(np.concatenate(([start], np.minimum(ends[first : last + 1], stop))))
            cells = self.grid.cells.layout.unpack(self.keys[first : last + 1])
            columns = [self._column(n, np.repeat(codes, times), slice(start, stop)) for n, codes in enumerate(cells)]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _column(self, number: int, codes: Codes, rows: slice) -> pa.Array:
        axis = self.grid.axes[number]
        values = axis.centers[codes] if self.offsets is None else axis.inside(codes, self.offsets[number][rows])
        kind = axis.storage(self.place)
        return pa.array(values.astype(np.int32)).cast(kind) if pa.types.is_date(kind) else pa.array(values, kind)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return how many points and cells there are, and what they say about slowly changing functions."""
        error = self.accuracy.mean_error(len(self))
        told = {} if error is None else {MEAN_ERROR: str(error)}
        return {
            "rows": len(self),
            "cells with points": len(self.keys),
            **told,
            "singling out": "a point is no one's record: it stands at a place that the grid and chance decide",
            "linkability": "points carry no identifiers, and are in the order of their cells",
            "inference": (
                "bounded by the claims above, for every attribute, whatever the attacker knows"
                if private
                else "not bounded: this release has no epsilon"
            ),
        }
