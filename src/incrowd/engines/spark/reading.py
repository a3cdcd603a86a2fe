"""PartitionReading: what Spark hands to a worker becomes batches of named columns, with the place of every row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from incrowd.engines.readers.delimited import Delimited, open_delimited
from incrowd.engines.readers.dialect import DialectOptions
from incrowd.engines.readers.plain import plain_batch
from incrowd.engines.spark.pieces import FilePieces, name_of
from incrowd.engines.spark.places import Places, Positions, ids_of
from incrowd.errors import SourceUnreadable

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Slice:
    """Some rows, and what tells them apart, None if nothing does; and how many were read with them and left out."""

    batch: pa.RecordBatch
    places: Places | None
    left_out: int = 0

    @property
    def read(self) -> int:
        """How many rows were read, those that were left out too."""
        return int(self.batch.num_rows) + self.left_out


class PartitionReading(Protocol):
    """How a partition is read."""

    def slices(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Slice]:
        """Return the rows of a partition, some at a time."""


@dataclass(frozen=True)
class StoredColumns:
    """Columns as Spark read them, in this order; behind them the stamp of each row's file and its place in there."""

    columns: tuple[str, ...]
    pieces: FilePieces

    def slices(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Slice]:
        """Return the rows of a partition with their positions."""
        for raw in batches:
            stamps, rows = (raw.column(at).to_numpy(zero_copy_only=False) for at in (-2, -1))
            yield Slice(_named(raw, self.columns), Positions(self.pieces.positions(stamps, rows)))


@dataclass(frozen=True)
class Identified:
    """Columns as Spark read them, in this order, and behind them the id of each row, if there is one."""

    columns: tuple[str, ...]
    has_id: bool

    def slices(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Slice]:
        """Return the rows of a partition with their ids."""
        for raw in batches:
            yield Slice(_named(raw, self.columns), ids_of(raw.column(-1)) if self.has_id else None)


@dataclass(frozen=True)
class Texts:
    """Whole text files, each a row of stamp, path and bytes: parsed by the reader that this machine would use too.

    A file is read by one task from its first byte on, so that quoted line breaks, encodings and ragged lines are
    treated as on a single machine, and the place of a row in its file is certain.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    wanted: DialectOptions
    nulls: tuple[str, ...]
    pieces: FilePieces | None = None

    def files(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, str, Delimited]]:
        """Return each file's stamp and path with a reader of its bytes, which stay in memory."""
        for raw in batches:
            for at in range(raw.num_rows):
                stamp, path, content = (raw.column(place)[at].as_py() for place in range(3))
                yield stamp, path, self._opened(Path(name_of(path)), content)

    def slices(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Slice]:
        """Return the rows of a partition with their positions."""
        for stamp, _, reader in self.files(batches):
            done = 0
            for batch in reader.read(self.columns):
                yield Slice(plain_batch(batch), self._positions(stamp, done, batch.num_rows))
                done += batch.num_rows

    def _positions(self, stamp: int, done: int, rows: int) -> Positions | None:
        if self.pieces is None:
            return None
        start = self.pieces.start(stamp, done + rows) + done
        return Positions(np.arange(start, start + rows))

    def _opened(self, name: Path, content: bytes) -> Delimited:
        reader = open_delimited(name, self.wanted, self.nulls, content)
        if reader.names != self.names:
            raise SourceUnreadable(
                f"{name} has other columns than the first file, or in another order. Files in one folder need the same "
                "columns."
            )
        return reader


def _named(raw: pa.RecordBatch, columns: tuple[str, ...]) -> pa.RecordBatch:
    return plain_batch(raw.select(list(range(len(columns)))).rename_columns(list(columns)))
