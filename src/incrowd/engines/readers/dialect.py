"""Dialect: how a text file is encoded and delimited, told or found out from its first lines."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from incrowd.engines.readers.reader import HEADER_WITHIN, SourceProblem, header_elsewhere, named
from incrowd.engines.readers.spelling import PLAIN, Spelling
from incrowd.errors import InvalidParameter, SourceUnreadable

if TYPE_CHECKING:
    import _csv

    from incrowd.core.domain import Type
    from incrowd.core.table import SourceOptions

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
    """What the data holder says about a text file; None is found out from its first lines.

    Where a policy declares the types of the columns, rows decide nothing: the delimiter is the one that makes these
    columns out of the header.
    """

    delimiter: str | None = None
    encoding: str | None = None
    quote: str = '"'
    header: bool = True
    names: tuple[str, ...] | None = None
    header_row: int | None = None
    spelling: Spelling = PLAIN
    types: Mapping[str, Type] | None = None
    guesses: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: SourceOptions, path: Path) -> DialectOptions:
        """Take what is said about a source; a file that is called .tsv has tabs."""
        tabbed = options.delimiter is None and ".tsv" in path.suffixes
        spelling = Spelling(options.decimal, options.thousands, options.dates)
        return cls(
            "\t" if tabbed else options.delimiter,
            options.encoding,
            options.quote,
            options.header,
            options.names,
            options.header_row,
            spelling,
            options.types,
            options.guesses,
        )


@dataclass(frozen=True)
class Dialect:
    """How a text file is read: all of it decided before the first row."""

    names: tuple[str, ...]
    delimiter: str
    encoding: str
    quote: str
    header: bool
    mark: int
    """How many bytes come before the header: a byte-order mark, and lines above it."""
    above: int
    """How many lines these are."""
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

    Always decided the same way: the encoding by the byte-order mark, else UTF-8; the delimiter of comma, semicolon, tab
    and bar as the one by which the header holds most of the declared columns; where none are declared, as the one by
    which most of the first records agree with the header in their number of fields (among equals, the one that makes
    most fields, then the first named).
    """
    _check(wanted)
    with byte_stream(path, content) as stream:
        start = stream.read(SAMPLE_BYTES)
    encoding, mark, found = _encoding(start, wanted.encoding)
    head, above = _below(_decode(start[mark:], encoding, cut=len(start) == SAMPLE_BYTES), wanted.header_row or 1)
    mark += len(above.encode(encoding))
    delimiter, judged = _delimiter(head, wanted)
    records, whole = _records(head, delimiter, wanted.quote)
    if not records:
        raise SourceUnreadable(_no_header(head))
    _refuse_titles(head, wanted)
    names = _names(records[0], wanted)
    row_bytes = len(head.text[:whole].encode(encoding)) / len(records)
    found = (*found, *judged, *wanted.guesses)
    lines = (wanted.header_row or 1) - 1
    return Dialect(names, delimiter, encoding, wanted.quote, wanted.header, mark, lines, row_bytes, found)


@dataclass(frozen=True)
class _Head:
    """The first characters of a file, and whether more follow."""

    text: str
    cut: bool


def _below(head: _Head, header_row: int) -> tuple[_Head, str]:
    """Return the text from the line of the header on, and what is above it."""
    lines = io.StringIO(head.text, newline="")
    for _ in range(header_row - 1):
        if not lines.readline():
            raise SourceUnreadable(
                f"header_row is {header_row}, and the first {SAMPLE_BYTES:,} bytes have fewer lines."
            )
    return _Head(head.text[lines.tell() :], head.cut), head.text[: lines.tell()]


def _refuse_titles(head: _Head, wanted: DialectOptions) -> None:
    """Raise if the declared columns are not named in the first line, but in one of the next."""
    if wanted.types is None or not wanted.header or wanted.header_row is not None:
        return
    for delimiter in (wanted.delimiter,) if wanted.delimiter else DELIMITERS:
        header_elsewhere(first_lines(head.text, delimiter, wanted.quote), wanted.types, "line")


def first_lines(text: str, delimiter: str, quote: str) -> list[tuple[int, list[str]]]:
    r"""Return the first lines that are not blank, with their numbers, each split on its own.

    >>> first_lines("Report of 2024\n\nage;zip", ";", '"')
    [(1, ['Report of 2024']), (3, ['age', 'zip'])]
    """
    found, lines = [], io.StringIO(text, newline="")
    for number, line in enumerate(itertools.islice(lines, HEADER_WITHIN), start=1):
        with contextlib.suppress(csv.Error):
            found += [(number, cells) for cells in split([line], delimiter, quote) if any(cells)]
    return found


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
    if wanted.header_row is not None and (wanted.header_row < 1 or not wanted.header):
        raise InvalidParameter("header_row is the number of the line that names the columns, from 1: or header: false.")
    if wanted.types is not None and wanted.delimiter is None and not wanted.header:
        raise InvalidParameter(
            'without a header line, rows would decide what the delimiter is: write delimiter: ";" or whichever it is.'
        )


def marked_encoding(start: bytes) -> tuple[str, int] | None:
    """Return the encoding that a byte-order mark tells, and how long the mark is.

    >>> marked_encoding(codecs.BOM_UTF16_LE)
    ('utf-16-le', 2)
    """
    return next(((name, len(mark)) for mark, name in _MARKS if start.startswith(mark)), None)


def _encoding(head: bytes, told: str | None) -> tuple[str, int, tuple[str, ...]]:
    marked = marked_encoding(head)
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
        raise SourceUnreadable(str(SourceProblem(wrong_encoding(encoding, likely_encoding(start)), line=line)))
    return _Head(text, cut)


_LIKELY = ("cp1252", "cp1250", "iso8859_2", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1257", "cp850")
"""Encodings of one byte a character that are guessed, the most frequent first; latin-1 is a part of cp1252."""


def likely_encoding(content: bytes) -> str:
    """Guess in which encoding of one byte a character some text is that is not UTF-8.

    >>> likely_encoding("Straße;Größe;Mädchen;Übergröße".encode("cp1252"))
    'cp1252'
    """
    from charset_normalizer import from_bytes

    lines = b"\n".join(line for line in content.split(b"\n") if not line.isascii())[:_JUDGED]
    marked = [byte for byte in lines if byte > _ASCII]
    if set(marked) <= _WESTERN and len(marked) < _SOME * len(lines):
        return _LIKELY[0]
    matches = list(from_bytes(lines, cp_isolation=list(_LIKELY), threshold=1.0))
    found = {name: each for each in reversed(matches) for name in each.could_be_from_charset}
    least = min((each.chaos for each in matches), default=0.0)
    good = [name for name in _LIKELY if name in found and found[name].chaos <= least + _AS_GOOD]
    return max(good, key=lambda name: found[name].coherence + _AS_GOOD * (name == _LIKELY[0]), default=_LIKELY[0])


_ASCII, _SOME = 127, 0.5
_WESTERN = frozenset("äöüßÄÖÜéèêëÉÈàâÀáíóúñÑçÇåÅæÆøØîïôûœ€‚„“”‘’–—°§…«»´·²³µ".encode("cp1252"))
_JUDGED = 1 << 16
_AS_GOOD = 0.03


def wrong_encoding(encoding: str, likely: str | None = None) -> str:
    """Say that a line is not in the expected encoding.

    >>> wrong_encoding("utf-8", "cp1252")
    'not valid utf-8. Say which encoding the file has, for example encoding: cp1252'
    """
    other = "utf-8" if encoding != "utf-8" else likely or "cp1252 or latin-1"
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


def likely_delimiter(records_by: Callable[[str], Sequence[Sequence[object]]], among: Sequence[str] = DELIMITERS) -> str:
    r"""Return the delimiter by which most records have as many fields as the first; it must make two at least.

    Among equals it is the one that makes most fields, then the one named first.

    >>> lines = ["a;1,5", "b;2,5", "c;3"]
    >>> likely_delimiter(lambda mark: [line.split(mark) for line in lines])
    ';'
    """

    def fit(delimiter: str) -> tuple[int, int]:
        records = records_by(delimiter)
        width = len(records[0]) if records else 0
        return sum(len(record) == width for record in records) if width > 1 else 0, width

    return max(among, key=fit)


def _delimiter(head: _Head, wanted: DialectOptions) -> tuple[str, tuple[str, ...]]:
    """Return the delimiter, as told or found, and how it was found."""
    if wanted.delimiter is not None:
        return wanted.delimiter, ()
    if wanted.types is None:
        best = likely_delimiter(lambda mark: _records(head, mark, wanted.quote)[0])
        return best, (f"the delimiter is {_spelled(best)}, judged by the first lines",)
    declared = set(wanted.types)
    headers = {mark: next(iter(_records(head, mark, wanted.quote)[0]), []) for mark in DELIMITERS}
    best = max(DELIMITERS, key=lambda mark: (len(declared & {*headers[mark]}), len(headers[mark])))
    return best, (f"the delimiter is {_spelled(best)}, judged by the header",) if best != DELIMITERS[0] else ()


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
