"""Guess: how a text file or a workbook is probably meant, for the eyes of its holder and for drafts of policies.

Where a policy says what the columns are, nothing is guessed: a guess hangs on what people's rows hold.
"""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.domain import Type
from incrowd.core.reading import read
from incrowd.core.table import DEFAULTS, SourceOptions
from incrowd.engines.readers.date_formats import DateFormat, date_formats
from incrowd.engines.readers.delimited import open_delimited
from incrowd.engines.readers.dialect import (
    DELIMITERS,
    SAMPLE_BYTES,
    DialectOptions,
    byte_stream,
    first_lines,
    likely_delimiter,
    likely_encoding,
    marked_encoding,
)
from incrowd.engines.readers.excel import Stored, first_rows, sheet_title
from incrowd.engines.readers.formats import find_format
from incrowd.engines.readers.reader import named
from incrowd.engines.readers.spelling import PLAIN, Spelling
from incrowd.errors import InvalidParameter, SourceUnreadable

_GERMAN = ("k.A.", "k.a.", "k. A.", "keine Angabe", "nicht erhoben", "#NV")
_SIGNS = ("-", "--", "---", "?", ".", "..")
MARKERS = frozenset(
    (*_GERMAN, *_SIGNS, "n/a", "N/A", "n.a.", "NA", "#N/A", "NULL", "null", "None", "none", "NaN", "nan")
)
"""How missing values are often spelled; one is taken for such only among numbers or dates."""
_NUMBERS = (
    *(Spelling(decimal) for decimal in (".", ",")),
    *(Spelling(decimal, mark) for decimal in (",", ".") for mark in (".", ",", "'", " ") if mark != decimal),
)
"""Spellings of numbers, the simplest first."""
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d-%b-%Y", "%d%b%Y")
_FORMATS = tuple(DateFormat(day + time) for day in _DAYS for time in ("", " %H:%M", " %H:%M:%S"))
_NUMERIC, _ISO_DAY = r"^[+-]?[0-9]+$", r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ] *[0-9].*)?$"
_FEWEST = 2
_BLOCK = 1 << 22
_GLANCE = 20


@dataclass(frozen=True)
class SampleColumn:
    """The different texts of a column in the first rows, and whether others are numbers or days by themselves."""

    name: str
    texts: pa.Array
    stored: bool = False


def guessed_options(source: object, options: SourceOptions = DEFAULTS) -> SourceOptions:
    """Return the options with what they leave open guessed from a text file or workbook of this machine.

    What is guessed is said in `guesses`.  A source of another kind, or that cannot be looked at, is left as it is.
    """
    path = Path(str(source).rpartition("::")[0] or str(source)) if isinstance(source, (str, Path)) else None
    if path is None or not path.is_file() or options.types is not None:
        return options
    try:
        kind = find_format(path, options.format)
        if kind == "csv":
            return _of_text(path, options)
        if kind == "excel" and "::" not in str(source):
            return _of_workbook(path, options)
    except (OSError, LookupError, UnicodeError, pa.ArrowException):  # whoever opens the file says what is wrong with it
        return options
    return options


def policy_keys(options: SourceOptions) -> dict[str, Any]:
    """Return what a policy has to say under `source:` for the same reading; nothing where the defaults do.

    >>> policy_keys(SourceOptions(encoding="cp1252", decimal=",", nulls=("", "k.A.")))
    {'encoding': 'cp1252', 'nulls': ['', 'k.A.'], 'decimal': ','}
    """
    found: dict[str, Any] = {}
    for field in fields(options):
        value = getattr(options, field.name)
        plain = field.name in {"types", "guesses"} or (field.name, value) == ("delimiter", DELIMITERS[0])
        if not plain and value != field.default:
            found[field.name] = list(value) if isinstance(value, tuple) else value
    return found


def _of_text(path: Path, options: SourceOptions) -> SourceOptions:
    encoding = options.encoding or _encoding(path)
    with byte_stream(path) as stream:
        start = stream.read(SAMPLE_BYTES)
    name, length = marked_encoding(start) or (encoding or "utf-8", 0)
    text = start[length:].decode(name, errors="replace")
    delimiter, row = _layout(text, options, path)
    settled = replace(options, encoding=encoding, delimiter=delimiter, header_row=row)
    try:
        reader = open_delimited(path, DialectOptions.of(settled, path), options.nulls)
        batch = next(iter(reader.read(reader.names)), None)
    except SourceUnreadable:  # whoever reads the file says what is wrong with it
        batch = None
    columns = [] if batch is None else [_sampled(name, batch.column(name)) for name in batch.schema.names]
    return _with_cells(settled, columns, _layout_words(settled, options))


def _of_workbook(path: Path, options: SourceOptions) -> SourceOptions:
    sheets = first_rows(path)
    titles = list(sheets)
    if options.sheet is None:
        tables = [title for title in titles if _is_table(sheets[title])]
        title = tables[0] if tables else titles[0]
    else:
        title = sheet_title(path, titles, options.sheet)
    rows = sheets[title]
    row = options.header_row or (_header_row(rows) if options.header else None)
    settled = replace(options, sheet=title if title != titles[0] else options.sheet, header_row=row)
    below = [cells for number, cells in rows if number >= (row or 1)]
    columns = _sheet_columns(below) if options.header and below else []
    return _with_cells(settled, columns, _layout_words(settled, options))


def _sheet_columns(rows: Sequence[Sequence[str | None]]) -> list[SampleColumn]:
    try:
        names = named(rows[0])
    except SourceUnreadable:
        return []
    found = []
    for place, name in enumerate(names):
        cells = [cells[place] for cells in rows[1:] if place < len(cells) and cells[place] is not None]
        texts = [cell for cell in cells if not isinstance(cell, Stored)]
        found.append(_sampled(name, pa.array(texts, pa.string()), stored=len(texts) < len(cells)))
    return found


def _sampled(name: str, array: pa.Array, *, stored: bool = False) -> SampleColumn:
    texts = pc.unique(pc.utf8_trim_whitespace(array.cast(pa.string())).drop_null())
    return SampleColumn(name, texts.filter(pc.not_equal(texts, "")), stored)


def _encoding(path: Path) -> str | None:
    """Return the encoding of a file that is not UTF-8 and has no byte-order mark; the whole file is looked through."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with byte_stream(path) as stream:
        start = block = stream.read(_BLOCK)
        if marked_encoding(start) is not None:
            return None
        if b"\0" in start[:SAMPLE_BYTES]:
            return "utf-16-be" if start[:SAMPLE_BYTES:2].count(0) > start[1:SAMPLE_BYTES:2].count(0) else "utf-16-le"
        while block:
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                return likely_encoding(block)
            block = stream.read(_BLOCK)
    return None


def _layout(text: str, options: SourceOptions, path: Path) -> tuple[str, int | None]:
    """Return the delimiter, and the line of the header where it is not the first."""

    def header(rows: Sequence[tuple[int, Sequence[str | None]]]) -> int | None:
        return options.header_row or (_header_row(rows) if options.header else None)

    def below(delimiter: str) -> list[list[str]]:
        rows = first_lines(text, delimiter, options.quote)
        return [cells for number, cells in rows if number >= (header(rows) or 1)]

    delimiter = DialectOptions.of(options, path).delimiter or likely_delimiter(below)
    return delimiter, header(first_lines(text, delimiter, options.quote))


def _header_row(rows: Sequence[tuple[int, Sequence[str | None]]]) -> int | None:
    """Return the number of the first row that is as wide as most are; None if that is simply the first.

    >>> _header_row([(1, ["Report of 2024"]), (3, ["age", "zip"]), (4, ["41", "02139"])])
    3
    """
    widths = Counter(len(cells) for _, cells in rows)
    width = max(widths, key=lambda each: (widths[each], each), default=0)
    for place, (number, cells) in enumerate(rows):
        if len(cells) >= width > 1 and 2 * sum(bool(cell) for cell in cells) > width:
            return number if place else None
    return None


def _is_table(rows: Sequence[tuple[int, Sequence[str | None]]]) -> bool:
    return sum(len(cells) > 1 for _, cells in rows) > 1


def _layout_words(settled: SourceOptions, told: SourceOptions) -> list[str]:
    words = []
    if settled.encoding != told.encoding:
        words.append(f"{settled.encoding}")
    if settled.sheet != told.sheet:
        words.append(f"the sheet {settled.sheet}")
    if settled.delimiter not in (told.delimiter, DELIMITERS[0]):
        mark = "a tab" if settled.delimiter == "\t" else repr(settled.delimiter)
        words.append(f"{mark} between columns")
    if settled.header_row != told.header_row:
        words.append(f"the columns named in row {settled.header_row}")
    return words


def _with_cells(options: SourceOptions, columns: Sequence[SampleColumn], words: list[str]) -> SourceOptions:
    """Return the options with the spellings of numbers, days and missing values that the cells suggest."""
    missing, unsure = ((), ()) if options.nulls != DEFAULTS.nulls else _missing(columns)
    present = [replace(each, texts=_without(each.texts, missing)) for each in columns]
    numbers, doubts = _number_spelling(present, options)
    formats, more = _formats(present, options)
    told = Spelling(options.decimal, options.thousands, options.dates).words
    said = [each for each in Spelling(numbers.decimal, numbers.thousands, formats).words if each not in told]
    words = [*words, *said, *((f"{' or '.join(map(repr, missing))} for what is missing",) if missing else ())]
    types = {each.name: Type.DECIMAL for each in present if numbers != PLAIN and _spells(numbers, each.texts)}
    types |= {each.name: Type.DATE for each in present if formats and _fitting(each.texts, map(DateFormat, formats))}
    return replace(
        options,
        decimal=numbers.decimal,
        thousands=numbers.thousands,
        dates=formats,
        nulls=(*options.nulls, *missing),
        types=types or None,
        guesses=((f"read as {', '.join(words)}",) if words else ()) + unsure + doubts + more,
    )


def _missing(columns: Iterable[SampleColumn]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what probably spells a missing value: known marks that stand among numbers or days, and nowhere else.

    Also what is in doubt: marks that stand elsewhere too, where they may be values.
    """
    found, elsewhere = set[str](), set[str]()
    for each in columns:
        marks = {text for text in each.texts.to_pylist() if text in MARKERS}
        rest = _without(each.texts, tuple(marks))
        amount = (len(rest) >= _FEWEST or each.stored) and _is_amount(rest)
        (found if amount else elsewhere).update(marks)
    both = " and ".join(map(repr, sorted(found & elsewhere)))
    return tuple(sorted(found - elsewhere)), (f"{both} among numbers and in text too: declare nulls",) if both else ()


def _is_amount(texts: pa.Array) -> bool:
    days = pc.all(pc.match_substring_regex(texts, _ISO_DAY)).as_py() is not False
    return days or any(_spells(each, texts) for each in _NUMBERS) or bool(_fitting(texts, _FORMATS))


def _without(texts: pa.Array, marks: tuple[str, ...]) -> pa.Array:
    return texts.filter(pc.invert(pc.is_in(texts, value_set=pa.array(marks, pa.string()))))


def _spells(spelling: Spelling, texts: pa.Array) -> bool:
    return len(texts) > 0 and bool(pc.all(spelling.numbers(texts)).as_py())


def _number_spelling(columns: Sequence[SampleColumn], options: SourceOptions) -> tuple[Spelling, tuple[str, ...]]:
    """Return how numbers are spelled in all columns that hold some with marks, and what is in doubt."""
    if options.decimal is not None or options.thousands is not None:
        return Spelling(options.decimal, options.thousands), ()
    marked = [
        each
        for each in columns
        if any(_spells(known, each.texts) for known in _NUMBERS)
        and not pc.all(pc.match_substring_regex(each.texts, _NUMERIC)).as_py()
    ]
    fitting = [known for known in _NUMBERS if all(_spells(known, each.texts) for each in marked)]
    if not marked:
        return PLAIN, ()
    if not fitting:
        names = ", ".join(each.name for each in marked)
        return PLAIN, (f"numbers are not spelled the same way in all of {names}: write them alike, or declare text",)
    readings = {known: [known.plain(each.texts, Type.DECIMAL) for each in marked] for known in fitting}
    doubtful = [
        each.name
        for place, each in enumerate(marked)
        if any(readings[k][place] != readings[fitting[0]][place] for k in fitting)
    ]
    point = fitting[0] == _NUMBERS[0]
    if not doubtful:
        return (PLAIN if point else fitting[0]), ()
    read_as = "is read as the decimal mark" if point else "is not read"
    doubt = f"in {', '.join(doubtful)} one mark stands before three digits and {read_as}: declare decimal and thousands"
    return PLAIN, (doubt,)


def _fitting(texts: pa.Array, formats: Iterable[DateFormat]) -> list[str]:
    """Return the formats by which all of some texts are days of the calendar."""
    found = []
    for each in formats:
        if not len(texts) or each.days(texts.slice(0, _GLANCE)).null_count:
            continue
        days = each.days(texts)
        if not days.null_count and not read(days, Type.DATE).unreadable.any():
            found.append(each.text)
    return found


def _formats(columns: Sequence[SampleColumn], options: SourceOptions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the formats of days, and what is in doubt."""
    if options.dates:
        return options.dates, ()
    fitting = {each.name: found for each in columns if (found := _fitting(each.texts, _FORMATS))}
    sure = tuple(dict.fromkeys(found[0] for found in fitting.values() if len(found) == 1))
    doubtful = [name for name, found in fitting.items() if len(set(found) & set(sure)) != 1]
    told = f"in {', '.join(doubtful)} day and month cannot be told apart: declare dates"
    try:
        date_formats(sure)
    except InvalidParameter:
        return (), ("days are spelled in ways that cannot be told apart: declare dates",)
    return sure, (told,) if doubtful else ()


def advice(texts: pa.Array, kind: Type, spelling: Spelling) -> str | None:
    """Return what to declare if that would let all of some cells be read, which cannot be read as they are declared.

    >>> advice(pa.array(["0,5", "12,25"]), Type.DECIMAL, Spelling())
    'decimal: ","'
    >>> advice(pa.array(["1.234", "2.000"]), Type.INTEGER, Spelling())
    'decimal: ",", thousands: "."'
    >>> advice(pa.array(["31.12.2024"]), Type.DATE, Spelling())
    'dates: "%d.%m.%Y"'
    """
    column = _as_written(texts)
    marks = tuple(text for text in column.texts.to_pylist() if text in MARKERS)
    rest = _without(column.texts, marks)
    if marks and not len(rest):
        return "nulls:, with how a missing value is spelled"
    if kind is Type.DATE:
        found = _fitting(rest, _FORMATS)
        return " or ".join(f'dates: "{each}"' for each in found) or None
    fitting = [known for known in _NUMBERS if _spells(known, rest)]
    whole = [known for known in fitting if kind is not Type.INTEGER or not _unread(known, rest, kind)]
    chosen = [known for known in whole if (known.decimal, known.thousands) != (spelling.decimal, spelling.thousands)]
    told: dict[str, str] = {}
    for known in chosen:
        marks_of = f'decimal: "{known.decimal}"' + (f', thousands: "{known.thousands}"' if known.thousands else "")
        told.setdefault(str(known.plain(rest, kind).to_pylist()), marks_of)
    return " or ".join(told.values()) or None


def in_another_spelling(texts: pa.Array, kind: Type) -> bool:
    """Return whether one of some cells that cannot be read is a number or a day in a known spelling.

    >>> in_another_spelling(pa.array(["forty", "40,5"]), Type.DECIMAL), in_another_spelling(pa.array(["x"]), Type.DATE)
    (True, False)
    >>> in_another_spelling(pa.array(["12.5"]), Type.INTEGER), in_another_spelling(pa.array(["12.500"]), Type.INTEGER)
    (False, True)
    """
    written = _as_written(texts).texts
    texts_of = {
        Type.DATE: (each.days(written) for each in _FORMATS),
        Type.INTEGER: (known.plain(written, kind) for known in _NUMBERS),
        Type.DECIMAL: (known.plain(written, kind) for known in _NUMBERS),
    }
    return any(pc.any(pc.is_valid(read(each, kind).values)).as_py() for each in texts_of.get(kind, ()))


def _as_written(texts: pa.Array) -> SampleColumn:
    """Return cells as they stood in the file: a number that is none by the declared spelling was crossed out."""
    return _sampled("", pc.replace_substring_regex(texts.cast(pa.string()), r"^\?([+-]?[0-9.])", r"\1"))


def _unread(spelling: Spelling, texts: pa.Array, kind: Type) -> bool:
    return bool(read(spelling.plain(texts, kind), kind).unreadable.any())
