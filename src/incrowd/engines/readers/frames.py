"""Frames in memory: pandas, Polars, Arrow and whatever else speaks the Arrow C stream interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from incrowd.engines.readers.reader import BATCH_ROWS, distinct
from incrowd.errors import SourceUnreadable


@dataclass(frozen=True)
class Frame:
    """A table in memory; its rows are not copied where the frame's maker shares them."""

    table: pa.Table

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.table.column_names)

    @property
    def rows(self) -> int | None:
        """The length of the table."""
        length: int = self.table.num_rows
        return length

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The types of the table's columns."""
        return dict(zip(self.table.schema.names, self.table.schema.types, strict=True))

    @property
    def settings(self) -> Mapping[str, str]:
        """Nothing to choose."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing was guessed."""
        return ()

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Hand out slices of the table."""
        if columns:
            yield from self.table.select(list(columns)).to_batches(max_chunksize=BATCH_ROWS)
        else:
            for start in range(0, self.table.num_rows, BATCH_ROWS):
                rows = min(BATCH_ROWS, self.table.num_rows - start)
                yield pa.record_batch({"": pa.nulls(rows)}).select([])


def open_frame(frame: object) -> Frame:
    """Take a frame as it is now; a named index of a pandas frame is a column, an unnamed one is not.

    >>> open_frame(pa.table({"zip": ["01234"]})).names
    ('zip',)
    """
    if isinstance(frame, pa.RecordBatchReader):
        raise SourceUnreadable("a RecordBatchReader can be read once, and rows are read more than once. Pass a table.")
    if not hasattr(frame, "__arrow_c_stream__") and not isinstance(frame, pa.RecordBatch):
        hint = " Call .collect() on it first." if hasattr(frame, "collect") else ""
        raise SourceUnreadable(
            f"a {type(frame).__name__} is no table that can be read: pass a path, or a frame with the Arrow C stream "
            f"interface (pandas 2.2 or later, Polars, PyArrow).{hint}"
        )
    table: pa.Table | None = None
    try:
        table = pa.Table.from_batches([frame]) if isinstance(frame, pa.RecordBatch) else pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError):
        table = None
    if table is None:
        raise SourceUnreadable(
            "the frame cannot be read as Arrow: two columns share a name, or a column mixes types of values."
        )
    kept = [index for index, name in enumerate(table.column_names) if not name.startswith("__index_level_")]
    distinct([table.column_names[index] for index in kept])
    return Frame(table.select(kept).replace_schema_metadata(None))
