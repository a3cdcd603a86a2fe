"""SourceReader: what every reader of a source has in common: columns, batches in a stable order, problems by place."""

from __future__ import annotations

import datetime as dt
import importlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from incrowd.engines.hidden_pandas import show_pandas
from incrowd.errors import IncrowdError, PackageMissing, SourceUnreadable

if TYPE_CHECKING:
    import pyarrow as pa

    from incrowd.engines.readers.spelling import Spelling

BATCH_ROWS = 1 << 17
"""Rows per batch of a reader that may choose."""

Result = TypeVar("Result")
HEADER_WITHIN = 50
"""The number of rows in which a header is searched."""


@dataclass(frozen=True)
class SourceProblem:
    """A problem in a source, for the data holder: its line (of a file or sheet, from 1, header included), no value.

    >>> print(SourceProblem("not valid utf-8", line=12))
    line 12: not valid utf-8
    """

    what: str
    line: int | None = None

    def __str__(self) -> str:
        return self.what if self.line is None else f"line {self.line}: {self.what}"


class SourceReader(Protocol):
    """One opened source: no row is read before `read` is iterated, and every `read` returns the same rows in order."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""

    @property
    def rows(self) -> int | None:
        """The number of rows, where that is cheap to know."""

    @property
    def settings(self) -> Mapping[str, str]:
        """How the source is read: every option that matters, as declared or detected."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was detected rather than declared, in words for the data holder."""

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read these columns."""


NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
"""The settings of a reader without options."""


@runtime_checkable
class TypedReader(Protocol):
    """A reader whose columns have one stored type each, which is known before a row is read."""

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The stored types; a column without an entry may hold anything."""


@runtime_checkable
class LinedReader(Protocol):
    """A reader of text on numbered lines."""

    @property
    def spelling(self) -> Spelling:
        """How numbers and days are spelled."""

    def lines(self, positions: Sequence[int]) -> tuple[int | None, ...]:
        """Return the line on which each row at these positions (ascending, from 0) starts."""

    def problems(self) -> Iterator[SourceProblem]:
        """Check the whole structure, slowly, and return every faulty line."""

    def expected(self) -> int | None:
        """Estimate the number of rows from the size of the file: for progress bars only."""


def package(name: str, what: str) -> ModuleType:
    """Import an optional package, or name the extra that installs it.

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
    """Pass batches on; an error of the parser is replaced by `what`.

    Messages of parsers quote cells.  The replacement is raised after the original was released, so that no traceback,
    log or debugger finds a value from the data attached to it.

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


def attempt(work: Callable[[], Result], errors: tuple[type[Exception], ...], what: str) -> Result:
    """Return the result of the work; an error of the parser is replaced by `what`, as `muffled` does.

    >>> attempt(lambda: int("7"), (ValueError,), "the file cannot be read")
    7
    """
    with suppress(*errors):
        return work()
    raise SourceUnreadable(what)


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns, or raise with the numbers of two columns that have the same.

    The message does not repeat the name: in a file without a header the first line holds a person's values.

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
                "has no header line, write header: false."
            )
        seen[name] = place
    return tuple(names)


def named(header: Sequence[str | None]) -> tuple[str, ...]:
    """Return the header's names; a column without one is named by its number.

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
    names = set(declared)
    first: int | None = None
    for number, cells in itertools.islice(rows, HEADER_WITHIN if names else 0):
        if first is None and names & set(cells):
            return
        first = number if first is None else first
        if names <= set(cells):
            raise SourceUnreadable(
                f"the columns are named in {place} {number}, not in {place} {first}: write header_row: {number} below "
                "source:."
            )


Failure = IncrowdError | KeyboardInterrupt
"""An error of the rows that a database reads: the source is unreadable, or the user pressed Ctrl-C."""


def note_failures(batches: Iterator[pa.RecordBatch], failures: list[Failure]) -> Iterator[pa.RecordBatch]:
    """Pass batches on, and record our own errors: the database that reads them raises another one instead."""
    try:
        yield from batches
    except (IncrowdError, KeyboardInterrupt) as error:
        failures.append(error)
        raise


_EXACT = 2**53  # up to here a float holds every whole number


def spell(value: object) -> str | None:
    """Write a value as text; None, an empty text and NaN are missing.

    Whole numbers have no point even where a format stores every number as a float, dates are ISO 8601, and a time of
    midnight is left out: spreadsheets store a date as the moment when it begins.

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
