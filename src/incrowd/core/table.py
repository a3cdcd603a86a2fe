"""Table: rows that stay where they are, with their meaning; Engine: what is done to them there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from incrowd.core.cells import Cells
    from incrowd.core.counts import Counts
    from incrowd.core.mechanism import Coins
    from incrowd.core.schema import Column, Schema


class Rows(Protocol):
    """Rows somewhere: a file, a frame, a query; read in batches, in the same order every time.

    The position of a row, counted from 0 over all batches, is what its secret coin is keyed by: it depends on the
    source alone, never on the columns asked for or on the size of the batches.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""

    @property
    def rows(self) -> int | None:
        """How many rows there are, or None if only reading them would tell."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read these columns and no others, from the first row on, however often it is called.

        With no columns at all the batches still have the right number of rows.
        """


class Kept(Protocol):
    """Which rows take part, by position; a secret sample is one."""

    def at(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return for each position in [start, stop) whether that row takes part."""


class Engine(Protocol):
    """Where rows live, and the few things that are done to them there."""

    def open(self, source: object) -> Rows:
        """Open an address or a frame without reading a row."""

    def count(self, rows: Rows, cells: Cells, *kept: Kept, at_least: int = 1) -> Counts:
        """Count in one pass, in each cell, the rows that every one of `kept` keeps.

        Cells with fewer than `at_least` rows are left out, early enough to save their memory.
        """

    def limit(self, rows: Rows, column: Column, at_most: int, coins: Coins) -> Kept:
        """Keep at most that many rows of each person, a random choice among the person's own."""


@dataclass(frozen=True)
class Table:
    """Rows with a meaning; nothing is read before a mechanism asks."""

    schema: Schema
    rows: Rows
    engine: Engine
