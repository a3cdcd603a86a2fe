"""Missing ids: how many rows say of nobody whose they are; such rows take no part where people are protected."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from incrowd.core.reading import as_dictionary, read
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Engine, Rows
from incrowd.core.words import counted


@dataclass
class MissingIds:
    """Counts the rows whose id is missing, or cannot be read as its declared type.

    >>> ids = MissingIds(Column("patient"))
    >>> ids.add(pa.record_batch({"patient": ["a", None, "a"]}))
    >>> ids.rows
    1
    """

    column: Column
    rows: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Count in some rows."""
        values, indices = as_dictionary(batch.column(self.column.name))
        stored = read(values, self.column.type).values
        if indices is None:
            self.rows += stored.null_count
            return
        known = pa.concat_arrays([stored.is_valid(), pa.array([False])])  # the last index is that of a missing value
        self.rows += len(indices) - known.take(pa.array(indices)).true_count

    def merge(self, other: MissingIds) -> None:
        """Count what was counted elsewhere too."""
        self.rows += other.rows


def missing_ids(engine: Engine, rows: Rows, schema: Schema) -> tuple[str, ...]:
    """Say, to the data holder only, how many rows are left out for want of an id; nothing if there are none."""
    name = schema.unit.column
    if name is None:
        return ()
    found = engine.learn(rows, [name], partial(MissingIds, schema[name])).rows
    if not found:
        return ()
    return (f"left out: {counted(found, 'row')} without a value in {name!r}, which tells people apart",)
