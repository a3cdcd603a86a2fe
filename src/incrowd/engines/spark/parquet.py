"""Parquet files on a cluster: Spark says of every row in which file it lies, and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from incrowd.engines.readers.reader import distinct
from incrowd.engines.spark.failures import explained
from incrowd.engines.spark.functions import functions_of
from incrowd.engines.spark.pieces import FilePieces, Piece
from incrowd.engines.spark.reading import StoredColumns
from incrowd.engines.spark.rows import ROW, STAMP, stood_in, stored_types
from incrowd.engines.spark.task import collected

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True, eq=False)
class ParquetFiles:
    """A Parquet file or a folder of them; columns kept in the names of folders are text."""

    load: Callable[[], DataFrame]
    """Lists the files anew: Spark remembers a listing as long as its frame."""

    @cached_property
    def frame(self) -> DataFrame:
        """The files as they were listed first."""
        return self.load()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return distinct(self.frame.columns)

    @cached_property
    def types(self) -> Mapping[str, pa.DataType]:
        """The types of the columns."""
        return stored_types(self.frame)

    @property
    def stable(self) -> bool:
        """A row is told by its file and its place in there."""
        return True

    @cached_property
    def pieces(self) -> FilePieces:
        """The files with their numbers of rows, which Spark takes from the footers."""
        return FilePieces.of(self._listed())

    def stamps(self) -> frozenset[int]:
        """Look at the files once more, not into them, and return their stamps."""
        return frozenset(piece.stamp for piece in self._listed())

    def _listed(self) -> list[Piece]:
        with explained():
            frame = self.load()
            file = frame.metadataColumn("_metadata")
            found = frame.groupBy(file.file_path.alias("path"), _stamp(frame).alias(STAMP)).count()
        listed = collected(found.select(STAMP, "path", "count")).to_pylist()
        return [Piece(each[STAMP], each["path"], each["count"]) for each in listed]

    @property
    def content(self) -> DataFrame:
        """All columns."""
        return self.load()

    def selected(self, columns: Sequence[str]) -> tuple[DataFrame, StoredColumns]:
        """Return the columns, and behind them the stamp of each row's file and the row's place in it."""
        pieces = self.pieces
        with explained():
            frame = self.load()
            row = frame.metadataColumn("_metadata").row_index
            chosen = frame.select(*stood_in(frame, columns), _stamp(frame).alias(STAMP), row.alias(ROW))
        return chosen, StoredColumns(tuple(columns), pieces)


def _stamp(frame: DataFrame) -> Column:
    file = frame.metadataColumn("_metadata")
    stamp: Column = functions_of(frame).xxhash64(file.file_path, file.file_size, file.file_modification_time)
    return stamp
