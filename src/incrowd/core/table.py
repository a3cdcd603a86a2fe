"""Table: rows that stay where they are, and their meaning; Engine: the operations on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from incrowd.core.cells import Cells
    from incrowd.core.cleaning import Cleaning
    from incrowd.core.coins import Coins
    from incrowd.core.counts import Counts
    from incrowd.core.domain import Type
    from incrowd.core.fingerprints import SourceFingerprint
    from incrowd.core.schema import Column, Schema

Progress = Callable[[int, int | None], None]
"""Called now and then with the number of rows done, and of all rows (None: unknown)."""

IN_ENGINE = "::"
"""An address that starts like this names a table of the engine's own catalog: `::sales.visits`."""


@dataclass(frozen=True)
class SourceOptions:
    r"""How a source is to be read; what is left out is found out, the same way every time, or has a safe default.

    `format`: one of csv, parquet, arrow, excel, statistics, sqlite, duckdb; by default the file's first bytes and its
    ending tell.  For text: `delimiter`, `encoding`, `quote` (empty: nothing is quoted), `header`, `names` (of the
    columns, where there is no header), `header_row` (on which line the columns are named), `nulls` (how a missing value
    is spelled), `totals` (labels in the first column of rows that are sums, and left out), `decimal`, `thousands`,
    `dates` (how numbers and days are spelled).  For Excel: `sheet` (its name or
    number), and all of these but the first three.  For databases: `table` or `query`.  For statistics files: `labels`
    (or codes), `encoding`, `catalog` (of labels, for SAS).

    `clean` are the rules by which the cells of some columns are rewritten, for every kind of source.
    `types` are those that a policy declares: where they are known, nothing that rows hold decides how a file is read.
    `guesses` says what was guessed of all this, in words.
    """

    format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    quote: str = '"'
    header: bool = True
    names: tuple[str, ...] | None = None
    header_row: int | None = None
    nulls: tuple[str, ...] = ("",)
    totals: tuple[str, ...] = ()
    decimal: str | None = None
    thousands: str | None = None
    dates: tuple[str, ...] = ()
    sheet: str | None = None
    table: str | None = None
    query: str | None = None
    labels: bool = True
    catalog: Path | None = None
    types: Mapping[str, Type] | None = None
    clean: Mapping[str, Cleaning] | None = None
    guesses: tuple[str, ...] = ()


DEFAULTS = SourceOptions()


class Rows(Protocol):
    """Rows somewhere: a file, a frame, a query; read in batches, in the same order every time.

    The position of a row, counted from 0 over all batches, is the key of its secret coin: it depends on the
    source alone, never on the columns asked for or on the size of the batches.  Rows on a cluster have no such order;
    there the engine gives each a stable id instead.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""

    @property
    def rows(self) -> int | None:
        """How many rows there are, or None if that is unknown before they are read."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read these columns and no others, from the first row on, however often it is called.

        With no columns at all the batches still have the right number of rows.  This brings the rows to this process:
        what a verb needs of rows that may live elsewhere goes through the engine.
        """


class Opened(Rows, Protocol):
    """Rows as an engine opened them, with facts for the internal record and notes for the data holder."""

    @property
    def address(self) -> str | None:
        """Where the rows are, the same for every way to write it and without secrets; None for a frame."""

    @property
    def settings(self) -> Mapping[str, str]:
        """How they are read, as stated or guessed; for the internal record."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was guessed, in words for the data holder."""


class RowFilter(Protocol):
    """Which rows take part, by position; a secret sample is one."""

    def at(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return for each position in [start, stop) whether that row takes part."""


class Summary(Protocol):
    """What is learned of rows batch by batch, in bounded memory: it can be pickled, and two of them merged.

    Adding all batches to one summary, and adding them to several that are then merged in whatever order, must come to
    the same: on a cluster each task has its own.
    """

    def add(self, batch: pa.RecordBatch) -> None:
        """Learn from some rows."""

    def merge(self, other: Self) -> None:
        """Learn what another summary of the same kind learned from other rows."""


Learned = TypeVar("Learned", bound=Summary)


class PeriodChoice(Protocol):
    """Which rows lie in a period, by one column; workers get a copy of it."""

    @property
    def column(self) -> Column:
        """The column that decides."""

    def of(self, cells: pa.Array) -> NDArray[np.bool_]:
        """Return which cells lie in the period."""


class PersonFilter(Protocol):
    """Whose rows take part; it never leaves this process, because it may hold keys."""

    @property
    def person(self) -> Column:
        """The person ID column."""

    def of(self, ids: pa.Array) -> NDArray[np.bool_]:
        """Return for each id whether its rows take part."""

    def among(self, names: Iterable[str]) -> frozenset[str]:
        """Return who of some people takes part; each is named by the one way in which their id is written."""


class Engine(Protocol):
    """Where rows are, and the few operations on them there."""

    def open(self, source: object, options: SourceOptions = DEFAULTS) -> Opened:
        """Open an address or a frame without reading a row; an option that would be ignored is refused."""

    def types(self, rows: Rows, columns: Sequence[str]) -> Mapping[str, pa.DataType]:
        """Return the type in which each of these columns is read; a column of which nothing is known is text."""

    def keyed(self, rows: Rows, cells: Cells | None) -> Rows:
        """Return the same rows; where reading them is slow, `marks` caches what a count of these cells needs."""

    def marks(self, rows: Rows, schema: Schema, key: bytes, progress: Progress | None = None) -> SourceFingerprint:
        """Read once, before a charge, all that a release may read, and return fingerprints of the rows under a key.

        Raise SourceInvalid if values cannot be read as declared.  The message names lines or rows where there is such a
        thing, columns, and how many; never a value.
        """

    def digest(self, rows: Rows) -> bytes:
        """Return 32 bytes that identify this content; the same content gives the same bytes.

        It is never shown: only keyed hashes of it leave the process.
        """

    def count(self, rows: Rows, cells: Cells, *filters: RowFilter, at_least: int = 1) -> Counts:
        """Count in one pass, in each cell, the rows that all filters keep.

        Cells with fewer than `at_least` rows are omitted, early enough to save their memory.
        """

    def limit(self, rows: Rows, column: Column, at_most: int, coins: Coins) -> RowFilter:
        """Keep at most that many rows of each person, a random choice among the person's own."""

    def exclude(self, rows: Rows, column: Column, beyond: int, coins: Coins) -> RowFilter:
        """Keep all rows of people who have at most `beyond` of them, and none of anybody else's."""

    def admitted(self, rows: Rows, people: PersonFilter) -> Rows:
        """Return the rows of admitted people alone, by a semi-join on the person ID column.

        Where rows live elsewhere, their people are named here, and all that is sent back is who of them takes part.
        """

    def in_period(self, rows: Rows, period: PeriodChoice) -> Rows:
        """Return the rows of one period alone; each row is judged by its own cell in the column that decides."""

    def learn(self, rows: Rows, columns: Sequence[str], empty: Callable[[], Learned]) -> Learned:
        """Read these columns once and return what a summary, started by `empty` wherever rows are, learned of them.

        `empty` can be pickled: a function of a module, a class, or a `functools.partial` of one.
        """

    def watched(self, rows: Rows, progress: Progress) -> Rows:
        """Return the same rows, which report how many of them have been read, if this engine can know."""


@dataclass(frozen=True)
class Table:
    """Rows with a schema and an engine; nothing is read before a mechanism needs it."""

    schema: Schema
    rows: Rows
    engine: Engine
