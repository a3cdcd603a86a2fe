"""Raw cells: a table without recoding, each value unchanged, missing values a class of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.domain import Type
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Role
from incrowd.core.table import Engine, Rows
from incrowd.engines.local.engine import LOCAL


def as_is(rows: Rows, names: Sequence[str], engine: Engine = LOCAL) -> Cells:
    """Return the cells of these columns as stored; only their types are read.

    >>> from incrowd.engines.readers.sources import open_source
    >>> cells = as_is(open_source(pa.table({"zip": ["02139"], "pay": [1.5]})), ["zip", "pay"])
    >>> [str(recoding.column.type) for recoding in cells.recodings]
    ['text', 'decimal']
    """
    stored = engine.types(rows, names)
    # Floating-point numbers stay numbers: writing out each of them would take longer than all the rest.
    kinds = {name: Type.DECIMAL if pa.types.is_floating(stored[name]) else Type.TEXT for name in names}
    return Cells(tuple(Recoding(Column(name, Role.QUASI, kinds[name]), 0) for name in names))


class StoredIntegers:
    """The values of one column, as long as they are stored as integers; summaries of parts of the rows can be merged.

    >>> numbers = StoredIntegers()
    >>> numbers.add(pa.record_batch({"visit": [8, 5, 8, None]}))
    >>> numbers.multiplicities().tolist()
    [1, 2, 1]
    """

    def __init__(self) -> None:
        self.parts: list[NDArray[np.integer]] | None = []
        self.missing = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add some rows."""
        array = batch.column(0)
        if self.parts is None or not pa.types.is_integer(array.type):
            self.parts = None
            return
        self.missing += array.null_count
        self.parts.append(array.drop_null().to_numpy(zero_copy_only=False))

    def merge(self, other: StoredIntegers) -> None:
        """Add the rows of another summary."""
        self.parts = None if self.parts is None or other.parts is None else [*self.parts, *other.parts]
        self.missing += other.missing

    def multiplicities(self) -> NDArray[np.int64]:
        """Return how many rows each value has, in order, missing ones last; nothing for other types."""
        if not self.parts:
            return np.zeros(0, np.int64)
        values = np.sort(np.concatenate(self.parts))
        starts = np.flatnonzero(np.concatenate((np.ones(min(1, len(values)), bool), values[1:] != values[:-1])))
        return np.append(np.diff(starts, append=len(values)), [self.missing] * bool(self.missing))
