"""RowSelection: which rows of a database are meant; and rows that can be had only once, kept to be read again."""

from __future__ import annotations

import difflib
import mmap
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc

from incrowd.engines.readers.columnar import stored_batches
from incrowd.errors import InvalidParameter, SourceUnreadable


@dataclass(frozen=True)
class RowSelection:
    """A table or view by name, or a query; neither, if the database has a single table."""

    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        """Check that at most one is given."""
        if self.table is not None and self.query is not None:
            raise InvalidParameter("table and query are given both. Say which table, or ask a query, not both.")


def pick_table(path: Path | str, tables: Sequence[str], wanted: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the table that is meant, and what was guessed.

    >>> pick_table(Path("clinic.sqlite"), ["visits"], None)
    ('visits', ('the only table is read: visits',))
    """
    if not tables:
        raise SourceUnreadable(f"{path} has no tables. Is this the right file?")
    if wanted is not None and wanted in tables:
        return wanted, ()
    if wanted is None and len(tables) == 1:
        return tables[0], (f"the only table is read: {tables[0]}",)
    listed = ", ".join(tables)
    if wanted is None:
        raise InvalidParameter(f"{path} has several tables: {listed}. Say which, for example {path}::{tables[0]}")
    near = difflib.get_close_matches(wanted, tables, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"It has: {listed}."
    raise SourceUnreadable(f"{path} has no table {wanted}. {hint}")


@dataclass(frozen=True)
class SpooledRows:
    """The rows of a query or view, as it answered once.

    A query that is run again may answer in another order, or (with `random()` in it) with other rows, and the position
    of a row would no longer mean the same row.  They are in a file without a name, which ends with this object, or with
    the process however that ends.
    """

    content: pa.Buffer
    """The file, as an Arrow stream."""
    names: tuple[str, ...]
    rows: int
    settings: Mapping[str, str]
    notes: tuple[str, ...]

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the kept rows."""
        return stored_batches(pa.BufferReader(self.content), self.names, columns, stream=True)


def spool(batches: Iterator[pa.RecordBatch], schema: pa.Schema, settings: Mapping[str, str], note: str) -> SpooledRows:
    """Write the batches to an unnamed file and return them as something that can be read again."""
    rows = 0
    with tempfile.TemporaryFile(prefix="incrowd-") as file:
        with ipc.new_stream(pa.PythonFile(file, mode="w"), schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
                rows += batch.num_rows
        file.flush()
        content = pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))  # it outlives the descriptor
    return SpooledRows(content, tuple(schema.names), rows, settings, (note,))
