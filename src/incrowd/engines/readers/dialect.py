"""Dialect: how a text file is encoded and delimited, told or found out from its first lines."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from incrowd.engines.readers.reader import SourceProblem, named
from incrowd.errors import InvalidParameter, SourceUnreadable

if TYPE_CHECKING:
    import _csv

DELIMITERS = (",", ";", "\t", "|")
SAMPLE_BYTES = 1 << 18
SAMPLE_RECORDS = 200
LONGEST_CELL = 1 << 24
"""So many characters of a cell are looked at where what is wrong with a file is told; the standard limit is less."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNMARKED = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


@dataclass(frozen=True)
class DialectOptions:
    """What the data holder says about a text file; None is found out from its first lines."""

    delimiter: str | None = None
    encoding: str | None = None
    quote: str = '"'
    header: bool = True
    names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Dialect:
    """How a text file is read: all of it decided before the first row."""

    names: tuple[str, ...]
    delimiter: str
    encoding: str
    quote: str
    header: bool
    mark: int
    """How many bytes of a byte-order mark come before the text."""
    row_bytes: float
    """How long a row is in the first lines: for progress bars only."""
    found: tuple[str, ...]
    """What was found rather than told."""


def byte_stream(path: Path, content: bytes | None = None) -> pa.NativeFile:
    """Open the bytes of a file, or those that were read of it elsewhere, decompressed as its name says."""
    if content is None:
        return pa.input_stream(str(path), compression="detect")
    endings = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
    return pa.input_stream(pa.py_buffer(content), compression=endings.get(path.suffix))


def dialect(path: Path, wanted: DialectOptions, content: bytes | None = None) -> Dialect:
    """Read the first lines of a file, and nothing else of it, and settle how the rest will be read.

    Always decided the same way: the encoding by the byte-order mark, else UTF-8; the delimiter as the one of comma,
    semicolon, tab and bar by which most of the first records agree with the header in their number of fields (among
    equals, the one that makes most fields, then the first named).
    """
    _check(wanted)
    with byte_stream(path, content) as stream:
        start = stream.read(SAMPLE_BYTES)
    encoding, mark, found = _encoding(start, wanted.encoding)
    head = _decode(start[mark:], encoding, cut=len(start) == SAMPLE_BYTES)
    delimiter = wanted.delimiter or _delimiter(head, wanted.quote)
    if wanted.delimiter is None:
        found += (f"the delimiter is {_spelled(delimiter)}, judged by the first lines",)
    records, whole = _records(head, delimiter, wanted.quote)
    if not records:
        raise SourceUnreadable(_no_header(head))
    names = _names(records[0], wanted)
    row_bytes = len(head.text[:whole].encode(encoding)) / len(records)
    return Dialect(names, delimiter, encoding, wanted.quote, wanted.header, mark, row_bytes, found)


@dataclass(frozen=True)
class _Head:
    """The first characters of a file, and whether more follow."""

    text: str
    cut: bool


def _no_header(head: _Head) -> str:
    if head.cut and "\n" not in head.text and "\r" not in head.text:
        return f"the first line is longer than {SAMPLE_BYTES} bytes, and a header is not. Is this a table as text?"
    if head.cut:
        return f"the first record is longer than {SAMPLE_BYTES} bytes: a quote was probably opened and never closed."
    return "the file is empty: there is not even a header line. Is this the right file?"


def _check(wanted: DialectOptions) -> None:
    if wanted.delimiter is not None and (len(wanted.delimiter) != 1 or wanted.delimiter in '\r\n"'):
        raise InvalidParameter("delimiter must be a single character such as , or ; (a tab is \\t), and not a quote.")
    if wanted.delimiter is not None and not wanted.delimiter.isascii():
        raise InvalidParameter("delimiter must be an ASCII character.")
    if len(wanted.quote) > 1 or not wanted.quote.isascii() or wanted.quote == wanted.delimiter:
        raise InvalidParameter("quote must be a single ASCII character, or empty if nothing is quoted.")
    if wanted.names is not None and wanted.header:
        raise InvalidParameter("names are for a file without a header line: say header: false too.")


def _encoding(head: bytes, told: str | None) -> tuple[str, int, tuple[str, ...]]:
    marked = next(((name, len(mark)) for mark, name in _MARKS if head.startswith(mark)), None)
    if told is None:
        if marked is None:
            return "utf-8", 0, ()
        return marked[0], marked[1], (f"the encoding is {marked[0]}, by the byte-order mark",)
    try:
        name = codecs.lookup(told).name
        "a\n".encode(name)
    except (LookupError, ValueError) as error:
        raise InvalidParameter(f"encoding {told!r} is not known. Try utf-8, latin-1, cp1252 or utf-16.") from error
    if marked is not None and marked[0].startswith(name.removesuffix("-sig")):
        return marked[0], marked[1], ()
    return _UNMARKED.get(name, name), 0, ()


def _decode(start: bytes, encoding: str, *, cut: bool) -> _Head:
    if b"\0" in start and not encoding.startswith(("utf-16", "utf-32")):
        raise SourceUnreadable(
            "the file holds zero bytes: it is not a text file, or its encoding has two bytes to a character. "
            "Say encoding: utf-16, or which format it has."
        )
    text, line = "", None
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(start, final=not cut)
    except UnicodeDecodeError as error:
        line = start[: error.start].decode(encoding, errors="replace").count("\n") + 1
    if line is not None:
        raise SourceUnreadable(str(SourceProblem(wrong_encoding(encoding), line=line)))
    return _Head(text, cut)


def wrong_encoding(encoding: str) -> str:
    """Say that a line is not in the expected encoding.

    >>> wrong_encoding("utf-8")
    'not valid utf-8. Say which encoding the file has, for example encoding: cp1252 or latin-1'
    """
    other = "utf-8" if encoding != "utf-8" else "cp1252 or latin-1"
    return f"not valid {encoding}. Say which encoding the file has, for example encoding: {other}"


def _records(head: _Head, delimiter: str, quote: str) -> tuple[list[list[str]], int]:
    """Split into whole records, blank lines left out; also how many characters they take."""
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


def _delimiter(head: _Head, quote: str) -> str:
    def fit(delimiter: str) -> tuple[int, int, int]:
        records, _ = _records(head, delimiter, quote)
        width = len(records[0]) if records else 0
        agree = sum(len(record) == width for record in records) if width > 1 else 0
        return agree, width, -DELIMITERS.index(delimiter)

    return max(DELIMITERS, key=fit)


def _spelled(delimiter: str) -> str:
    return {"\t": "a tab", ",": "a comma", ";": "a semicolon", "|": "a bar"}[delimiter]


def _names(first: list[str], wanted: DialectOptions) -> tuple[str, ...]:
    if wanted.header:
        return named(first)
    if wanted.names is None:
        return named([""] * len(first))
    if len(wanted.names) != len(first):
        raise InvalidParameter(
            f"names lists {len(wanted.names)} columns, the first line of the file has {len(first)}. Name each column."
        )
    return named(wanted.names)
