"""Delimited text (CSV): every cell is read as text, so that leading zeros and the word NO stay what they are."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
from pyarrow import csv as arrow_csv

from incrowd.core.domain import Type
from incrowd.core.spreadsheet import is_guarded, unguard
from incrowd.engines.readers.dialect import Dialect, DialectOptions, byte_stream, dialect, split, wrong_encoding
from incrowd.engines.readers.reader import SourceProblem
from incrowd.engines.readers.spelling import PLAIN, Spelling, spelled_as_declared
from incrowd.errors import SourceUnreadable

BLOCK_BYTES = 1 << 23
_END = "\x03end of rows\x03"
_TOO_LONG = (
    f"a row of more than {BLOCK_BYTES:,} characters, and so long a one is not read; perhaps a line break is missing"
)
_OPEN_QUOTE = "a quote is opened here and never closed"


@dataclass(frozen=True)
class Delimited:
    """A delimited text file.

    Blank lines are no rows.  A cell is missing if it is spelled like one of `nulls`, quoted or not.  Quoted cells may
    hold delimiters, quotes (doubled) and line breaks.  A row must have as many cells as the header.
    """

    path: Path
    dialect: Dialect
    nulls: tuple[str, ...]
    spelling: Spelling = PLAIN
    declared: Mapping[str, Type] | None = None
    """The declared types of columns: cells of numbers and dates are read by the spelling."""
    content: bytes | None = None
    """Its bytes, where they were read elsewhere: then `path` is only its name."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the header, or those that were told."""
        return self.dialect.names

    @property
    def rows(self) -> int | None:
        """Unknown before the file has been read."""
        return None

    @property
    def settings(self) -> Mapping[str, str]:
        """Delimiter, encoding, quote, header and the spellings of a missing value."""
        return {
            "delimiter": self.dialect.delimiter,
            "encoding": self.dialect.encoding,
            "quote": self.dialect.quote,
            "header": "yes" if self.dialect.header else "no",
            "nulls": ", ".join(repr(null) for null in self.nulls),
            **({"header_row": str(self.dialect.above + 1)} if self.dialect.above else {}),
            **self.spelling.settings,
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What the first lines gave away, and the name."""
        guarded = ("apostrophes before what looks like a formula are left out, as the file's name says",)
        return (*self.dialect.found, *(guarded if is_guarded(self.path) else ()))

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Parse the file block by block; what does not parse is named by its line."""
        failed = False
        try:
            for batch in _within(self._parse(list(columns) or list(self.names[:1])), int(self.dialect.header)):
                yield self._plain(batch) if columns else batch.select([])
        except (pa.ArrowException, UnicodeError, _QuoteOpen):
            failed = True
        if failed:
            first = next(self.problems(), None)
            raise SourceUnreadable(f"{self.path}: {first or 'this does not parse as delimited text'}.")

    def _plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return cells as they are read everywhere.

        Text is as it was before it was guarded against spreadsheet programs, where the file's name says so; numbers and
        days are spelled as in any other source.
        """
        columns, names, types = batch.columns, batch.schema.names, self.declared or {}
        if is_guarded(self.path):
            columns = [unguard(column) for column in columns]
        columns = [
            spelled_as_declared(column, types.get(name, Type.TEXT), self.spelling)
            for name, column in zip(names, columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def lines(self, positions: Sequence[int]) -> tuple[int | None, ...]:
        """Return on which lines the rows at these positions start, by reading up to the last of them."""
        places = set(positions)
        last = max(positions, default=-1)
        found = {}
        for position, (line, _) in enumerate(self._records()):
            if position in places:
                found[position] = line
            if position >= last:
                break
        return tuple(found.get(position) for position in positions)

    def problems(self) -> Iterator[SourceProblem]:
        """Name the lines that are too long, outside the encoding or of too few or many cells, and a quote left open."""
        line, record = 0, [""]
        for following in self._records():
            if line:
                yield from self._problem(line, record)
            line, record = following
        if record != [_END] * len(self.names):
            yield SourceProblem(self._unending(line), line=line)

    def expected(self) -> int | None:
        """Guess from the size of the file and the length of its first rows."""
        if self.path.suffix in {".gz", ".bz2", ".zst", ".lz4"}:
            return None
        return round(self.path.stat().st_size / self.dialect.row_bytes)

    def _parse(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        with pa.PythonFile(self._bytes(), mode="r") as stream:
            reader = arrow_csv.open_csv(
                stream,
                read_options=arrow_csv.ReadOptions(
                    block_size=BLOCK_BYTES,
                    column_names=list(self.names),
                    encoding="utf8" if self.dialect.encoding == "utf-8" else self.dialect.encoding,
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self.dialect.delimiter,
                    quote_char=self.dialect.quote or False,
                    newlines_in_values=bool(self.dialect.quote),
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(columns, pa.string()),
                    include_columns=columns,
                    null_values=list(self.nulls),
                    strings_can_be_null=True,
                ),
            )
            yield from reader

    def _bytes(self) -> _Ended:
        return _Ended(byte_stream(self.path, self.content), self.dialect)

    def _problem(self, line: int, record: list[str]) -> Iterator[SourceProblem]:
        width = len(self.names)
        if any("\ufffd" in cell for cell in record):
            yield SourceProblem(wrong_encoding(self.dialect.encoding), line=line)
        if sum(map(len, record)) > BLOCK_BYTES:
            yield SourceProblem(_TOO_LONG, line=line)
        if len(record) != width:
            cells = "1 cell" if len(record) == 1 else f"{len(record)} cells"
            yield SourceProblem(f"{cells} where the header has {width}", line=line)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Read the rows one by one with the line each starts on, the mark of the end last: slow and obvious."""
        stream = cast("BinaryIO", self._bytes())
        with io.TextIOWrapper(stream, self.dialect.encoding, errors="replace", newline="") as text:
            reader, first = split(text, self.dialect.delimiter, self.dialect.quote), self.dialect.above + 1
            line, header = first, self.dialect.header
            try:
                for record in reader:
                    if record and not header:
                        yield line, record
                    header = header and not record
                    line = reader.line_num + first
            except csv.Error:  # a cell beyond any limit: no end of this row is in sight
                yield line, []

    def _unending(self, line: int) -> str:
        """Say why a row has no end: its very line is too long, or a quote swallows the lines that follow."""
        stream = cast("BinaryIO", self._bytes())
        with io.TextIOWrapper(stream, self.dialect.encoding, errors="replace", newline="") as text:
            for _ in range(line - 1 - self.dialect.above):
                text.readline()
            return _TOO_LONG if len(text.readline(BLOCK_BYTES + 1)) > BLOCK_BYTES else _OPEN_QUOTE


class _QuoteOpen(Exception):
    """The last row of the file swallowed the mark of the end."""


class _Ended(io.RawIOBase):
    """The bytes of a file after its byte-order mark, and then one more row that says: this is the end.

    A quote that is never closed swallows all that follows, silently if it is in the last column.  It swallows this row
    too, and so betrays itself.
    """

    def __init__(self, stream: pa.NativeFile, dialect: Dialect) -> None:
        self._stream = stream
        self._stream.read(dialect.mark)
        self._end = f"\n{dialect.delimiter.join([_END] * len(dialect.names))}\n".encode(dialect.encoding)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block: bytes = self._stream.read(None if size < 0 else size)
        if not block:
            block, self._end = self._end, b""
        return block

    def close(self) -> None:
        self._stream.close()
        super().close()


def _within(batches: Iterator[pa.RecordBatch], header: int) -> Iterator[pa.RecordBatch]:
    """Leave out the header, and the mark of the end, which must be there."""
    last: pa.RecordBatch | None = None
    for batch in batches:
        if last is not None:
            if last.num_rows > header:
                yield last.slice(header)
            header = max(header - last.num_rows, 0)
        last = batch
    rows = last.num_rows - 1 if last is not None else -1
    if last is None or any(column[rows].as_py() != _END for column in last.columns):
        raise _QuoteOpen
    if rows > header:
        yield last.slice(header, rows - header)


def open_delimited(
    path: Path, wanted: DialectOptions, nulls: tuple[str, ...] = ("",), content: bytes | None = None
) -> Delimited:
    """Open a delimited text file, or one whose bytes are given: its first lines are read, and no more."""
    try:
        return Delimited(path, dialect(path, wanted, content), nulls, wanted.spelling, wanted.types, content)
    except SourceUnreadable as error:
        raise SourceUnreadable(f"{path}: {error}") from error
