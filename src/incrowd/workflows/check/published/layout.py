"""Layout: the header of a published table, in one line or two, and the lines under it without titles and notes.

Offices write years over sexes, name a region once for all lines under it, and put a heading over each group of lines.
Each of these is one more side of the table, whose totals add up like those of the others.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from incrowd.core.table import SourceOptions
from incrowd.engines.readers.dialect import byte_stream, dialect, split
from incrowd.engines.readers.excel import first_rows, sheet_title
from incrowd.engines.readers.guess import guessed_options
from incrowd.engines.readers.reader import named
from incrowd.engines.readers.sources import find_format, open_source
from incrowd.errors import SourceUnreadable

Cells = Sequence[str | None]
Record = tuple[int, Cells]
"""The number of a line in its file, and its cells."""

_MOST_BYTES = 1 << 26
_MOST_ROWS = 100_000
_PERCENT = re.compile(r"%|(in )?(per ?cent|percentage|prozent|v\.? ?h\.?|procent|pourcentage|porcentaje|percentuale)")
_PERCENTAGE = re.compile(r"[+-]?\d+(?:[.,]\d+)?\s*%")
NO_NAME = "Total"
"""The name of a side's total where the table has no word for it."""


@dataclass(frozen=True)
class PublishedLayout:
    """The labels of each column, one for each line of the header, and its cells.

    `headings` are lines with a label and nothing else, by the number of lines above them.  `shares` are numbers that
    are hidden while the percentage beside them is shown.
    """

    heads: tuple[tuple[str, ...], ...]
    columns: tuple[Cells, ...]
    headings: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each column."""
        return tuple(", ".join(part for part in head if part) for head in self.heads)

    def select(self, places: Sequence[int]) -> PublishedLayout:
        """Return some of the columns."""
        return replace(
            self,
            heads=tuple(self.heads[place] for place in places),
            columns=tuple(self.columns[place] for place in places),
        )


def layout_of(source: str, options: SourceOptions, exact: Callable[[str | None], bool]) -> PublishedLayout:
    """Read a file as a table with a header of one line or two; `exact` is whether a cell shows a number."""
    guessed = replace(guessed_options(source, options), nulls=(), decimal=None, thousands=None)
    path = Path(source)
    kind = find_format(path, guessed.format) if path.is_file() and guessed.header else None
    if kind not in ("csv", "excel"):
        opened = open_source(source, options)
        table = pa.Table.from_batches(list(opened.batches(opened.names)))
        lines = zip(*(_written(column.to_pylist()) for column in table.columns), strict=True)
        return _without_percentages(_without_headings([(name,) for name in opened.names], list(lines)), exact)
    if kind == "csv":
        return _without_percentages(_headed(_text(path, guessed), guessed.header_row or 1, exact), exact)
    records, notes = _sheet(path, guessed)
    layout = _without_percentages(_headed(records, guessed.header_row or 1, exact), exact)
    return replace(layout, notes=(*notes, *layout.notes))


def _written(values: list[object]) -> list[str | None]:
    return [None if value is None else str(value) for value in values]


def _text(path: Path, options: SourceOptions) -> list[Record]:
    form = dialect(path, replace(options, header=False, header_row=None))
    with byte_stream(path) as stream:
        stream.read(form.mark)
        try:
            text = stream.read(_MOST_BYTES).decode(form.encoding, errors="replace")
        except OSError:  # a compressed file that was cut off
            raise SourceUnreadable(f"{path} cannot be read to its end: it is damaged.") from None
    reader = split(io.StringIO(text, newline=""), options.delimiter or form.delimiter, form.quote)
    return [(reader.line_num, cells) for cells in reader if any(cells)]


def _sheet(path: Path, options: SourceOptions) -> tuple[list[Record], tuple[str, ...]]:
    """Return the lines of a sheet, and a note if there are others: tables of one workbook are read side by side."""
    sheets = first_rows(path, _MOST_ROWS)
    titles = list(sheets)
    title = titles[0] if options.sheet is None else sheet_title(path, titles, options.sheet)
    others = ", ".join(other for other in titles if other != title and sheets[other])
    note = f"only the sheet {title} was examined; what others give away together with it is not known: {others}"
    return list(sheets[title]), (note,) if others else ()


def _headed(records: Sequence[Record], header_row: int, exact: Callable[[str | None], bool]) -> PublishedLayout:
    """Return the table below its header; one line of it may stand over another, with a label for several columns."""
    start = next((place for place, (number, _) in enumerate(records) if number >= header_row), None)
    if start is None:
        raise SourceUnreadable("the file is empty: there is not even a header line. Is this the right file?")
    above, *lines = _rectangle([records[start - 1][1] if start else (), *(cells for _, cells in records[start:])])
    head, below = _stripped(lines[0]), _stripped(lines[1] if len(lines) > 1 else [""] * len(lines[0]))
    above = _stripped(above)
    some = [name for name in head[1:] if name]
    doubled = len(set(some)) < len(some)
    unnamed = not below[0] and any(text and not name for name, text in zip(head[1:], below[1:], strict=True))
    if unnamed or (doubled and not any(map(exact, below)) and sum(map(bool, below)) > 1):
        return _without_headings(_pairs(head, below), lines[2:])
    if sum(map(bool, above[1:])) > (0 if doubled else 1) and (doubled or not head[0]):
        return _without_headings(_pairs(above, head), lines[1:])
    return _without_headings([(name,) for name in named(head)], lines[1:])


def _rectangle(lines: Sequence[Cells]) -> list[list[str]]:
    """Return lines of as many cells as the first ones have, without columns that are empty: a line may end with `;`."""
    width = max(map(len, lines[1:3]))
    full = [[*(cell or "" for cell in line), *[""] * width][:width] for line in lines]
    places = [place for place in range(width) if not place or any(line[place].strip() for line in full)]
    return [[line[place] for place in places] for line in full]


def _stripped(cells: Cells) -> list[str]:
    return [(cell or "").strip() for cell in cells]


def _pairs(above: Sequence[str], below: Sequence[str]) -> list[tuple[str, ...]]:
    """Return for each column its label above, which stands for the columns to the right, too, and the one below."""
    heads, upper = list[tuple[str, str]](), ""
    for place, (top, name) in enumerate(zip(above, below, strict=True)):
        upper = top or upper
        heads.append((upper, name) if upper or name else ("", f"column{place + 1}"))
        upper = upper if place else ""
    named([", ".join(filter(None, head)) for head in heads])
    return list(heads)


def _without_headings(heads: Sequence[tuple[str, ...]], lines: Sequence[Cells]) -> PublishedLayout:
    """Leave out lines that have a label and nothing else: titles, headings and footnotes."""
    full, headings = list[Cells](), list[tuple[int, str]]()
    for line in lines:
        if any((cell or "").strip() for cell in line[1:]):
            full.append(line)
        else:
            headings.append((len(full), (line[0] or "").strip()))
    number = len(headings)
    note = f"{number} {'line' if number == 1 else 'lines'} without any number or symbol: read as headings or notes"
    columns = tuple(zip(*full, strict=True)) if full else tuple(() for _ in heads)
    return PublishedLayout(tuple(heads), columns, tuple(headings), (note,) if headings else ())


def _without_percentages(layout: PublishedLayout, exact: Callable[[str | None], bool]) -> PublishedLayout:
    """Leave out columns of percentages, which do not add up, and name hidden numbers beside which one is shown."""
    places = [place for place in range(len(layout.heads)) if not place or not _percentages(layout, place)]
    shares = list[str]()
    for place in sorted(set(range(len(layout.heads))) - set(places)):
        number = _number_of(layout, place, places)
        cells = zip(layout.columns[0], layout.columns[number], layout.columns[place], strict=True) if number else ()
        for label, count, share in cells:
            if not exact(count) and exact((share or "").replace("%", "")):
                shares.append(f"{(label or '').strip()}, {layout.names[number]}")
    if len(places) == len(layout.heads):
        return layout
    left_out = [name for place, name in enumerate(layout.names) if place not in places]
    note = f"percentages are not added up: {', '.join(left_out)}"
    return replace(layout.select(places), notes=(*layout.notes, note), shares=tuple(shares))


def _number_of(layout: PublishedLayout, share: int, numbers: Sequence[int]) -> int:
    """Return the column that a column of percentages belongs to: to the left, of the same name if there is one."""
    left = [place for place in numbers if 0 < place < share]
    name = {_PERCENT.sub("", part.casefold()).strip() for part in layout.heads[share]} - {""}
    same = [place for place in left if name <= {part.casefold() for part in layout.heads[place]}]
    return max(same or left, default=0)


def _percentages(layout: PublishedLayout, place: int) -> bool:
    texts = [(cell or "").strip() for cell in layout.columns[place]]
    named_so = any(_PERCENT.fullmatch(part.strip().casefold()) for part in layout.heads[place])
    return named_so or any(map(_PERCENTAGE.fullmatch, texts))
