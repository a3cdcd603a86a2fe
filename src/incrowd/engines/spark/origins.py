"""Origins: where rows on a cluster come from: Parquet files, text files that tasks read whole, and tables of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from incrowd.engines.columns import require
from incrowd.engines.readers.delimited import Delimited, open_delimited
from incrowd.engines.readers.dialect import SAMPLE_BYTES, DialectOptions
from incrowd.engines.readers.reader import distinct
from incrowd.engines.spark.failures import explained
from incrowd.engines.spark.pieces import FilePieces, Piece, name_of
from incrowd.engines.spark.reading import Identified, StoredColumns, Texts
from incrowd.engines.spark.rows import ID, ROW, STAMP, placeholders, stored_types
from incrowd.engines.spark.task import collect, column, functions_of, is_remote, map_partitions
from incrowd.errors import InvalidParameter, SourceInvalid, SourceUnreadable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from incrowd.core.table import SourceOptions


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

    def check_ids(self) -> None:
        """Do nothing: a row is told by its place."""

    def stamps(self) -> frozenset[int]:
        """Look at the files once more, not into them, and return their stamps."""
        return frozenset(piece.stamp for piece in self._listed())

    def _listed(self) -> list[Piece]:
        with explained():
            frame = self.load()
            file = frame.metadataColumn("_metadata")
            found = frame.groupBy(file.file_path.alias("path"), _stamp(frame).alias(STAMP)).count()
        listed = collect(found.select(STAMP, "path", "count")).to_pylist()
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
            chosen = frame.select(*placeholders(frame, columns), _stamp(frame).alias(STAMP), row.alias(ROW))
        return chosen, StoredColumns(tuple(columns), pieces)


def _stamp(frame: DataFrame) -> Column:
    file = frame.metadataColumn("_metadata")
    stamp: Column = functions_of(frame).xxhash64(file.file_path, file.file_size, file.file_modification_time)
    return stamp


LARGEST_BYTES = 1 << 26
"""A larger text file is refused: one task holds it whole, and Java several copies of it, in a gigabyte by default."""


@dataclass(frozen=True, eq=False)
class TextFiles:
    """Delimited text; every cell is text, and what the first file looks like holds for all."""

    load: Callable[[], DataFrame]
    """Lists the files anew, a row for each: path, modificationTime, length, content."""
    wanted: DialectOptions
    nulls: tuple[str, ...]
    first: Delimited
    files: int

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the header, or those that were told."""
        return self.first.names

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """Nothing is stored but text, which may hold anything."""
        return {}

    @property
    def stable(self) -> bool:
        """A row is told by its file and its place in there."""
        return True

    @cached_property
    def pieces(self) -> FilePieces:
        """The files with their numbers of rows: one pass over all of them."""
        counted = map_partitions(
            self._files, _Lengths(self._texts(self.names[:1])), "stamp bigint, path string, rows bigint"
        )
        listed = collect(counted).to_pylist()
        return FilePieces.of(Piece(each[STAMP], each["path"], each["rows"]) for each in listed)

    @property
    def content(self) -> DataFrame:
        """The hash of the bytes of each file, whatever its name: the bytes themselves would be copied several times."""
        frame = self.load()
        return frame.select(functions_of(frame).sha2("content", 256).alias("content"))

    def check_ids(self) -> None:
        """Do nothing: a row is told by its place."""

    def stamps(self) -> frozenset[int]:
        """Look at the files once more, not into them, and return their stamps."""
        return frozenset(collect(self._files.select(STAMP)).column(STAMP).to_pylist())

    def selected(self, columns: Sequence[str]) -> tuple[DataFrame, Texts]:
        """Return the files, and how tasks parse these columns out of them."""
        return self._files, replace(self._texts(columns), pieces=self.pieces)

    def unplaced(self, columns: Sequence[str]) -> tuple[DataFrame, Texts]:
        """Return the files, and how tasks parse these columns where it does not matter what lies in other files."""
        return self._files, self._texts(columns)

    def _texts(self, columns: Sequence[str]) -> Texts:
        return Texts(self.names, tuple(columns), self.wanted, self.nulls)

    @property
    def _files(self) -> DataFrame:
        with explained():
            frame = self.load()
            return frame.select(_text_stamp(frame).alias(STAMP), "path", "content")


@dataclass(frozen=True)
class _Lengths:
    """How many rows each file has."""

    texts: Texts

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for stamp, path, reader in self.texts.files(batches):
            rows = sum(batch.num_rows for batch in reader.read(self.texts.columns))
            yield pa.record_batch({STAMP: pa.array([stamp]), "path": [path], "rows": pa.array([rows])})


def open_texts(load: Callable[[], DataFrame], options: SourceOptions) -> TextFiles:
    """Take over how text is delimited from the first lines of the first file, unless it was told."""
    frame = load()
    listed = sorted(collect(frame.select("path", "length")).to_pylist(), key=lambda file: str(file["path"]))
    if not listed:
        raise SourceUnreadable("there is no file at this address. Check the path.")
    for file in listed:
        if file["length"] > LARGEST_BYTES:
            raise SourceUnreadable(
                f"{name_of(file['path'])} is larger than {LARGEST_BYTES >> 20} MiB, and on a cluster one task reads a "
                "text file whole. Cut it into several files, or write it as Parquet."
            )
    path = str(listed[0]["path"])
    wanted = DialectOptions.of(options, Path(name_of(path)))
    first = _first(frame, path, wanted, options.nulls)
    settled = replace(wanted, delimiter=first.dialect.delimiter, encoding=first.dialect.encoding)
    return TextFiles(load, settled, options.nulls, first, len(listed))


def _first(frame: DataFrame, path: str, wanted: DialectOptions, nulls: tuple[str, ...]) -> Delimited:
    """Look at the first bytes of a file."""
    functions = functions_of(frame)
    start = functions.substring("content", 1, 2 * SAMPLE_BYTES).alias("start")
    found = collect(frame.where(functions.col("path") == path).select(start)).column("start")
    return open_delimited(Path(name_of(path)), wanted, nulls, found[0].as_py())


def _text_stamp(frame: DataFrame) -> Column:
    stamp: Column = functions_of(frame).xxhash64("path", "length", "modificationTime")
    return stamp


@dataclass(frozen=True, eq=False)
class SparkTable:
    """Whatever Spark can read; without an id it can be counted, not sampled."""

    frame: DataFrame
    id: str | None

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
        """A row is told by its id."""
        return self.id is not None

    @property
    def pieces(self) -> None:
        """There is no order, and hence no position."""
        return

    def stamps(self) -> frozenset[int]:
        """There are no files to look at."""
        return frozenset()

    @property
    def content(self) -> DataFrame:
        """All columns."""
        return self.frame

    def selected(self, columns: Sequence[str]) -> tuple[DataFrame, Identified]:
        """Return the columns, and behind them the id."""
        ids = [] if self.id is None else [column(self.frame, self.id).alias(ID)]
        chosen = [*placeholders(self.frame, columns), *ids] or placeholders(self.frame, self.names[:1])
        return self.frame.select(*chosen), Identified(tuple(columns), has_id=self.id is not None)

    def check_ids(self) -> None:
        """Raise unless every row has an id and no two rows the same: distinct rows never share a coin."""
        functions = functions_of(self.frame)
        if self.id is None:
            return
        each = self.frame.groupBy(column(self.frame, self.id).alias(ID)).count()
        bad = each.where(functions.col(ID).isNull() | (functions.col("count") > 1)).limit(1)
        if collect(bad.select("count")).num_rows:
            raise SourceInvalid(
                f"the id column {self.id} does not tell rows apart: some rows have none, or the same as others. Rows "
                "that share an id would share a coin. Name a column that is unique."
            )


def open_table(frame: DataFrame, id_column: str | None) -> SparkTable:
    """Take a frame as it is; its id is a column of whole numbers or of text."""
    from pyspark.sql.types import IntegralType, StringType

    if id_column is not None:
        require(frame.columns, [id_column])
        kind = frame.schema[id_column].dataType
        if not isinstance(kind, IntegralType | StringType):
            raise InvalidParameter(f"the id column {id_column} must hold whole numbers or text.")
        _require_steady(frame)
    return SparkTable(frame, id_column)


def _require_steady(frame: DataFrame) -> None:
    """Raise if rows or ids are drawn or numbered anew whenever they are read; over Spark Connect none of it shows."""
    if not is_remote(frame) and not frame._jdf.queryExecution().analyzed().deterministic():  # noqa: SLF001  no public way
        raise InvalidParameter(
            "rows or ids of this frame come out differently whenever it is read (rand, uuid, "
            "monotonically_increasing_id, a function of your own): coins could not hold to them. Write it to Parquet "
            "first."
        )
