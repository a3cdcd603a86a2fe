"""Spool: rows that can be had only once, kept in a private temporary file so that they can be read again."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import ipc

from incrowd.engines.readers.columnar import Arrow

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Spooled:
    """The rows of a query or view, as it answered once.

    A query that is run again may answer in another order, or (with `random()` in it) with other rows, and the position
    of a row would no longer mean the same row.  The folder is readable by its owner only and removed with this object.
    """

    file: Arrow
    rows: int
    settings: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the answer."""
        return self.file.names

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the kept rows."""
        return self.file.read(columns)


def spool(batches: Iterator[pa.RecordBatch], schema: pa.Schema, settings: Mapping[str, str], note: str) -> Spooled:
    """Write the batches to a private temporary file and return them as something that can be read again."""
    folder = tempfile.mkdtemp(prefix="incrowd-rows-")
    try:
        path = Path(folder) / "rows.arrows"
        rows = 0
        with ipc.new_stream(path, schema) as file:
            for batch in batches:
                file.write_batch(batch)
                rows += batch.num_rows
        kept = Spooled(Arrow(path, tuple(schema.names), stream=True), rows, settings, (note,))
        weakref.finalize(kept, shutil.rmtree, folder, ignore_errors=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return kept
