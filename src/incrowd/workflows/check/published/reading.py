"""Reading: a published table of counts becomes bounds for each of its cells, whatever its layout and its marks are.

A crosstab has labels in its first columns and a column of numbers for each label of its header.  A long table has one
column of numbers, and a row for each cell.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import takewhile
from math import lcm
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.table import DEFAULTS, SourceOptions
from incrowd.engines.readers.dialect import byte_stream, dialect, split
from incrowd.engines.readers.guess import guessed_options
from incrowd.engines.readers.sources import find_format, open_source
from incrowd.errors import InvalidParameter, SourceUnreadable

Whole = NDArray[np.int64]

NO_BOUND = -1
MOST_CELLS = 100_000
"""The most cells of a published table that is read."""
_MOST_BYTES = 1 << 26
_GLANCE = 1 << 20
"""The largest file that is looked at as a table of counts without being called one."""
_MOST_AXES = 3
_HIDDEN = frozenset(
    ("", "*", "**", "***", ".", "..", "...", "…", "•", ":", ":c", "/", "#", "?", "x", "xx", "c", "s", "d", "(c)", "(s)")
) | frozenset(("(d)", "n/a", "na", "n.a.", "suppressed", "confidential", "geheim", "g", "secret", "vertrouwelijk"))
_HIDDEN |= frozenset(
    ("k. a.", "k.a.", "keine angabe", "n. v.", "n.v.", "s/d", "s.d.", "sin datos", "n.d.", "n. d.", "nd", "nc", ": c")
)
_HIDDEN |= frozenset(("gizli", "belirsiz", "απόρρητο", "конф.", "sigiloso", "riservato", "skryto", "i.d.", "秘", "q"))
_STARS = frozenset(("*", "**", "***", "..", "…", "•"))
_DASHES = frozenset(("-", "–", "—", "--", "−"))
_SPACES = dict.fromkeys(map(ord, "\u00a0\u2009\u202f\u2007"), " ")
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
_FLAG = re.compile(r"(?<=\d)\s*(?:[bdefinprsuz]{1,2}|\([a-z0-9]\)|[†‡¹²³])$")
"""What offices write behind a number: provisional, revised, estimated, or the sign of a footnote."""
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:[., '’]\d{3})+")
_BELOW = re.compile(
    r"(<|≤|<=|under|below|less than|fewer than|unter|weniger als|moins de|menos de|minder dan|meno di)\s*(\d+)",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"(\d+)\s*(?:-|–|to|bis|à|a|tot)\s*(\d+)", re.IGNORECASE)
_ABOVE = re.compile(r"(>|≥|>=)\s*(\d+)")
_COUNTS = re.compile(
    r"n|counts?|number|anzahl|f(ä|ae)lle|freq(uency)?|frequenz|cases|personen|persons|people|nombre|effectif|aantal|"
    r"n[uú]mero|casos|personas|antal|liczba|(obs_)?value|wert|valeur|valor|waarde|total"
)
"""Names of the column of a long table that holds its numbers."""


_TOTALS = re.compile(
    r"totals?|sum|all|overall|(ins)?gesamt|zusammen|summe|alle|ensemble|tous|toutes|somme|totaal|som|alles|suma|todos|"
    r"todas|totale|tutti|somma|razem|ogółem|totalt|samtliga|summa|yhteensä|celkem|összesen|[*∑σ]|_t|toplam|tümü|hepsi|"
    r"soma|σύνολο|всего|итого|общо|усього|ukupno|skupaj|spolu|kopā|kokku|alls|總計|总计|合计|合計|総数|計|합계|계|المجموع|कुल"
)
"""First or last words of the labels of totals, in the languages of those who publish tables."""

_TOTAL_PHRASES = frozenset(("i alt", "iš viso", "au total", "en total", "grand total"))
_SDMX_VALUE = "OBS_VALUE"
_SDMX_NOTES = frozenset(("DATAFLOW", "STRUCTURE", "STRUCTURE_ID", "STRUCTURE_NAME", "ACTION", "LAST UPDATE"))
_SDMX_NOTES |= frozenset(("OBS_FLAG", "OBS_STATUS", "CONF_STATUS", "UNIT_MULT", "DECIMALS", "TIME_FORMAT"))
"""Columns of SDMX-CSV that say something of a cell or of the file, and are not labels."""


def is_total(label: str) -> bool:
    """Whether a label names a total.

    >>> is_total("Total"), is_total("Insgesamt (2024)"), is_total("GENEL TOPLAM"), is_total("I alt"), is_total("Totnes")
    (True, True, True, True, False)
    """
    words = label.strip().casefold().replace(":", " ").replace("(", " ").split()
    named = any(_TOTALS.fullmatch(word) for word in (*words[:1], *words[-1:]))
    return named or " ".join(words) in _TOTAL_PHRASES


@dataclass(frozen=True)
class Shown:
    """What a cell of a file shows: bounds of its number, the text if that hides something, and whether it is a dash."""

    low: Fraction | None
    high: Fraction | None
    mark: str = ""
    dash: bool = False

    @property
    def number(self) -> bool:
        """Whether the cell shows its number."""
        return self.low is not None and self.low == self.high


def read_cell(text: str | None) -> Shown | None:
    """Return what a cell shows; None for text that is neither a number nor a mark.

    >>> read_cell("1 234").low, read_cell("<5").high, read_cell("*").number, read_cell("Berlin")
    (Fraction(1234, 1), Fraction(4, 1), False, None)
    """
    plain = _FLAG.sub("", ("" if text is None else text).translate(_SPACES).strip())
    if plain in _DASHES:
        return Shown(None, None, plain, dash=True)
    if plain.casefold() in _HIDDEN:
        return Shown(None, None, plain or "blank")
    if _THOUSANDS.fullmatch(plain):
        value = Fraction(re.sub(r"[., '’]", "", plain))
        return Shown(value, value)
    if _NUMBER.fullmatch(plain):
        value = Fraction(plain.replace(",", "."))
        return Shown(value, value)
    if below := _BELOW.fullmatch(plain):
        most = int(below[2]) - (below[1] not in ("≤", "<="))
        return Shown(None, Fraction(most), plain)
    if (between := _BETWEEN.fullmatch(plain)) and int(between[1]) < int(between[2]):
        return Shown(Fraction(between[1]), Fraction(between[2]), plain)
    if above := _ABOVE.fullmatch(plain):
        return Shown(Fraction(int(above[2]) + (above[1] == ">")), None, plain)
    return None


@dataclass(frozen=True, eq=False)
class PublishedCounts:
    """The cells of a table by the labels of its axes: bounds in units of 1/`scale`, and the marks of hidden ones.

    `high` is −1 where there is no upper bound.  `dashes` are cells with a dash, or rows that a long table does not
    have: zeros or hidden numbers, which only the sums can tell.
    """

    axes: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    low: Whole
    high: Whole
    marks: NDArray[np.object_]
    dashes: NDArray[np.bool_]
    scale: int
    notes: tuple[str, ...]

    @property
    def visible(self) -> NDArray[np.bool_]:
        """Which cells show their number."""
        return np.asarray((self.low == self.high) & ~self.dashes)

    @property
    def counts(self) -> bool:
        """Whether all numbers are whole and none is negative."""
        return self.scale == 1 and not np.any(self.low[self.visible] < 0)


def read_published(source: str, options: SourceOptions = DEFAULTS, value: str | None = None) -> PublishedCounts:
    """Read a crosstab or a long table; `value` names the column of numbers of a long one."""
    names, columns = _grid(source, replace(guessed_options(source, options), nulls=(), decimal=None, thousands=None))
    if len(names) < 2 or not columns[0]:
        raise InvalidParameter("this is not a table of counts: it needs a column of labels and a column of numbers.")
    names, columns = _without_attributes(names, columns)
    value = _SDMX_VALUE if value is None and _SDMX_VALUE in names else value
    columns, notes = _without_headings(columns)
    numeric = _numeric(columns)
    if value is not None:
        if value not in names:
            raise InvalidParameter(f"there is no column {value!r}: it has {', '.join(names)}.")
        return _long(names, columns, names.index(value), notes)
    if not numeric:
        raise InvalidParameter("this is not a table of counts: no column has numbers or symbols only.")
    last = numeric[-1]
    if len(numeric) == 1 or (_COUNTS.fullmatch(names[last].strip().casefold()) and _distinct(columns, last)):
        return _long(names, columns, last, notes)
    return _crosstab(names, columns, numeric, notes)


def looks_published(source: str, options: SourceOptions = DEFAULTS) -> PublishedCounts | None:
    """Return the table of a file that looks like published counts; None for rows of people.

    It does if each axis has a line that is named as a total, or one has and cells are hidden.
    """
    path = Path(source)
    if not path.is_file() or path.stat().st_size > _GLANCE:
        return None
    try:
        table = read_published(source, options)
    except InvalidParameter:
        return None
    totals = sum(any(is_total(label) for label in labels) for labels in table.labels)
    marked = bool(np.any(table.marks[~table.visible] != "not listed"))
    return table if totals == len(table.labels) or (totals and marked) else None


def _grid(source: str, options: SourceOptions) -> tuple[list[str], list[list[str | None]]]:
    """Return the names of the columns and their cells; in text, lines of titles and notes may be shorter."""
    path = Path(source)
    if not path.is_file() or find_format(path, options.format) != "csv":
        opened = open_source(source, replace(options, guesses=()))
        table = pa.Table.from_batches(list(opened.batches(opened.names)))
        return list(opened.names), [column.to_pylist() for column in table.columns]
    form = dialect(path, options)
    with byte_stream(path) as stream:
        stream.read(form.mark)
        try:
            text = stream.read(_MOST_BYTES).decode(form.encoding, errors="replace")
        except OSError:  # a compressed file that was cut off
            raise SourceUnreadable(f"{source} cannot be read to its end: it is damaged.") from None
    records = [record for record in split(io.StringIO(text, newline=""), form.delimiter, form.quote) if any(record)]
    width = len(form.names)
    rows = [[*record, *[""] * width][:width] for record in records[1:]]
    return list(form.names), [[row[place] for row in rows] for place in range(width)]


def _without_attributes(names: list[str], columns: list[list[str | None]]) -> tuple[list[str], list[list[str | None]]]:
    """Return SDMX-CSV without columns that are not labels of cells, and those with the same code in every row."""
    if _SDMX_VALUE not in names:
        return names, columns
    labels = [
        (name, column)
        for name, column in zip(names, columns, strict=True)
        if name == _SDMX_VALUE or (name.upper() not in _SDMX_NOTES and len(set(column)) > 1)
    ]
    return [name for name, _ in labels], [column for _, column in labels]


def _without_headings(columns: list[list[str | None]]) -> tuple[list[list[str | None]], tuple[str, ...]]:
    """Return the columns without lines that have a label and nothing else: titles, headings and footnotes."""
    full = [any((cell or "").strip() for cell in line[1:]) for line in zip(*columns, strict=True)]
    dropped = len(full) - sum(full)
    note = f"{dropped} {'line' if dropped == 1 else 'lines'} without any number or symbol: read as headings or notes"
    lines = [[cell for cell, whole in zip(column, full, strict=True) if whole] for column in columns]
    return lines, (note,) if dropped else ()


def _numeric(columns: Sequence[Sequence[str | None]]) -> list[int]:
    """Return the columns of numbers and marks; before the first with a number, a column of stars counts as hidden."""
    cells = {place: [read_cell(cell) for cell in column] for place, column in enumerate(columns) if place}
    readable = {place: column for place, column in cells.items() if None not in column}
    first = next(
        (place for place, column in readable.items() if any(cell is not None and cell.number for cell in column)),
        len(columns),
    )
    return [place for place in readable if place >= first or set(columns[place]) <= _STARS]


def _distinct(columns: Sequence[Sequence[str | None]], value: int) -> bool:
    """Whether no two rows have the same labels, which occur several times: the mark of a long table."""
    labels = [column for place, column in enumerate(columns) if place != value]
    repeated = all(len(set(column)) < len(column) for column in labels)
    return repeated and len(set(zip(*labels, strict=True))) == len(labels[0])


def _crosstab(
    names: list[str], columns: list[list[str | None]], numeric: list[int], notes: tuple[str, ...]
) -> PublishedCounts:
    labels = list(takewhile(lambda place: place not in numeric, range(len(names))))
    if sorted([*labels, *numeric]) != list(range(len(names))):
        other = next(names[place] for place in range(len(names)) if place not in numeric and place not in labels)
        raise InvalidParameter(f"column {other!r} holds text between numbers. Remove it, or name the numbers: --value.")
    rows = [(tuple(_label(columns[place][line]) for place in labels)) for line in range(len(columns[0]))]
    cells = {(*row, names[place]): columns[place][line] for line, row in enumerate(rows) for place in numeric}
    if len(cells) < len(rows) * len(numeric):
        raise InvalidParameter(f"the line {_twice(rows)} occurs twice: give every line of the table another label.")
    return _table((*(names[place] for place in labels), "columns"), cells, notes)


def _long(names: list[str], columns: list[list[str | None]], value: int, notes: tuple[str, ...]) -> PublishedCounts:
    labels = [place for place in range(len(names)) if place != value]
    rows = [tuple(_label(columns[place][line]) for place in labels) for line in range(len(columns[0]))]
    cells = dict(zip(rows, columns[value], strict=True))
    if len(cells) < len(rows):
        raise InvalidParameter(f"the cell {_twice(rows)} occurs twice: this is not a table of counts.")
    return _table(tuple(names[place] for place in labels), cells, notes)


def _label(cell: str | None) -> str:
    return "" if cell is None else cell.translate(_SPACES).rstrip()


def _twice(rows: Sequence[tuple[str, ...]]) -> str:
    return ", ".join(Counter(rows).most_common(1)[0][0])


def _table(axes: tuple[str, ...], cells: dict[tuple[str, ...], str | None], notes: tuple[str, ...]) -> PublishedCounts:
    if len(axes) > _MOST_AXES:
        raise InvalidParameter(f"the table has {len(axes)} columns of labels, and {_MOST_AXES} are the most.")
    labels = tuple(tuple(dict.fromkeys(place[axis] for place in cells)) for axis in range(len(axes)))
    shape = tuple(map(len, labels))
    if np.prod(shape, dtype=float) > MOST_CELLS:
        raise InvalidParameter(f"the table has more than {MOST_CELLS:,} cells, the most that are examined.")
    places = [{label: number for number, label in enumerate(names)} for names in labels]
    read = {tuple(places[axis][label] for axis, label in enumerate(key)): _need(text) for key, text in cells.items()}
    scale = lcm(*(bound.denominator for cell in read.values() for bound in (cell.low, cell.high) if bound is not None))
    low, high = np.zeros(shape, np.int64), np.full(shape, NO_BOUND, np.int64)
    marks, dashes = np.full(shape, "not listed", object), np.ones(shape, np.bool_)
    for place, cell in read.items():
        low[place] = 0 if cell.low is None else int(cell.low * scale)
        high[place] = NO_BOUND if cell.high is None else int(cell.high * scale)
        marks[place], dashes[place] = cell.mark, cell.dash
    return PublishedCounts(axes, labels, low, high, marks, dashes, scale, notes)


def _need(text: str | None) -> Shown:
    cell = read_cell(text)
    if cell is None:
        raise InvalidParameter(
            "some cell is neither a number nor a symbol such as *, x, .. or <5. Name the column of "
            "numbers with --value, or remove other text."
        )
    return cell
