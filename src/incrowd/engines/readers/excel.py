"""Excel workbooks (.xlsx, .xlsm): one sheet, every cell as the text a person would have typed."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pyarrow as pa

from incrowd.engines.readers.reader import BATCH_ROWS, SourceProblem, muffled, named, package, spell
from incrowd.errors import SourceUnreadable

if TYPE_CHECKING:
    from openpyxl import Workbook

_BROKEN = (zipfile.BadZipFile, ET.ParseError, KeyError, ValueError, TypeError, OSError)
_LISTED = 10
_PADDED = re.compile(r"0{2,}")


@dataclass(frozen=True)
class Sheet:
    """One sheet of a workbook.

    The first row that is not empty is the header; rows without any cell are no rows.  A number shown with leading
    zeros (format 00000) keeps them.  A formula counts as the value the spreadsheet program last computed and stored,
    and without one as missing; so do merged cells but for their first.  Both are told, with their places.
    """

    path: Path
    sheet: str
    names: tuple[str, ...]
    header: bool
    nulls: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def rows(self) -> int | None:
        """Unknown before the sheet has been read: what the file says about its own size is often wrong."""
        return None

    @property
    def settings(self) -> Mapping[str, str]:
        """The sheet, the header, and the spellings of a missing value."""
        nulls = ", ".join(repr(null) for null in self.nulls)
        return {"sheet": self.sheet, "header": "yes" if self.header else "no", "nulls": nulls}

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the sheet row by row."""
        return muffled(self._batches(columns), _BROKEN, f"{self.path} is a broken workbook. Save it again.")

    def lines(self, positions: Sequence[int]) -> tuple[int | None, ...]:
        """Return the numbers that the rows at these positions have in the sheet."""
        wanted = set(positions)
        found = {place: number for place, (number, _) in enumerate(self._records()) if place in wanted}
        return tuple(found.get(place) for place in positions)

    def problems(self) -> Iterator[SourceProblem]:
        """Name the rows with a value to the right of the last column of the header."""
        width = len(self.names)
        for number, cells in self._records():
            if any(cell is not None for cell in cells[width:]):
                yield SourceProblem(f"a value to the right of the {width} columns of the header", line=number)

    def expected(self) -> int | None:
        """Not guessed."""
        return None

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        places = [self.names.index(name) for name in columns]
        records: list[list[str | None]] = []
        for number, cells in self._records():
            if any(cell is not None for cell in cells[len(self.names) :]):
                raise SourceUnreadable(f"line {number}: a value to the right of the columns of the header.")
            records.append([self._cell(cells, place) for place in places])
            if len(records) == BATCH_ROWS:
                yield _batch(records, columns)
                records = []
        if records:
            yield _batch(records, columns)

    def _cell(self, cells: Sequence[str | None], place: int) -> str | None:
        cell = cells[place] if place < len(cells) else None
        return None if cell in self.nulls else cell

    def _records(self) -> Iterator[tuple[int, list[str | None]]]:
        book = _book(self.path)
        try:
            header = self.header
            for number, cells in _rows(book, self.sheet):
                if not header:
                    yield number, cells
                header = False
        finally:
            book.close()


def open_excel(path: Path, sheet: str | None, *, header: bool, nulls: tuple[str, ...]) -> Sheet:
    """Open one sheet of a workbook: the one asked for, or the first."""
    book = _book(path)
    try:
        titles = tuple(book.sheetnames)
        if sheet is not None and sheet not in titles:
            raise SourceUnreadable(f"{path} has no sheet {sheet!r}. It has: {', '.join(titles)}.")
        title = sheet or titles[0]
        first = next(_rows(book, title), None)
        losses = _losses(path, book, title)
    finally:
        book.close()
    if first is None:
        raise SourceUnreadable(f"the sheet {title} is empty: there is not even a header. Name the right sheet.")
    names = named(first[1] if header else [None] * len(first[1]))
    others = (f"the first of {len(titles)} sheets is read",) if sheet is None and len(titles) > 1 else ()
    return Sheet(path, title, names, header, nulls, (*others, *losses))


def _book(path: Path) -> Workbook:
    openpyxl: ModuleType = package("openpyxl", "Excel files")
    failed = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return openpyxl.load_workbook(path, read_only=True, data_only=True)
    except _BROKEN:
        failed = True
    if failed:
        raise SourceUnreadable(
            f"{path} is not an Excel workbook (.xlsx), or it is broken. Save it again as .xlsx or CSV."
        )
    return None


def _losses(path: Path, book: Workbook, title: str) -> tuple[str, ...]:
    """Say which cells are read as missing though a person sees something there, by their places."""
    formulas, merged = list[str](), list[str]()
    with zipfile.ZipFile(path) as archive, archive.open(book[title]._worksheet_path.lstrip("/")) as content:  # noqa: SLF001 - no other way to a sheet's own file
        for _, element in ET.iterparse(content):  # noqa: S314 - the file that openpyxl has parsed already
            kind = element.tag.rpartition("}")[2]
            if kind == "c" and element.find("{*}f") is not None and not element.findtext("{*}v"):
                formulas.append(element.get("r", "somewhere"))
            elif kind == "mergeCell":
                merged.append(element.get("ref", "somewhere"))
            if kind == "row":
                element.clear()
    found = []
    if formulas:
        found.append(
            f"formulas without a stored result are read as missing: {_places(formulas)}. Open the workbook in a "
            "spreadsheet program and save it"
        )
    if merged:
        found.append(f"of merged cells only the first has its value, the others are missing: {_places(merged)}")
    return tuple(found)


def _places(places: list[str]) -> str:
    more = f" and {len(places) - _LISTED:,} more" if len(places) > _LISTED else ""
    return ", ".join(places[:_LISTED]) + more


def _rows(book: Workbook, title: str) -> Iterator[tuple[int, list[str | None]]]:
    """Read the rows that are not empty, with their numbers, without the empty cells at their ends."""
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
    if isinstance(value, int) and not isinstance(value, bool) and _PADDED.fullmatch(cell.number_format):
        return str(value).zfill(len(cell.number_format))
    return spell(value)


def _batch(records: list[list[str | None]], columns: Sequence[str]) -> pa.RecordBatch:
    if not columns:
        return pa.record_batch({"": pa.nulls(len(records))}).select([])
    arrays = [pa.array(values, pa.string()) for values in zip(*records, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))
