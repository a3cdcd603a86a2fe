"""SourceReader: named columns, batches of them in a stable order; SourceProblem: what is wrong, and where."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from incrowd.engines.readers.hidden import show_pandas
from incrowd.errors import PackageMissing, SourceUnreadable

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1 << 17
"""How many rows a reader that may choose puts into a batch."""


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
class Typed(Protocol):
    """A reader whose columns have one stored type each, known before a row is read."""

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The stored types; a column that is not in it may hold anything."""


@runtime_checkable
class Lined(Protocol):
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
