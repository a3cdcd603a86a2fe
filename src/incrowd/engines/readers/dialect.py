"""Dialect: how a text file is encoded and delimited, as declared or as its first lines show."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from incrowd.engines.columns import DELIMITERS
from incrowd.engines.readers.encodings import likely_encoding
from incrowd.engines.readers.reader import HEADER_WITHIN, SourceProblem, header_elsewhere, named
from incrowd.errors import InvalidParameter, SourceUnreadable

if TYPE_CHECKING:
    import _csv

    from incrowd.core.table import SourceOptions

SAMPLE_BYTES = 1 << 18  # the start of a file that its dialect is guessed from
SAMPLE_RECORDS = 200  # enough to see a delimiter; more is slower
LONGEST_CELL = 1 << 24
"""Characters of a cell that are read where a faulty file is explained; the standard library's limit is less."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNMARKED = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


@dataclass(frozen=True)
class Dialect:
    """How a text file is read, decided before the first row."""

    names: tuple[str, ...]
    delimiter: str
    encoding: str
    quote: str
    header: bool
    mark: int
    """Bytes before the header: a byte-order mark, and the lines above."""
    above: int
    """Lines above the header."""
    row_bytes: float
    """Mean bytes of a row in the first lines: for progress bars only."""
    notes: tuple[str, ...]
    """What was detected rather than declared."""


def byte_stream(path: Path, content: bytes | None = None) -> pa.NativeFile:
    """Open the bytes of a file, or those that were read elsewhere, decompressed by the ending of its name."""
    if content is None:
        return pa.input_stream(str(path), compression="detect")
    endings = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
    return pa.input_stream(pa.py_buffer(content), compression=endings.get(path.suffix))


def text_options(options: SourceOptions, path: Path) -> SourceOptions:
    """Return the options of a text file: one named .tsv has tabs unless another delimiter is declared."""
    tabbed = options.delimiter is None and ".tsv" in path.suffixes
    return replace(options, delimiter="\t") if tabbed else options


def dialect(path: Path, declared: SourceOptions, content: bytes | None = None) -> Dialect:
    """Read only the first lines of a file, and decide how the rest will be read.

    The encoding is that of the byte-order mark, else UTF-8.  The delimiter is comma, semicolon, tab or bar: the one by
    which the header holds most of the declared columns.  Where none are declared, it is the one by which most of the
    first records have as many fields as the header (among equals the one with most fields, then the first in order).

    Where a policy declares the types of the columns, no row decides anything.
    """
    _check(declared)
    with byte_stream(path, content) as stream:
        start = stream.read(SAMPLE_BYTES)
    encoding, mark, notes = _encoding(start, declared.encoding)
    head, above = _below(_decode(start[mark:], encoding, cut=len(start) == SAMPLE_BYTES), declared.header_row or 1)
    mark += len(above.encode(encoding))
    delimiter, judged = _delimiter(head, declared)
    records, whole = _records(head, delimiter, declared.quote)
    if not records:
        raise SourceUnreadable(_no_header(head))
    _refuse_titles(head, declared)
    names = _names(records[0], declared)
    row_bytes = len(head.text[:whole].encode(encoding)) / len(records)
    notes = (*notes, *judged, *declared.guesses)
    lines = (declared.header_row or 1) - 1
    return Dialect(names, delimiter, encoding, declared.quote, declared.header, mark, lines, row_bytes, notes)


@dataclass(frozen=True)
class _Head:
    """The first characters of a file, and whether more follow."""

    text: str
    cut: bool


def _below(head: _Head, header_row: int) -> tuple[_Head, str]:
    """Return the text from the line of the header on, and the text above."""
    lines = io.StringIO(head.text, newline="")
    for _ in range(header_row - 1):
        if not lines.readline():
            raise SourceUnreadable(
                f"header_row is {header_row}, but the first {SAMPLE_BYTES:,} bytes have fewer lines."
            )
    return _Head(head.text[lines.tell() :], head.cut), head.text[: lines.tell()]


def _refuse_titles(head: _Head, declared: SourceOptions) -> None:
    """Raise if a later line than the first names the declared columns."""
    if declared.types is None or not declared.header or declared.header_row is not None:
        return
    for delimiter in (declared.delimiter,) if declared.delimiter else DELIMITERS:
        header_elsewhere(first_lines(head.text, delimiter, declared.quote), declared.types, "line")


def first_lines(text: str, delimiter: str, quote: str) -> list[tuple[int, list[str]]]:
    r"""Return the first lines that are not blank, with their numbers, split one by one.

    >>> first_lines("Report of 2024\n\nage;zip", ";", '"')
    [(1, ['Report of 2024']), (3, ['age', 'zip'])]
    """
    records, lines = [], io.StringIO(text, newline="")
    for number, line in enumerate(itertools.islice(lines, HEADER_WITHIN), start=1):
        with contextlib.suppress(csv.Error):
            records += [(number, cells) for cells in split([line], delimiter, quote) if any(cells)]
    return records


def _no_header(head: _Head) -> str:
    if head.cut and "\n" not in head.text and "\r" not in head.text:
        return f"the first line is longer than {SAMPLE_BYTES} bytes, and a header is not. Is this a table as text?"
    if head.cut:
        return f"the first record is longer than {SAMPLE_BYTES} bytes: a quote was probably opened and never closed."
    return "the file is empty: there is not even a header line. Is this the right file?"


def _check(declared: SourceOptions) -> None:
    if declared.delimiter is not None and (len(declared.delimiter) != 1 or declared.delimiter in '\r\n"'):
        raise InvalidParameter("delimiter must be a single character such as , or ; (a tab is \\t), and not a quote.")
    if declared.delimiter is not None and not declared.delimiter.isascii():
        raise InvalidParameter("delimiter must be an ASCII character.")
    if len(declared.quote) > 1 or not declared.quote.isascii() or declared.quote == declared.delimiter:
        raise InvalidParameter("quote must be a single ASCII character, or empty if nothing is quoted.")
    if declared.names is not None and declared.header:
        raise InvalidParameter("names are for a file without a header line: write header: false too.")
    if declared.header_row is not None and (declared.header_row < 1 or not declared.header):
        raise InvalidParameter("header_row is the number of the line that names the columns, from 1: or header: false.")
    if declared.types is not None and declared.delimiter is None and not declared.header:
        raise InvalidParameter(
            'without a header line, rows would decide what the delimiter is: write delimiter: ";" or whichever it is.'
        )


def marked_encoding(start: bytes) -> tuple[str, int] | None:
    """Return the encoding that a byte-order mark names, and the length of the mark.

    >>> marked_encoding(codecs.BOM_UTF16_LE)
    ('utf-16-le', 2)
    """
    return next(((name, len(mark)) for mark, name in _MARKS if start.startswith(mark)), None)


def _encoding(head: bytes, declared: str | None) -> tuple[str, int, tuple[str, ...]]:
    marked = marked_encoding(head)
    if declared is None:
        if marked is None:
            return "utf-8", 0, ()
        return marked[0], marked[1], (f"the encoding is {marked[0]}, by the byte-order mark",)
    try:
        name = codecs.lookup(declared).name
        "a\n".encode(name)
    except (LookupError, ValueError) as error:
        raise InvalidParameter(f"encoding {declared!r} is not known. Try utf-8, latin-1, cp1252 or utf-16.") from error
    if marked is not None and marked[0].startswith(name.removesuffix("-sig")):
        return marked[0], marked[1], ()
    return _UNMARKED.get(name, name), 0, ()


def _decode(start: bytes, encoding: str, *, cut: bool) -> _Head:
    if b"\0" in start and not encoding.startswith(("utf-16", "utf-32")):
        raise SourceUnreadable(
            "the file holds zero bytes: it is not a text file, or its encoding has two bytes to a character. "
            "Declare encoding: utf-16, or its format."
        )
    text, line = "", None
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(start, final=not cut)
    except UnicodeDecodeError as error:
        line = start[: error.start].decode(encoding, errors="replace").count("\n") + 1
    if line is not None:
        raise SourceUnreadable(str(SourceProblem(wrong_encoding(encoding, likely_encoding(start)), line=line)))
    return _Head(text, cut)


def wrong_encoding(encoding: str, likely: str | None = None) -> str:
    """Return the message that a line is not in the expected encoding.

    >>> wrong_encoding("utf-8", "cp1252")
    'not valid utf-8. Declare the encoding of the file, for example encoding: cp1252'
    """
    other = "utf-8" if encoding != "utf-8" else likely or "cp1252 or latin-1"
    return f"not valid {encoding}. Declare the encoding of the file, for example encoding: {other}"


def _records(head: _Head, delimiter: str, quote: str) -> tuple[list[list[str]], int]:
    """Return the whole records without blank lines, and how many characters they take."""
    lines = io.StringIO(head.text, newline="")
    records: list[tuple[list[str], int]] = []
    try:
        for record in split(lines, delimiter, quote):
            if len(records) > SAMPLE_RECORDS:
                break
            if record:
                records.append((record, lines.tell()))
    except csv.Error:
        pass
    else:
        if head.cut and len(records) <= SAMPLE_RECORDS:
            records = records[:-1]
    return [record for record, _ in records], records[-1][1] if records else 0


def split(lines: Iterable[str], delimiter: str, quote: str) -> _csv.Reader:
    """Split lines into records, one by one, with the standard library's reader, in long cells too.

    >>> list(split(["1;'a;b'"], ";", "'"))
    [['1', 'a;b']]
    """
    csv.field_size_limit(max(LONGEST_CELL, csv.field_size_limit()))
    if quote:
        return csv.reader(lines, delimiter=delimiter, quotechar=quote)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)


def likely_delimiter(records_by: Callable[[str], Sequence[Sequence[object]]], among: Iterable[str] = DELIMITERS) -> str:
    r"""Return the delimiter by which most records have as many fields as the first, at least two.

    Among equals it is the one with most fields, then the first in order.

    >>> lines = ["a;1,5", "b;2,5", "c;3"]
    >>> likely_delimiter(lambda mark: [line.split(mark) for line in lines])
    ';'
    """

    def fit(delimiter: str) -> tuple[int, int]:
        records = records_by(delimiter)
        width = len(records[0]) if records else 0
        return sum(len(record) == width for record in records) if width > 1 else 0, width

    return max(among, key=fit)


def _delimiter(head: _Head, options: SourceOptions) -> tuple[str, tuple[str, ...]]:
    """Return the delimiter, as declared or detected, and a note of how it was detected."""
    if options.delimiter is not None:
        return options.delimiter, ()
    if options.types is None:
        best = likely_delimiter(lambda mark: _records(head, mark, options.quote)[0])
        return best, (f"the delimiter is {DELIMITERS[best]}, judged by the first lines",)
    declared = set(options.types)
    headers = {mark: next(iter(_records(head, mark, options.quote)[0]), []) for mark in DELIMITERS}
    best = max(DELIMITERS, key=lambda mark: (len(declared & {*headers[mark]}), len(headers[mark])))
    return best, (f"the delimiter is {DELIMITERS[best]}, judged by the header",) if best != "," else ()


def _names(first: list[str], declared: SourceOptions) -> tuple[str, ...]:
    if declared.header:
        return named(first)
    if declared.names is None:
        return named([""] * len(first))
    if len(declared.names) != len(first):
        raise InvalidParameter(
            f"names lists {len(declared.names)} columns, the first line of the file has {len(first)}. Name each column."
        )
    return named(declared.names)
