"""Delimited text (CSV): every cell is read as text, so that leading zeros and the word NO are unchanged."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from incrowd.core.spreadsheet import is_guarded, unguard
from incrowd.core.table import SourceOptions
from incrowd.engines.readers.dialect import Dialect, byte_stream, dialect, split, text_options, wrong_encoding
from incrowd.engines.readers.reader import SourceProblem
from incrowd.engines.readers.spelling import UNCLEANED, ColumnCleaner, Spelling
from incrowd.errors import SourceUnreadable

BLOCK_BYTES = 1 << 23  # the longest row, and what is parsed at a time
_CODED = pa.dictionary(pa.int32(), pa.string())
_END = "\x03end of rows\x03"
_TOO_LONG = f"a row of more than {BLOCK_BYTES:,} characters, the longest that is read; perhaps a line break is missing"
_OPEN_QUOTE = "a quote is opened here and never closed"


@dataclass(frozen=True)
class Delimited:
    """A delimited text file.

    Blank lines are not rows.  A cell is missing if it is one of `nulls`, quoted or not.  Quoted cells may hold
    delimiters, doubled quotes and line breaks.  A row must have as many cells as the header.
    """

    path: Path
    dialect: Dialect
    nulls: tuple[str, ...]
    cleaner: ColumnCleaner = UNCLEANED
    """Cells of columns with rules are cleaned; those of declared numbers and dates are read in the spelling."""
    totals: tuple[str, ...] = ()
    """First cells of rows that are left out: sums."""
    content: bytes | None = None
    """Its bytes, where they were read elsewhere: then `path` is only its name."""
    rows = None  # unknown before the file is read

    @property
    def names(self) -> tuple[str, ...]:
        return self.dialect.names

    @property
    def spelling(self) -> Spelling:
        return self.cleaner.spelling

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "delimiter": self.dialect.delimiter,
            "encoding": self.dialect.encoding,
            "quote": self.dialect.quote,
            "header": "yes" if self.dialect.header else "no",
            "nulls": ", ".join(repr(null) for null in self.nulls),
            **({"totals": ", ".join(map(repr, self.totals))} if self.totals else {}),
            **({"header_row": str(self.dialect.above + 1)} if self.dialect.above else {}),
            **self.spelling.settings,
        }

    @property
    def notes(self) -> tuple[str, ...]:
        guarded = ("apostrophes before text that looks like a formula are removed, as the file's name says",)
        return (*self.dialect.notes, *(guarded if is_guarded(self.path) else ()))

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Parse the file block by block; an error names the first faulty line."""
        return self._read(columns, pa.string())

    def coded(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Parse the file with columns as dictionaries, in half the time of making these from cells."""
        return self._read(columns, _CODED)

    def _read(self, columns: Sequence[str], kind: pa.DataType) -> Iterator[pa.RecordBatch]:
        failed = False
        try:
            first = self.names[:1] if self.totals or not columns else ()
            parsed = list(dict.fromkeys((*columns, *first)))
            for batch in _within(self._parse(parsed, kind), int(self.dialect.header)):
                rows = self._without_totals(batch).select(list(columns))
                yield self._plain(rows) if columns else rows
        except (pa.ArrowException, UnicodeError, _QuoteOpen):
            failed = True
        if failed:
            problem = next(self.problems(), None)
            raise SourceUnreadable(f"{self.path}: {problem or 'this does not parse as delimited text'}.")

    def _without_totals(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self.totals:
            return batch
        labels = pc.utf8_trim_whitespace(batch.column(self.names[0]).cast(pa.string()))
        left_out = pc.is_in(labels, value_set=pa.array(self.totals, pa.string()))
        return _used(batch.filter(pc.invert(left_out))) if pc.any(left_out).as_py() else batch

    def _plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return cells in the plain spelling; text without the guard that the file's name tells of."""
        columns, names = batch.columns, batch.schema.names
        if is_guarded(self.path):
            columns = [unguard(column) for column in columns]
        columns = [self.cleaner.column(name, column) for name, column in zip(names, columns, strict=True)]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def lines(self, positions: Sequence[int]) -> tuple[int | None, ...]:
        rows = (pair for pair in self._records() if not pair[1] or pair[1][0].strip() not in self.totals)
        first = itertools.islice(rows, max(positions, default=-1) + 1)
        starts = {position: line for position, (line, _) in enumerate(first)}
        return tuple(starts.get(position) for position in positions)

    def problems(self) -> Iterator[SourceProblem]:
        """Return the lines that are too long, not in the encoding or of a wrong number of cells, and an open quote."""
        line, record = 0, [""]
        for following in self._records():
            if line:
                yield from self._problem(line, record)
            line, record = following
        if record != [_END] * len(self.names):
            yield SourceProblem(self._unending(line), line=line)

    def expected(self) -> int | None:
        if self.path.suffix in {".gz", ".bz2", ".zst", ".lz4"}:
            return None
        return round(self.path.stat().st_size / self.dialect.row_bytes)

    def _parse(self, columns: list[str], kind: pa.DataType) -> Iterator[pa.RecordBatch]:
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
                    column_types=dict.fromkeys(columns, kind),
                    include_columns=columns,
                    null_values=list(self.nulls),
                    strings_can_be_null=True,
                ),
            )
            yield from reader

    def _bytes(self) -> _Ended:
        return _Ended(byte_stream(self.path, self.content), self.dialect)

    def _text(self) -> io.TextIOWrapper:
        stream = cast("BinaryIO", self._bytes())
        return io.TextIOWrapper(stream, self.dialect.encoding, errors="replace", newline="")

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
        """Yield the rows with the lines on which they start, and last the end row: slow and simple."""
        with self._text() as text:
            reader, first = split(text, self.dialect.delimiter, self.dialect.quote), self.dialect.above + 1
            line, header = first, self.dialect.header
            try:
                for record in reader:
                    if record and not header:
                        yield line, record
                    header = header and not record
                    line = reader.line_num + first
            except csv.Error:  # a cell beyond any limit: the row does not end
                yield line, []

    def _unending(self, line: int) -> str:
        """Return why a row does not end: its line is too long, or an open quote includes the lines that follow."""
        with self._text() as text:
            for _ in range(line - 1 - self.dialect.above):
                text.readline()
            return _TOO_LONG if len(text.readline(BLOCK_BYTES + 1)) > BLOCK_BYTES else _OPEN_QUOTE


class _QuoteOpen(Exception):
    """The last row of the file includes the end row."""


class _Ended(io.RawIOBase):
    """The bytes of a file after its byte-order mark, followed by one end row.

    A quote that is never closed includes all that follows, without an error if it is in the last column.  It then
    includes the end row too, and so it is detected.
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
    """Leave out the header and the end row; raise if the end row is missing."""
    last: pa.RecordBatch | None = None
    for batch in batches:
        if last is not None:
            if last.num_rows > header:
                yield _part(last, header, last.num_rows - header)
            header = max(header - last.num_rows, 0)
        last = batch
    rows = last.num_rows - 1 if last is not None else -1
    if last is None or any(column[rows].as_py() != _END for column in last.columns):
        raise _QuoteOpen
    if rows > header:
        yield _part(last, header, rows - header)


def _part(batch: pa.RecordBatch, start: int, size: int) -> pa.RecordBatch:
    """Return some rows, without the values of the header and the end row."""
    return batch if size == batch.num_rows else _used(batch.slice(start, size))


def _used(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with those values in their dictionaries that occur in them."""
    coded = (c.dictionary_decode().dictionary_encode() if pa.types.is_dictionary(c.type) else c for c in batch.columns)
    return pa.RecordBatch.from_arrays(list(coded), names=batch.schema.names)


def open_delimited(path: Path, options: SourceOptions, content: bytes | None = None) -> Delimited:
    """Open a delimited text file, or the bytes of one; only its first lines are read."""
    cleaner, options = ColumnCleaner.of(options), text_options(options, path)
    try:
        return Delimited(path, dialect(path, options, content), options.nulls, cleaner, options.totals, content)
    except SourceUnreadable as error:
        raise SourceUnreadable(f"{path}: {error}") from error
