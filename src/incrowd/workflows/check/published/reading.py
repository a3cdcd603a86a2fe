"""Reading: a published table of counts becomes bounds for each of its cells, whatever its layout and its marks are.

A crosstab has labels in its first columns and a column of numbers for each label of its header.  A long table has one
column of numbers, and a row for each cell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import takewhile
from math import lcm
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from incrowd.core.table import DEFAULTS, SourceOptions
from incrowd.errors import InvalidParameter
from incrowd.workflows.check.published.layout import NO_NAME, PublishedLayout, layout_of

Whole = NDArray[np.int64]

NO_BOUND = np.iinfo(np.int64).min
_NO_LEAST = -(2**42)
"""The lower bound of a hidden number where negative ones are shown."""
MOST_CELLS = 100_000
"""The most cells of a published table that is read."""
_GLANCE = 1 << 20
"""The largest file that is looked at as a table of counts without being called one."""
_MOST_AXES = 4
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
_THOUSANDS = re.compile(r"([+-]?\d{1,3}(?:([., '’])\d{3})(?:\2\d{3})*)(?:(?!\2)[.,](\d+))?")
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
    if parts := _THOUSANDS.fullmatch(plain):
        value = Fraction(re.sub(r"[., '’]", "", parts[1]) + f".{parts[3] or 0}")
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

    `high` is `NO_BOUND` where there is no upper bound.  `dashes` are cells with a dash, or rows that a long table does
    not have: zeros or hidden numbers, which only the sums can tell.  `absent` are combinations of labels that a
    crosstab has no cell for: nobody hides them.
    """

    axes: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    low: Whole
    high: Whole
    marks: NDArray[np.object_]
    dashes: NDArray[np.bool_]
    absent: NDArray[np.bool_]
    scale: int
    notes: tuple[str, ...]
    shares: tuple[str, ...] = ()

    @property
    def visible(self) -> NDArray[np.bool_]:
        """Which cells show their number."""
        return np.asarray((self.low == self.high) & ~self.dashes & ~self.absent)

    @property
    def signed(self) -> bool:
        """Whether a negative number is shown."""
        return bool(np.any(self.low[self.visible] < 0))

    @property
    def counts(self) -> bool:
        """Whether all numbers are whole and none is negative."""
        return self.scale == 1 and not self.signed


def read_published(source: str, options: SourceOptions = DEFAULTS, value: str | None = None) -> PublishedCounts:
    """Read a crosstab or a long table; `value` names the column of numbers of a long one."""
    layout = layout_of(source, options, _exact)
    if len(layout.columns) < 2 or not layout.columns[0]:
        raise InvalidParameter("this is not a table of counts: it needs a column of labels and a column of numbers.")
    layout = _without_attributes(layout)
    names = layout.names
    value = _SDMX_VALUE if value is None and _SDMX_VALUE in names else value
    numeric = _numeric(layout.columns)
    if value is not None:
        if value not in names:
            raise InvalidParameter(f"there is no column {value!r}: it has {', '.join(names)}.")
        return _long(layout, names.index(value))
    if not numeric:
        raise InvalidParameter("this is not a table of counts: no column has numbers or symbols only.")
    last = numeric[-1]
    if len(numeric) == 1 or (_COUNTS.fullmatch(names[last].strip().casefold()) and _distinct(layout.columns, last)):
        return replace(_long(layout, last), shares=layout.shares)
    return replace(_crosstab(layout, numeric), shares=layout.shares)


def _exact(text: str | None) -> bool:
    cell = read_cell(text)
    return cell is not None and cell.number


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


def _without_attributes(layout: PublishedLayout) -> PublishedLayout:
    """Return SDMX-CSV without columns that are not labels of cells, and those with the same code in every row."""
    if _SDMX_VALUE not in layout.names:
        return layout
    return layout.select(
        [
            place
            for place, (name, column) in enumerate(zip(layout.names, layout.columns, strict=True))
            if name == _SDMX_VALUE or (name.upper() not in _SDMX_NOTES and len(set(column)) > 1)
        ]
    )


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


def _crosstab(layout: PublishedLayout, numeric: list[int]) -> PublishedCounts:
    names, columns = layout.names, layout.columns
    labels = list(takewhile(lambda place: place not in numeric, range(len(names))))
    if sorted([*labels, *numeric]) != list(range(len(names))):
        other = next(names[place] for place in range(len(names)) if place not in numeric and place not in labels)
        raise InvalidParameter(f"column {other!r} holds text between numbers. Remove it, or name the numbers: --value.")
    rows = _sides([tuple(_label(columns[place][line]) for place in labels) for line in range(len(columns[0]))], layout)
    heads = _heads([layout.heads[place] for place in numeric])
    cells = {
        (*row, *head): columns[place][line]
        for line, row in enumerate(rows)
        for head, place in zip(heads, numeric, strict=True)
    }
    if len(cells) < len(rows) * len(numeric):
        raise InvalidParameter(f"the line {_twice(rows)} occurs twice: give every line of the table another label.")
    beside = [names[place] for place in labels]
    beside = [*(["groups"] if len(rows[0]) > len(labels) else []), *beside]
    return _table((*beside, *("columns", "columns below")[: len(heads[0])]), cells, layout.notes, whole=False)


def _heads(heads: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the labels above each column of numbers; of two lines, a total without a second one has its name."""
    if len(heads[0]) == 1:
        return list(heads)
    sides = [_with_total(labels) for labels in zip(*heads, strict=True)]
    varied = [labels for labels in sides if len(set(labels)) > 1] or sides[:1]
    return list(zip(*varied, strict=True))


def _with_total(labels: Sequence[str]) -> list[str]:
    """Return labels with the name of the total in place of empty ones."""
    total = next((label for label in labels if is_total(label)), NO_NAME)
    return [label or total for label in labels]


def _sides(rows: list[tuple[str, ...]], layout: PublishedLayout) -> list[tuple[str, ...]]:
    """Return the labels of each line; where lines repeat, a label stands for the lines under it, too.

    It does if the cells below it are empty, if it is a heading, or if the lines below it are indented.
    """
    if len(set(rows)) == len(rows):
        return rows
    if len(rows[0]) > 1:
        filled, last = list[tuple[str, ...]](), rows[0]
        for row in rows:
            blank = [not any(part.strip() for part in row[: place + 1]) for place in range(len(row) - 1)]
            last = (*(old if empty else new for old, new, empty in zip(last, row, blank, strict=False)), row[-1])
            filled.append(last)
        return filled
    groups = _groups([row[0] for row in rows], dict(layout.headings))
    if groups is None:
        return rows
    return list(zip(*map(_with_total, zip(*groups, strict=True)), strict=True))


def _groups(labels: Sequence[str], headings: Mapping[int, str]) -> list[tuple[str, str]] | None:
    """Return the group of each line and its label in it, which is empty where the line is its group's own."""
    indented = any(label[:1].isspace() for label in labels)
    if not indented and not headings:
        return None
    groups, group = list[tuple[str, str]](), ""
    for line, label in enumerate(labels):
        group = headings.get(line, group)
        own = indented and not label[:1].isspace()
        group = label.strip() if own else group
        groups.append((group, "" if own else label.strip()))
    return groups


def _long(layout: PublishedLayout, value: int) -> PublishedCounts:
    names, columns = layout.names, layout.columns
    labels = [place for place in range(len(names)) if place != value]
    rows = [tuple(_label(columns[place][line]) for place in labels) for line in range(len(columns[0]))]
    cells = dict(zip(rows, columns[value], strict=True))
    if len(cells) < len(rows):
        raise InvalidParameter(f"the cell {_twice(rows)} occurs twice: this is not a table of counts.")
    return _table(tuple(names[place] for place in labels), cells, layout.notes, whole=True)


def _label(cell: str | None) -> str:
    return "" if cell is None else cell.translate(_SPACES).rstrip()


def _twice(rows: Sequence[tuple[str, ...]]) -> str:
    return ", ".join(Counter(rows).most_common(1)[0][0])


def _table(
    axes: tuple[str, ...], cells: dict[tuple[str, ...], str | None], notes: tuple[str, ...], *, whole: bool
) -> PublishedCounts:
    """Return the table of these cells; `whole` is whether each other combination of labels is a cell, too."""
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
    marks, dashes, absent = np.full(shape, "not listed", object), np.full(shape, whole), np.full(shape, not whole)
    for place, cell in read.items():
        low[place] = 0 if cell.low is None else int(cell.low * scale)
        high[place] = NO_BOUND if cell.high is None else int(cell.high * scale)
        marks[place], dashes[place], absent[place] = cell.mark, cell.dash, False
    table = PublishedCounts(axes, labels, low, high, marks, dashes, absent, scale, notes)
    if not table.signed:
        return table
    return replace(table, low=np.where(~table.visible & (low == 0), _NO_LEAST, low))


def _need(text: str | None) -> Shown:
    cell = read_cell(text)
    if cell is None:
        raise InvalidParameter(
            "some cell is neither a number nor a symbol such as *, x, .. or <5. Name the column of "
            "numbers with --value, or remove other text."
        )
    return cell
