"""Origins: where rows on a cluster come from: Parquet files, text files that tasks read whole, and Spark tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from incrowd.engines.columns import require
from incrowd.engines.readers.delimited import Delimited, open_delimited
from incrowd.engines.readers.dialect import SAMPLE_BYTES
from incrowd.engines.readers.reader import distinct
from incrowd.engines.spark.places import FilePieces, Piece, name_of
from incrowd.engines.spark.rows import ID, ROW, STAMP, Identified, StoredColumns, Texts, placeholders, stored_types
from incrowd.engines.spark.task import collect, column, explained, functions_of, is_remote, map_partitions
from incrowd.errors import InvalidParameter, SourceInvalid, SourceUnreadable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from incrowd.core.table import SourceOptions


@dataclass(frozen=True, eq=False)
class ParquetFiles:
    """A Parquet file or a folder of them; columns in the names of folders (partitions) are text."""

    load: Callable[[], DataFrame]
    """Lists the files again: Spark caches a listing as long as its frame."""
    stable = True  # a row is identified by its file and its number in it

    @cached_property
    def frame(self) -> DataFrame:
        """The files as they were listed first."""
        return self.load()

    @cached_property
    def names(self) -> tuple[str, ...]:
        return distinct(self.frame.columns)

    @cached_property
    def types(self) -> Mapping[str, pa.DataType]:
        return stored_types(self.frame)

    @cached_property
    def pieces(self) -> FilePieces:
        """The files with their numbers of rows, which Spark reads from the footers."""
        return FilePieces.of(self._listed())

    def check_ids(self) -> None:
        """Do nothing: a row is identified by its position."""

    def stamps(self) -> frozenset[int]:
        return frozenset(piece.stamp for piece in self._listed())

    def _listed(self) -> list[Piece]:
        with explained():
            frame = self.load()
            file = frame.metadataColumn("_metadata")
            files = frame.groupBy(file.file_path.alias("path"), _stamp(frame).alias(STAMP)).count()
        return _pieces(collect(files.withColumnRenamed("count", "rows")))

    @property
    def content(self) -> DataFrame:
        return self.load()

    def selected(self, columns: Sequence[str]) -> tuple[DataFrame, StoredColumns]:
        """Return the columns, followed by the stamp of each row's file and the row's number in it."""
        pieces = self.pieces
        with explained():
            frame = self.load()
            row = frame.metadataColumn("_metadata").row_index
            chosen = frame.select(*placeholders(frame, columns), _stamp(frame).alias(STAMP), row.alias(ROW))
        return chosen, StoredColumns(tuple(columns), pieces)


def _pieces(listed: pa.Table) -> list[Piece]:
    return [Piece(file[STAMP], file["path"], file["rows"]) for file in listed.to_pylist()]


def _stamp(frame: DataFrame) -> Column:
    file = frame.metadataColumn("_metadata")
    stamp: Column = functions_of(frame).xxhash64(file.file_path, file.file_size, file.file_modification_time)
    return stamp


LARGEST_BYTES = 1 << 26
"""A larger text file is refused: one task holds it whole, and Java several copies in a heap of 1 GiB by default."""


@dataclass(frozen=True, eq=False)
class TextFiles:
    """Delimited text; every cell is text, and the dialect of the first file applies to all."""

    load: Callable[[], DataFrame]
    """Lists the files again, a row for each: path, modificationTime, length, content."""
    options: SourceOptions
    first: Delimited
    files: int
    stable = True
    types: Mapping[str, pa.DataType] = field(default_factory=dict, init=False)

    @property
    def names(self) -> tuple[str, ...]:
        return self.first.names

    @cached_property
    def pieces(self) -> FilePieces:
        """The files with their numbers of rows: one pass over all of them."""
        counted = map_partitions(
            self._files, _Lengths(self._texts(self.names[:1])), "stamp bigint, path string, rows bigint"
        )
        return FilePieces.of(_pieces(collect(counted)))

    @property
    def content(self) -> DataFrame:
        """The hash of the bytes of each file, without its name: the bytes themselves would be copied several times."""
        frame = self.load()
        return frame.select(functions_of(frame).sha2("content", 256).alias("content"))

    def check_ids(self) -> None:
        """Do nothing: a row is identified by its position."""

    def stamps(self) -> frozenset[int]:
        return frozenset(collect(self._files.select(STAMP)).column(STAMP).to_pylist())

    def selected(self, columns: Sequence[str]) -> tuple[DataFrame, Texts]:
        """Return the files, and how tasks parse these columns."""
        return self._files, replace(self._texts(columns), pieces=self.pieces)

    def unplaced(self, columns: Sequence[str]) -> tuple[DataFrame, Texts]:
        """Return the files, and how tasks parse these columns without positions: no pass counts the rows before."""
        return self._files, self._texts(columns)

    def _texts(self, columns: Sequence[str]) -> Texts:
        return Texts(self.names, tuple(columns), self.options)

    @property
    def _files(self) -> DataFrame:
        with explained():
            frame = self.load()
            return frame.select(_text_stamp(frame).alias(STAMP), "path", "content")


@dataclass(frozen=True)
class _Lengths:
    """Counts the rows of each file."""

    texts: Texts

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for stamp, path, reader in self.texts.files(batches):
            rows = sum(batch.num_rows for batch in reader.read(self.texts.columns))
            yield pa.record_batch({STAMP: pa.array([stamp]), "path": [path], "rows": pa.array([rows])})


def open_texts(load: Callable[[], DataFrame], options: SourceOptions) -> TextFiles:
    """Open text files; what is not declared about their dialect is read from the first lines of the first file."""
    frame = load()
    listed = sorted(collect(frame.select("path", "length")).to_pylist(), key=lambda file: str(file["path"]))
    if not listed:
        raise SourceUnreadable("no file was found at this address. Check the path.")
    for file in listed:
        if file["length"] > LARGEST_BYTES:
            raise SourceUnreadable(
                f"{name_of(file['path'])} is larger than {LARGEST_BYTES >> 20} MiB, and on a cluster one task reads a "
                "text file whole. Split it into several files, or write it as Parquet."
            )
    path = str(listed[0]["path"])
    functions = functions_of(frame)
    start = functions.substring("content", 1, 2 * SAMPLE_BYTES).alias("start")
    content = collect(frame.where(functions.col("path") == path).select(start)).column("start")[0].as_py()
    first = open_delimited(Path(name_of(path)), options, content)
    settled = replace(options, delimiter=first.dialect.delimiter, encoding=first.dialect.encoding)
    return TextFiles(load, settled, first, len(listed))


def _text_stamp(frame: DataFrame) -> Column:
    stamp: Column = functions_of(frame).xxhash64("path", "length", "modificationTime")
    return stamp


@dataclass(frozen=True, eq=False)
class SparkTable:
    """A table that Spark reads; without an id its rows can be counted, not sampled."""

    frame: DataFrame
    id: str | None
    pieces: None = field(default=None, init=False)  # there is no order, so rows have no positions

    @cached_property
    def names(self) -> tuple[str, ...]:
        return distinct(self.frame.columns)

    @cached_property
    def types(self) -> Mapping[str, pa.DataType]:
        return stored_types(self.frame)

    @property
    def stable(self) -> bool:
        return self.id is not None

    def stamps(self) -> frozenset[int]:
        """Return nothing: there are no files."""
        return frozenset()

    @property
    def content(self) -> DataFrame:
        return self.frame

    def selected(self, columns: Sequence[str]) -> tuple[DataFrame, Identified]:
        """Return the columns, followed by the id."""
        ids = [] if self.id is None else [column(self.frame, self.id).alias(ID)]
        chosen = [*placeholders(self.frame, columns), *ids] or placeholders(self.frame, self.names[:1])
        return self.frame.select(*chosen), Identified(tuple(columns), has_id=self.id is not None)

    def check_ids(self) -> None:
        """Raise unless every row has an id and no two rows have the same: different rows never share a coin."""
        functions = functions_of(self.frame)
        if self.id is None:
            return
        rows = self.frame.groupBy(column(self.frame, self.id).alias(ID)).count()
        bad = rows.where(functions.col(ID).isNull() | (functions.col("count") > 1)).limit(1)
        if collect(bad.select("count")).num_rows:
            raise SourceInvalid(
                f"the id column {self.id} does not identify rows: some have no id, or the same as others. Rows that "
                "share an id would share their randomness. Name a column that is unique."
            )


def open_table(frame: DataFrame, id_column: str | None) -> SparkTable:
    """Open a frame; its id is a column of whole numbers or of text."""
    from pyspark.sql.types import IntegralType, StringType

    if id_column is not None:
        require(frame.columns, [id_column])
        kind = frame.schema[id_column].dataType
        if not isinstance(kind, IntegralType | StringType):
            raise InvalidParameter(f"the id column {id_column} must hold whole numbers or text.")
        _require_steady(frame)
    return SparkTable(frame, id_column)


def _require_steady(frame: DataFrame) -> None:
    """Raise if rows or ids are random or numbered in each pass; over Spark Connect this cannot be seen."""
    if not is_remote(frame) and not frame._jdf.queryExecution().analyzed().deterministic():  # noqa: SLF001  no public way
        raise InvalidParameter(
            "rows or ids of this frame differ whenever it is read (rand, uuid, monotonically_increasing_id, a function "
            "of your own), so a row would not keep its randomness. Write it to Parquet first."
        )
