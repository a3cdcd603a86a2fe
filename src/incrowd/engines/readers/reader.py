"""SourceReader: named columns, batches of them in a stable order; SourceProblem: what is wrong, and where."""

from __future__ import annotations

import datetime as dt
import importlib
import itertools
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from incrowd.errors import IncrowdError, PackageMissing, SourceUnreadable

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1 << 17
"""How many rows a reader that may choose puts into a batch."""

HEADER_WITHIN = 50
"""A header is looked for in so many rows."""


@dataclass(frozen=True)
class SourceProblem:
    """Something wrong in a source, told to the data holder: the line, the column, never the value.

    `line` counts the lines of a text file (or the rows of a sheet) from 1, header included; `row` counts the records
    from 1, header excluded, where there are no lines.

    >>> print(SourceProblem("cannot be read as integer", line=12, column="age"))
    line 12, column age: cannot be read as integer
    """

    what: str
    line: int | None = None
    row: int | None = None
    column: str | None = None

    def __str__(self) -> str:
        """Say where, then what."""
        spots = [("line", self.line), ("row", self.row if self.line is None else None), ("column", self.column)]
        where = ", ".join(f"{name} {spot}" for name, spot in spots if spot is not None)
        return f"{where}: {self.what}" if where else self.what


class SourceReader(Protocol):
    """One opened source: no row is read before `read` is iterated, and every `read` sees the same rows in one order."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is cheap to know."""

    @property
    def settings(self) -> Mapping[str, str]:
        """How the source is read: every option that matters, as given or as found."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found rather than told, in words for the data holder."""

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read these columns."""


@runtime_checkable
class TypedReader(Protocol):
    """A reader whose columns have one stored type each, known before a row is read."""

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The stored types; a column that is not in it may hold anything."""


@runtime_checkable
class LinedReader(Protocol):
    """A reader whose rows stand on numbered lines."""

    def lines(self, positions: Sequence[int]) -> tuple[int | None, ...]:
        """Return on which line the rows at these positions (ascending, from 0) start."""

    def problems(self) -> Iterator[SourceProblem]:
        """Look through the whole structure, slowly, and name every line that is not as it should be."""

    def expected(self) -> int | None:
        """Guess the number of rows from the size of the file: for progress bars only."""


def package(name: str, what: str) -> ModuleType:
    """Import an optional package, or say which extra brings it.

    >>> package("json", "JSON files").__name__
    'json'
    """
    show_pandas()
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise PackageMissing(
            f"{what} need the package {name}, which is not installed. Run: pip install 'incrowd[formats]'"
        ) from error


def muffled(
    batches: Iterator[pa.RecordBatch], errors: tuple[type[Exception], ...], what: str
) -> Iterator[pa.RecordBatch]:
    """Pass batches on; an error of the library below is replaced by `what`.

    Messages of parsers quote the cells they stumble over.  The replacement is raised after the original has been let
    go, so that no traceback, log or debugger below finds a value from the data attached to it.

    >>> list(muffled(iter([1, 2]), (ValueError,), "the file cannot be read"))
    [1, 2]
    """
    failed = False
    try:
        yield from batches
    except errors:
        failed = True
    if failed:
        raise SourceUnreadable(what)


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns as they are, or say which two are the same, by their place.

    The message does not repeat the name: in a file without a header the first line holds somebody's values.

    >>> distinct(["age", "zip"])
    ('age', 'zip')
    >>> distinct(["age", "zip", "age"])
    Traceback (most recent call last):
    ...
    incrowd.errors.SourceUnreadable: columns 1 and 3 have the same name. Give each column a name of its own; ...
    """
    seen: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name in seen:
            raise SourceUnreadable(
                f"columns {seen[name]} and {place} have the same name. Give each column a name of its own; if the file "
                "has no header line, say header: false."
            )
        seen[name] = place
    return tuple(names)


def named(header: Sequence[str | None]) -> tuple[str, ...]:
    """Return the header's names; a column without one is called after its place.

    >>> named(["", "age"])
    ('column1', 'age')
    """
    return distinct([name or f"column{place}" for place, name in enumerate(header, start=1)])


def header_elsewhere(rows: Iterable[tuple[int, Sequence[str | None]]], declared: Iterable[str], place: str) -> None:
    """Raise if the first row names none of the declared columns, and one of the next names all of them.

    >>> header_elsewhere([(1, ["Report of 2024"]), (3, ["age", "zip"])], ["age"], "row")
    Traceback (most recent call last):
    ...
    incrowd.errors.SourceUnreadable: the columns are named in row 3, not in row 1: write header_row: 3 below source:.
    """
    wanted = set(declared)
    first: int | None = None
    for number, cells in itertools.islice(rows, HEADER_WITHIN if wanted else 0):
        if first is None and wanted & set(cells):
            return
        first = number if first is None else first
        if wanted <= set(cells):
            raise SourceUnreadable(
                f"the columns are named in {place} {number}, not in {place} {first}: write header_row: {number} below "
                "source:."
            )


Failure = IncrowdError | KeyboardInterrupt
"""What went wrong below a database that draws rows: a source that cannot be read, or Ctrl-C."""


def note_failures(batches: Iterator[pa.RecordBatch], failures: list[Failure]) -> Iterator[pa.RecordBatch]:
    """Pass batches on, and remember what went wrong in our own words: the database that draws them has its own."""
    try:
        yield from batches
    except (IncrowdError, KeyboardInterrupt) as error:
        failures.append(error)
        raise


class _NoPandas(MetaPathFinder):
    """Answers that there is no pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse pandas, leave everything else to others."""
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden from the command line.", name=fullname)
        return None


def hide_pandas() -> None:
    """Hide pandas from this process, unless it is loaded already."""
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas())


def show_pandas() -> None:
    """Undo `hide_pandas`.

    >>> hide_pandas()
    >>> show_pandas()
    >>> any(isinstance(finder, _NoPandas) for finder in sys.meta_path)
    False
    """
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _NoPandas)]


_EXACT = 2**53


def spell(value: object) -> str | None:
    """Write a value as text; None, an empty text and NaN are missing.

    Whole numbers carry no point even where a format stores every number as a float, dates are ISO 8601, and a time of
    midnight is not mentioned: spreadsheets keep a date as the moment it begins.

    >>> [spell(value) for value in ("01234", 7, 7.0, 0.5, True, dt.datetime(2024, 2, 29), "", None)]
    ['01234', '7', '7', '0.5', 'true', '2024-02-29', None, None]
    """
    if isinstance(value, str):
        return value or None
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _spell_float(value)
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date().isoformat()
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    return str(value)


def _spell_float(value: float) -> str | None:
    if math.isnan(value):
        return None
    if value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return repr(value)
