"""Excel workbooks (.xlsx, .xlsm): one sheet, every cell as the text that a person would type."""

from __future__ import annotations

import itertools
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pyarrow as pa

from incrowd.engines.readers import reader
from incrowd.engines.readers.reader import BATCH_ROWS, SourceProblem, attempt, muffled, named, spell
from incrowd.engines.readers.spelling import ColumnCleaner, Spelling
from incrowd.errors import InvalidParameter, SourceUnreadable

if TYPE_CHECKING:
    from openpyxl import Workbook

    from incrowd.core.table import SourceOptions

_BROKEN = (zipfile.BadZipFile, ET.ParseError, KeyError, ValueError, TypeError, OSError)
_LISTED = 10
SAMPLE_ROWS = 200  # enough to see where a table begins
_PADDED = re.compile(r"0{2,}")


@dataclass(frozen=True)
class Sheet:
    """One sheet of a workbook.

    The first row that is not empty is the header, unless another is declared; empty rows are skipped.  A number with
    leading zeros in its format (00000) keeps them.  A formula has the value that the spreadsheet program last stored;
    without one it is missing, and so are merged cells except the first.  Notes name the places of both.  The declared
    spelling applies to cells of text; other cells hold numbers and days.
    """

    path: Path
    sheet: str
    names: tuple[str, ...]
    options: SourceOptions
    notes: tuple[str, ...]
    rows = None  # what a workbook says about its own size is often wrong

    @property
    def nulls(self) -> tuple[str, ...]:
        """The texts of a missing value."""
        return self.options.nulls

    @property
    def spelling(self) -> Spelling:
        return Spelling.of(self.options)

    @property
    def _totals(self) -> frozenset[str]:
        """First cells of rows that are left out: sums."""
        return frozenset(self.options.totals)

    @property
    def settings(self) -> Mapping[str, str]:
        nulls = ", ".join(repr(null) for null in self.nulls)
        row = self.options.header_row
        return {
            "sheet": self.sheet,
            "header": "yes" if self.options.header else "no",
            "nulls": nulls,
            **({"totals": ", ".join(map(repr, self.options.totals))} if self.options.totals else {}),
            **({"header_row": str(row)} if row is not None else {}),
            **self.spelling.settings,
        }

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return muffled(self._batches(columns), _BROKEN, f"{self.path} is a broken workbook. Save it again.")

    def lines(self, positions: Sequence[int]) -> tuple[int | None, ...]:
        first = itertools.islice(self._records(), max(positions, default=-1) + 1)
        numbers = {position: number for position, (number, _) in enumerate(first)}
        return tuple(numbers.get(position) for position in positions)

    def problems(self) -> Iterator[SourceProblem]:
        """Return the rows with a value to the right of the last column of the header."""
        width = len(self.names)
        for number, cells in self._records():
            if any(cell is not None for cell in cells[width:]):
                yield SourceProblem(f"a value to the right of the {width} columns of the header", number)

    def expected(self) -> int | None:
        return None  # a workbook's size tells little of its rows

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        places = [self.names.index(name) for name in columns]
        records: list[list[str | None]] = []
        for number, cells in self._records():
            if any(cell is not None for cell in cells[len(self.names) :]):
                raise SourceUnreadable(f"line {number}: a value to the right of the columns of the header.")
            records.append([self._cell(cells, place) for place in places])
            if len(records) == BATCH_ROWS:
                yield self._batch(records, columns)
                records = []
        if records:
            yield self._batch(records, columns)

    def _batch(self, records: list[list[str | None]], columns: Sequence[str]) -> pa.RecordBatch:
        if not columns:
            return pa.record_batch({"": pa.nulls(len(records))}).select([])
        cleaner = ColumnCleaner.of(self.options)
        arrays = []
        for name, cells in zip(columns, zip(*records, strict=True), strict=True):
            written = pa.array(cells, pa.string())
            stored = pa.array([isinstance(cell, Stored) for cell in cells])
            arrays.append(cleaner.column(name, written, stored))
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _cell(self, cells: Sequence[str | None], place: int) -> str | None:
        cell = cells[place] if place < len(cells) else None
        return None if cell in self.nulls else cell

    def _records(self) -> Iterator[tuple[int, list[str | None]]]:
        with closing(_book(self.path)) as book:
            rows = _from_header(_rows(book, self.sheet), self.options.header_row)
            if self.options.header:
                next(rows, None)
            yield from (
                (number, cells) for number, cells in rows if not cells or (cells[0] or "").strip() not in self._totals
            )


class Stored(str):
    """A number, a day or a truth value that the spreadsheet program stored as such, not as text."""

    __slots__ = ()


def open_excel(path: Path, options: SourceOptions) -> Sheet:
    """Open one sheet of a workbook: that of the declared name or number, or the first."""
    Spelling.of(options)  # raises if it contradicts itself
    row = options.header_row
    if row is not None and (row < 1 or not options.header):
        raise InvalidParameter("header_row is the number of the row that names the columns, from 1: or header: false.")
    with closing(_book(path)) as book:
        titles = tuple(book.sheetnames)
        title = titles[0] if options.sheet is None else sheet_title(path, titles, options.sheet)
        first = next(_from_header(_rows(book, title), row), None)
        if options.header and row is None and first is not None:
            reader.header_elsewhere(_rows(book, title), options.types or (), "row")
        losses = _losses(path, book, title)
    if first is None or (row is not None and first[0] != row):
        what = "is empty: there is not even a header" if first is None else f"has nothing in row {row}"
        raise SourceUnreadable(f"the sheet {title} {what}. Declare the right sheet, or the row of the header.")
    names = named(first[1] if options.header else [None] * len(first[1]))
    others = (f"the first of {len(titles)} sheets is read",) if options.sheet is None and len(titles) > 1 else ()
    return Sheet(path, title, names, options, (*others, *options.guesses, *losses))


def sheet_title(path: Path, titles: Sequence[str], sheet: str) -> str:
    """Return the title of a sheet, which is named by its title or by its number from 1.

    >>> sheet_title(Path("book.xlsx"), ["Cover", "Data"], "2")
    'Data'
    """
    if sheet in titles:
        return sheet
    if sheet.isascii() and sheet.isdigit() and 1 <= int(sheet) <= len(titles):
        return titles[int(sheet) - 1]
    raise SourceUnreadable(f"{path} has no sheet {sheet!r}. It has: {', '.join(titles)}.")


def first_rows(path: Path, most: int = SAMPLE_ROWS) -> dict[str, list[tuple[int, list[str | None]]]]:
    """Return the first rows of each sheet that are not empty, with their numbers."""
    with closing(_book(path)) as book:
        return {title: list(itertools.islice(_rows(book, title), most)) for title in book.sheetnames}


def _from_header(
    rows: Iterator[tuple[int, list[str | None]]], header_row: int | None
) -> Iterator[tuple[int, list[str | None]]]:
    return itertools.dropwhile(lambda row: row[0] < (header_row or 1), rows)


def _book(path: Path) -> Workbook:
    openpyxl: ModuleType = reader.package("openpyxl", "Excel files")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return attempt(
            partial(openpyxl.load_workbook, path, read_only=True, data_only=True),
            _BROKEN,
            f"{path} is not an Excel workbook (.xlsx), or it is broken. Save it again as .xlsx or CSV.",
        )


def _losses(path: Path, book: Workbook, title: str) -> tuple[str, ...]:
    """Return notes of the cells that are read as missing although a person sees a value there."""
    formulas, merged = list[str](), list[str]()
    with zipfile.ZipFile(path) as archive, archive.open(book[title]._worksheet_path.lstrip("/")) as content:  # noqa: SLF001 - the path has no public name
        for _, element in ET.iterparse(content):  # noqa: S314 - openpyxl has parsed this file already
            kind = element.tag.rpartition("}")[2]
            if kind == "c" and element.find("{*}f") is not None and not element.findtext("{*}v"):
                formulas.append(element.get("r", "somewhere"))
            elif kind == "mergeCell":
                merged.append(element.get("ref", "somewhere"))
            if kind == "row":
                element.clear()
    notes = []
    if formulas:
        notes.append(
            f"formulas without a stored result are read as missing: {_places(formulas)}. Open the workbook in a "
            "spreadsheet program and save it"
        )
    if merged:
        notes.append(f"of merged cells only the first has its value, the others are missing: {_places(merged)}")
    return tuple(notes)


def _places(places: list[str]) -> str:
    more = f" and {len(places) - _LISTED:,} more" if len(places) > _LISTED else ""
    return ", ".join(places[:_LISTED]) + more


def _rows(book: Workbook, title: str) -> Iterator[tuple[int, list[str | None]]]:
    """Yield the rows that are not empty with their numbers, without the empty cells at their ends."""
    sheet = book[title]
    sheet.reset_dimensions()
    for number, row in enumerate(sheet.iter_rows(), start=1):
        cells = [_written(cell) for cell in row]
        while cells and cells[-1] is None:
            cells.pop()
        if cells:
            yield number, cells


def _written(cell: Any) -> str | None:
    value = cell.value
    if isinstance(value, str):
        return spell(value)
    if isinstance(value, int) and not isinstance(value, bool) and _PADDED.fullmatch(cell.number_format):
        return Stored(str(value).zfill(len(cell.number_format)))
    written = spell(value)
    return None if written is None else Stored(written)
