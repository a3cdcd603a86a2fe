"""Guess: how a text file or a workbook should probably be read, for its data holder and for drafts of policies.

Where a policy declares the columns, nothing is guessed: a guess depends on the values of people's rows.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.cleaning import Cleaning
from incrowd.core.domain import Provenance, Type
from incrowd.core.reading import read
from incrowd.core.table import DEFAULTS, SourceOptions
from incrowd.engines.postgres import is_postgres
from incrowd.engines.readers import dialect
from incrowd.engines.readers.conventions import TOTALS, is_missing_word, unit_of
from incrowd.engines.readers.delimited import open_delimited
from incrowd.engines.readers.dialect import byte_stream, first_lines, marked_encoding
from incrowd.engines.readers.encodings import likely_encoding
from incrowd.engines.readers.reader import named
from incrowd.engines.readers.remote import PATTERN, is_remote
from incrowd.engines.readers.sources import find_format, place_of
from incrowd.engines.readers.spelling import PLAIN, DateFormat, Spelling, date_formats
from incrowd.errors import InvalidParameter, SourceUnreadable

_NUMBERS = (
    *(Spelling(decimal) for decimal in (".", ",")),
    *(Spelling(decimal, mark) for decimal in (",", ".") for mark in (".", ",", "'", " ") if mark != decimal),
)
"""Spellings of numbers, the simplest first."""
_DAYS = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d-%b-%Y", "%d%b%Y"),
    *("%d. %m. %Y", "%d.%m.%Y.", "%d. %m. %Y.", "%Y.%m.%d.", "%Y. %m. %d."),  # of Central Europe
    *("%Y年%m月%d日", "%Y년 %m월 %d일"),
)
_FORMATS = tuple(DateFormat(day + time) for day in _DAYS for time in ("", " %H:%M", " %H:%M:%S"))
_NUMERIC, _ISO_DAY = r"^[+-]?[0-9]+$", r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ] *[0-9].*)?$"
_SHORT_WORDS = r"^[^0-9]{1,30}$"
_LEADING_ZERO = r"^0[0-9]"
_FEWEST = 2  # one amount may be a code
_FEW_WORDS, _MANY = 3, 50  # so few different words are no values of so many different numbers or days
_WITH_UNITS = 10  # of numbers with a unit fewer tell that a column holds amounts
_BLOCK = 1 << 22  # bytes read at a time
_GLANCE = 20  # values tried before all are: most formats fail at once
_FEW_ROWS = 1000


@dataclass(frozen=True)
class SampleColumn:
    """The different texts of a column in the first rows, and whether other cells are stored as numbers or days."""

    name: str
    texts: pa.Array
    stored: bool = False


def guessed_options(source: object, options: SourceOptions = DEFAULTS) -> SourceOptions:
    """Return the options, completed by guesses from a text file or workbook on this machine.

    The field `guesses` names the guesses.  For a source of another kind, or an unreadable one, nothing is guessed.
    """
    if not isinstance(source, (str, Path)) or options.types is not None or is_postgres(str(source)):
        return options
    place = place_of(str(source)) if is_remote(source) or PATTERN.search(str(source)) else None
    path = place.path if place is not None else Path(str(source).rpartition("::")[0] or str(source))
    if not path.is_file():
        return options
    try:
        kind = find_format(path, options.format)
        if kind == "csv":
            return _of_text(path, options)
        if kind == "excel" and "::" not in str(source):
            return _of_workbook(path, options)
    except (OSError, LookupError, UnicodeError, pa.ArrowException):  # opening the file reports what is wrong with it
        return options
    return options


def policy_keys(options: SourceOptions) -> dict[str, Any]:
    """Return what a policy must declare under `source:` for the same reading; nothing for the defaults.

    >>> policy_keys(SourceOptions(encoding="cp1252", decimal=",", nulls=("", "k.A.")))
    {'encoding': 'cp1252', 'nulls': ['', 'k.A.'], 'decimal': ','}
    """
    keys: dict[str, Any] = {}
    for field in fields(options):
        value = getattr(options, field.name)
        plain = field.name in {"types", "clean", "guesses"} or (field.name, value) == ("delimiter", ",")
        if not plain and value != field.default:
            keys[field.name] = list(value) if isinstance(value, tuple) else value
    return keys


def _of_text(path: Path, options: SourceOptions) -> SourceOptions:
    encoding = options.encoding or _encoding(path)
    with byte_stream(path) as stream:
        start = stream.read(dialect.SAMPLE_BYTES)
    name, length = marked_encoding(start) or (encoding or "utf-8", 0)
    text = start[length:].decode(name, errors="replace")
    delimiter, row = _layout(text, options, path)
    settled = replace(options, encoding=encoding, delimiter=delimiter, header_row=row)
    try:
        reader = open_delimited(path, settled)
        table = _first_batches(reader.read(reader.names))
    except SourceUnreadable:  # reading the file reports what is wrong with it
        table = None
    columns = [] if table is None else [_sampled(name, table.column(name)) for name in table.column_names]
    return _with_cells(settled, columns, _layout_words(settled, options))


def _first_batches(batches: Iterator[pa.RecordBatch]) -> pa.Table | None:
    """Return the first batch, and those that follow while there are few rows: the last line may come alone."""
    first: list[pa.RecordBatch] = []
    while sum(batch.num_rows for batch in first) < _FEW_ROWS and (batch := next(batches, None)) is not None:
        first.append(batch)
    return pa.Table.from_batches(first).combine_chunks() if first else None


def _of_workbook(path: Path, options: SourceOptions) -> SourceOptions:
    from incrowd.engines.readers.excel import first_rows, sheet_title

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
    from incrowd.engines.readers.excel import Stored

    try:
        names = named(rows[0])
    except SourceUnreadable:
        return []
    columns = []
    for place, name in enumerate(names):
        cells = [cells[place] for cells in rows[1:] if place < len(cells) and cells[place] is not None]
        texts = [cell for cell in cells if not isinstance(cell, Stored)]
        columns.append(_sampled(name, pa.array(texts, pa.string()), stored=len(texts) < len(cells)))
    return columns


def _sampled(name: str, array: pa.Array | pa.ChunkedArray, *, stored: bool = False) -> SampleColumn:
    plain = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    texts = pc.unique(pc.utf8_trim_whitespace(plain.cast(pa.string())).drop_null())
    return SampleColumn(name, texts.filter(pc.not_equal(texts, "")), stored)


def _encoding(path: Path) -> str | None:
    """Return the encoding of a file that is not UTF-8 and has no byte-order mark; the whole file is read."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with byte_stream(path) as stream:
        start = block = stream.read(_BLOCK)
        if marked_encoding(start) is not None:
            return None
        if b"\0" in start[: dialect.SAMPLE_BYTES]:
            return (
                "utf-16-be"
                if start[: dialect.SAMPLE_BYTES : 2].count(0) > start[1 : dialect.SAMPLE_BYTES : 2].count(0)
                else "utf-16-le"
            )
        while block:
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                return likely_encoding(block)
            block = stream.read(_BLOCK)
    return None


def _layout(text: str, options: SourceOptions, path: Path) -> tuple[str, int | None]:
    """Return the delimiter, and the line of the header unless it is the first."""

    def header(rows: Sequence[tuple[int, Sequence[str | None]]]) -> int | None:
        return options.header_row or (_header_row(rows) if options.header else None)

    def below(delimiter: str) -> list[list[str]]:
        rows = first_lines(text, delimiter, options.quote)
        return [cells for number, cells in rows if number >= (header(rows) or 1)]

    delimiter = dialect.text_options(options, path).delimiter or dialect.likely_delimiter(below)
    return delimiter, header(first_lines(text, delimiter, options.quote))


def _header_row(rows: Sequence[tuple[int, Sequence[str | None]]]) -> int | None:
    """Return the number of the first row with as many cells as most rows have; None if that is the first row.

    >>> _header_row([(1, ["Report of 2024"]), (3, ["age", "zip"]), (4, ["41", "02139"])])
    3
    """
    widths = Counter(len(cells) for _, cells in rows)
    width = max(widths, key=lambda cells: (widths[cells], cells), default=0)
    for place, (number, cells) in enumerate(rows):
        if len(cells) >= width > 1 and 2 * sum(bool(cell) for cell in cells) > width:
            return number if place else None
    return None


def _is_table(rows: Sequence[tuple[int, Sequence[str | None]]]) -> bool:
    return sum(len(cells) > 1 for _, cells in rows) > 1


def _layout_words(settled: SourceOptions, declared: SourceOptions) -> list[str]:
    words = []
    if settled.encoding != declared.encoding:
        words.append(f"{settled.encoding}")
    if settled.sheet != declared.sheet:
        words.append(f"the sheet {settled.sheet}")
    if settled.delimiter not in (declared.delimiter, ","):
        mark = "a tab" if settled.delimiter == "\t" else repr(settled.delimiter)
        words.append(f"{mark} between columns")
    if settled.header_row != declared.header_row:
        words.append(f"the columns named in row {settled.header_row}")
    return words


def _with_cells(options: SourceOptions, columns: Sequence[SampleColumn], words: list[str]) -> SourceOptions:
    """Return the options with the spellings of numbers, days and missing values that the cells suggest."""
    missing, own = ((), {}) if options.nulls != DEFAULTS.nulls else _missing(columns)
    present = [replace(c, texts=_without(c.texts, (*missing, *own.get(c.name, ())))) for c in columns]
    units = {column.name: some for column in present if (some := _units(column.texts))}
    bare = [replace(c, texts=_bare(c.texts, units[c.name])) if c.name in units else c for c in present]
    numbers, marks, doubts = _number_spelling(bare, options)
    formats, more = _formats(present, options)
    declared = Spelling.of(options).words
    guessed = [word for word in Spelling(numbers.decimal, numbers.thousands, formats).words if word not in declared]
    words = [*words, *guessed, *((f"{' or '.join(map(repr, missing))} for missing values",) if missing else ())]
    clean = _cleanings(own, units, marks)
    words += [f"{column} with {_cleaning_words(rules)}" for column, rules in clean.items()]
    types = {column.name: Type.DECIMAL for column in bare if numbers != PLAIN and _spells(numbers, column.texts)}
    types |= dict.fromkeys((*units, *marks), Type.DECIMAL)
    dates = [DateFormat(text) for text in formats]
    types |= {column.name: Type.DATE for column in present if _fitting(column.texts, dates)}
    return replace(
        options,
        decimal=numbers.decimal,
        thousands=numbers.thousands,
        dates=formats,
        nulls=(*options.nulls, *missing),
        types=types or None,
        clean={**clean, **(options.clean or {})} or None,
        guesses=((f"read as {', '.join(words)}",) if words else ()) + doubts + more,
    )


def _missing(columns: Iterable[SampleColumn]) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the probable texts of a missing value: markers that occur among numbers or days, and nowhere else.

    Also return, by column, those among numbers or days that occur elsewhere too, where they may be values, and words
    of any language that stand among many numbers or days.
    """
    among: dict[str, set[str]] = {}
    alone: dict[str, set[str]] = {}
    elsewhere = set[str]()
    for column in columns:
        short = column.texts.filter(pc.match_substring_regex(column.texts, _SHORT_WORDS)).to_pylist()
        markers = {text for text in short if is_missing_word(text)}
        rest = _without(column.texts, tuple(markers))
        if (len(rest) >= _FEWEST or column.stored) and (_is_amount(rest) or _units(rest)):
            among[column.name] = markers
            continue
        elsewhere |= markers
        words = {text for text in short if not re.match(TOTALS, text)}
        if words and _few_among_amounts(column, words):
            alone[column.name] = words
    missing = set().union(*among.values()) - elsewhere
    own = alone | {name: markers & elsewhere for name, markers in among.items() if markers & elsewhere}
    return tuple(sorted(missing)), {name: tuple(sorted(words)) for name, words in own.items()}


def _few_among_amounts(column: SampleColumn, words: set[str]) -> bool:
    """Whether at most three words stand among many numbers or days, in a column that is nothing else."""
    rest = _without(column.texts, tuple(words))
    rest = rest.filter(pc.invert(pc.match_substring_regex(rest, TOTALS)))
    if len(words) > _FEW_WORDS or len(rest) < _WITH_UNITS:
        return False
    return bool(_units(rest)) or (len(rest) >= _MANY and _is_amount(rest))


def _units(texts: pa.Array) -> tuple[str, ...]:
    """Return the units of a column of numbers, most of which have one of at most two; else nothing."""
    if not len(texts) or unit_of(texts[0].as_py()) is None is unit_of(texts[-1].as_py()):
        return ()
    written = texts.to_pylist()
    units = [unit_of(text) for text in written]
    different = tuple(sorted({unit for unit in units if unit is not None}))
    without = pa.array([text for text, unit in zip(written, units, strict=True) if unit is None], pa.string())
    bare = _bare(texts, different) if different else texts
    numbers = different and any(_spells(spelling, bare) for spelling in _NUMBERS)
    few = 0 < len(different) <= _FEWEST and 2 * len(without) <= len(written)
    return different if numbers and few and not pc.any(pc.match_substring_regex(bare, _LEADING_ZERO)).as_py() else ()


def _bare(texts: pa.Array, units: tuple[str, ...]) -> pa.Array:
    return pc.unique(Cleaning(units=units).texts(texts))


def _cleanings(
    missing: dict[str, tuple[str, ...]], units: dict[str, tuple[str, ...]], marks: dict[str, Spelling]
) -> dict[str, Cleaning]:
    """Return the rules of columns that are written in a way of their own; they depend on rows until confirmed."""
    return {
        name: Cleaning(
            missing=missing.get(name, ()),
            units=units.get(name, ()),
            decimal=marks[name].decimal if name in marks else None,
            thousands=marks[name].thousands if name in marks else None,
            provenance=Provenance(derived=True),
        )
        for name in dict.fromkeys((*missing, *units, *marks))
    }


def _cleaning_words(rules: Cleaning) -> str:
    marks = Spelling(rules.decimal, rules.thousands).words
    units = (f"{' or '.join(map(repr, rules.units))} as its unit",) if rules.units else ()
    missing = (f"{' or '.join(map(repr, rules.missing))} for missing values",) if rules.missing else ()
    return " and ".join((*units, *marks, *missing))


def _is_amount(texts: pa.Array) -> bool:
    days = pc.all(pc.match_substring_regex(texts, _ISO_DAY)).as_py() is not False
    return days or any(_spells(spelling, texts) for spelling in _NUMBERS) or bool(_fitting(texts, _FORMATS))


def _without(texts: pa.Array, marks: tuple[str, ...]) -> pa.Array:
    return texts.filter(pc.invert(pc.is_in(texts, value_set=pa.array(marks, pa.string()))))


def _spells(spelling: Spelling, texts: pa.Array) -> bool:
    return len(texts) > 0 and bool(pc.all(spelling.numbers(texts)).as_py())


def _number_spelling(
    columns: Sequence[SampleColumn], options: SourceOptions
) -> tuple[Spelling, dict[str, Spelling], tuple[str, ...]]:
    """Return the spelling of numbers in all columns that hold some with marks, those of single columns, and doubts."""
    if options.decimal is not None or options.thousands is not None:
        return Spelling(options.decimal, options.thousands), {}, ()
    marked = [
        column
        for column in columns
        if any(_spells(spelling, column.texts) for spelling in _NUMBERS)
        and not pc.all(pc.match_substring_regex(column.texts, _NUMERIC)).as_py()
    ]
    fitting = [spelling for spelling in _NUMBERS if all(_spells(spelling, column.texts) for column in marked)]
    if not marked:
        return PLAIN, {}, ()
    if not fitting:
        return _by_column(marked)
    doubtful = [column.name for column in marked if _is_ambiguous(column.texts, fitting)]
    point = fitting[0] == _NUMBERS[0]
    if not doubtful:
        return (PLAIN if point else fitting[0]), {}, ()
    read_as = "is read as the decimal mark" if point else "is not read"
    doubt = f"in {', '.join(doubtful)} a separator precedes three digits and {read_as}: declare decimal and thousands"
    return PLAIN, {}, (doubt,)


def _by_column(columns: Sequence[SampleColumn]) -> tuple[Spelling, dict[str, Spelling], tuple[str, ...]]:
    """Return the spelling of each column, where columns are spelled in several ways; those in doubt are not read."""
    marks, doubtful = dict[str, Spelling](), []
    for column in columns:
        fitting = [spelling for spelling in _NUMBERS if _spells(spelling, column.texts)]
        if _is_ambiguous(column.texts, fitting):
            doubtful.append(column.name)
        elif fitting[0] != _NUMBERS[0]:
            marks[column.name] = fitting[0]
    doubt = f"in {', '.join(doubtful)} a separator precedes three digits, and other columns differ: declare text"
    return PLAIN, marks, (doubt,) if doubtful else ()


def _is_ambiguous(texts: pa.Array, spellings: Sequence[Spelling]) -> bool:
    first, *others = [spelling.plain(texts, Type.DECIMAL) for spelling in spellings]
    return any(not other.equals(first) for other in others)


def _fitting(texts: pa.Array, formats: Iterable[DateFormat]) -> list[str]:
    """Return the formats in which all of these texts are days of the calendar."""
    fitting = []
    for date in formats:
        if not len(texts) or date.days(texts.slice(0, _GLANCE)).null_count:
            continue
        days = date.days(texts)
        if not days.null_count and not read(days, Type.DATE).unreadable.any():
            fitting.append(date.text)
    return fitting


def _formats(columns: Sequence[SampleColumn], options: SourceOptions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the formats of days, and what is in doubt."""
    if options.dates:
        return options.dates, ()
    fitting = {column.name: formats for column in columns if (formats := _fitting(column.texts, _FORMATS))}
    sure = tuple(dict.fromkeys(formats[0] for formats in fitting.values() if len(formats) == 1))
    doubtful = [name for name, formats in fitting.items() if len(set(formats) & set(sure)) != 1]
    doubt = f"in {', '.join(doubtful)} day and month are ambiguous: declare dates"
    try:
        date_formats(sure)
    except InvalidParameter:
        return (), ("the formats of days are ambiguous: declare dates",)
    return sure, (doubt,) if doubtful else ()


def advice(texts: pa.Array, kind: Type, spelling: Spelling) -> str | None:
    """Return what to declare so that all of these cells, which are unreadable as declared, could be read.

    >>> advice(pa.array(["0,5", "12,25"]), Type.DECIMAL, Spelling())
    'decimal: ","'
    >>> advice(pa.array(["1.234", "2.000"]), Type.INTEGER, Spelling())
    'decimal: ",", thousands: "."'
    >>> advice(pa.array(["31.12.2024"]), Type.DATE, Spelling())
    'dates: "%d.%m.%Y"'
    """
    column = _as_written(texts)
    marks = tuple(text for text in column.texts.to_pylist() if is_missing_word(text))
    rest = _without(column.texts, marks)
    if marks and not len(rest):
        return "nulls:, with the texts of a missing value"
    if kind is Type.DATE:
        return " or ".join(f'dates: "{text}"' for text in _fitting(rest, _FORMATS)) or None
    by_reading: dict[str, str] = {}
    for other in _NUMBERS:
        same = (other.decimal, other.thousands) == (spelling.decimal, spelling.thousands)
        if same or not _spells(other, rest) or (kind is Type.INTEGER and _unread(other, rest, kind)):
            continue
        declared = f'decimal: "{other.decimal}"' + (f', thousands: "{other.thousands}"' if other.thousands else "")
        by_reading.setdefault(str(other.plain(rest, kind).to_pylist()), declared)
    return " or ".join(by_reading.values()) or None


def in_another_spelling(texts: pa.Array, kind: Type) -> bool:
    """Whether one of these unreadable cells is a number or a day in another common spelling.

    >>> in_another_spelling(pa.array(["forty", "40,5"]), Type.DECIMAL), in_another_spelling(pa.array(["x"]), Type.DATE)
    (True, False)
    >>> in_another_spelling(pa.array(["12.5"]), Type.INTEGER), in_another_spelling(pa.array(["12.500"]), Type.INTEGER)
    (False, True)
    """
    written = _as_written(texts).texts
    texts_of = {
        Type.DATE: (date.days(written) for date in _FORMATS),
        Type.INTEGER: (spelling.plain(written, kind) for spelling in _NUMBERS),
        Type.DECIMAL: (spelling.plain(written, kind) for spelling in _NUMBERS),
    }
    return any(pc.any(pc.is_valid(read(plain, kind).values)).as_py() for plain in texts_of.get(kind, ()))


def _as_written(texts: pa.Array) -> SampleColumn:
    """Return cells as the file holds them: a number in another than the declared spelling got a question mark."""
    return _sampled("", pc.replace_substring_regex(texts.cast(pa.string()), r"^\?([+-]?[0-9.])", r"\1"))


def _unread(spelling: Spelling, texts: pa.Array, kind: Type) -> bool:
    return bool(read(spelling.plain(texts, kind), kind).unreadable.any())
