"""Text files on a cluster: each is parsed whole by one task, with the reader of the local engine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from incrowd.engines.readers.delimited import Delimited, open_delimited
from incrowd.engines.readers.dialect import SAMPLE_BYTES, DialectOptions
from incrowd.engines.spark.failures import explained
from incrowd.engines.spark.functions import functions_of
from incrowd.engines.spark.pieces import FilePieces, Piece, name_of
from incrowd.engines.spark.reading import Texts, named_after
from incrowd.engines.spark.rows import STAMP
from incrowd.engines.spark.task import collected, mapped
from incrowd.errors import SourceUnreadable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from incrowd.core.table import SourceOptions

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
        counted = mapped(self._files, _Lengths(self._texts(self.names[:1])), "stamp bigint, path string, rows bigint")
        listed = collected(counted).to_pylist()
        return FilePieces.of(Piece(each[STAMP], each["path"], each["rows"]) for each in listed)

    @property
    def content(self) -> DataFrame:
        """The hash of the bytes of each file, whatever its name: the bytes themselves would be copied several times."""
        frame = self.load()
        return frame.select(functions_of(frame).sha2("content", 256).alias("content"))

    def stamps(self) -> frozenset[int]:
        """Look at the files once more, not into them, and return their stamps."""
        return frozenset(collected(self._files.select(STAMP)).column(STAMP).to_pylist())

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
            return frame.select(_stamp(frame).alias(STAMP), "path", "content")


@dataclass(frozen=True)
class _Lengths:
    """How many rows each file has."""

    texts: Texts

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for stamp, path, reader in self.texts.files(batches):
            with named_after(path, reader.path):
                rows = sum(batch.num_rows for batch in reader.read(self.texts.columns))
            yield pa.record_batch({STAMP: pa.array([stamp]), "path": [path], "rows": pa.array([rows])})


def open_texts(load: Callable[[], DataFrame], options: SourceOptions) -> TextFiles:
    """Take over how text is delimited from the first lines of the first file, unless it was told."""
    frame = load()
    listed = sorted(collected(frame.select("path", "length")).to_pylist(), key=lambda file: str(file["path"]))
    if not listed:
        raise SourceUnreadable("there is no file at this address. Check the path.")
    for file in listed:
        if file["length"] > LARGEST_BYTES:
            raise SourceUnreadable(
                f"{name_of(file['path'])} is larger than {LARGEST_BYTES >> 20} MiB, and on a cluster one task reads a "
                "text file whole. Cut it into several files, or write it as Parquet."
            )
    path = str(listed[0]["path"])
    tabbed = options.delimiter is None and ".tsv" in Path(name_of(path)).suffixes
    delimiter = "\t" if tabbed else options.delimiter
    wanted = DialectOptions(delimiter, options.encoding, options.quote, options.header, options.names)
    first = _first(frame, path, wanted, options.nulls)
    settled = replace(wanted, delimiter=first.dialect.delimiter, encoding=first.dialect.encoding)
    return TextFiles(load, settled, options.nulls, first, len(listed))


def _first(frame: DataFrame, path: str, wanted: DialectOptions, nulls: tuple[str, ...]) -> Delimited:
    """Look at the first bytes of a file."""
    functions = functions_of(frame)
    start = functions.substring("content", 1, 2 * SAMPLE_BYTES).alias("start")
    found = collected(frame.where(functions.col("path") == path).select(start)).column("start")
    with tempfile.TemporaryDirectory(prefix="incrowd-") as folder:
        copy = Path(folder, name_of(path))
        copy.write_bytes(found[0].as_py())
        with named_after(path, copy):
            return open_delimited(copy, wanted, nulls)


def _stamp(frame: DataFrame) -> Column:
    stamp: Column = functions_of(frame).xxhash64("path", "length", "modificationTime")
    return stamp
