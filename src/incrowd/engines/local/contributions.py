"""Contributions: limit the rows of each person, before any sample is drawn.

Which rows of a person stay depends on that person's rows and coins alone.  So adding or removing a person changes
nothing for the others, and a guarantee for at most m rows holds for people.  Choosing after sampling would break this:
of a person with five rows, one would stay far more often than the sampling rate says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.schema import Column
from incrowd.core.table import Rows
from incrowd.engines.people import ids_of
from incrowd.engines.readers.reader import Failure, note_failures
from incrowd.errors import InvalidParameter

_COINS = 2**62  # two rows of a person tie with probability 2^-62; then the first one stays
_MEMORY = "512MB"
_BEYOND = """
    SELECT position FROM people QUALIFY row_number() OVER (PARTITION BY person ORDER BY draw, position) > ?
"""
_ALL_OF_CROWDED = "SELECT position FROM people QUALIFY count(*) OVER (PARTITION BY person) > ?"
_CROWDED = "SELECT count(*) FROM (SELECT person FROM people GROUP BY person HAVING count(*) > ?)"
Draw = Callable[[int], NDArray[np.int64]]
"""Draws a coin for each of a number of rows."""


@dataclass(frozen=True, eq=False)
class RowLimit:
    """The rows that stay, by position."""

    mask: NDArray[np.bool_]

    def at(self, start: int, stop: int) -> NDArray[np.bool_]:
        return self.mask[start:stop]


def limit(rows: Rows, column: Column, at_most: int, coins: Coins) -> RowLimit:
    """Retain a uniformly random choice of `at_most` rows of each person, all if there are no more; none without an id.

    A person is an exact value of the column, read as its declared type; a value that cannot be read is not an id.  Each
    row draws a coin of 62 bits, and the rows with the least coins stay.  Memory is one byte per row, eight per row left
    out, and up to 512 MB to sort; the rest goes to files without a name.

    >>> from incrowd.engines.readers.sources import open_source
    >>> from incrowd.noise.system import SystemCoins
    >>> visits = open_source(pa.table({"patient": ["a", "b", None, "a", "a"]}))
    >>> mask = limit(visits, Column("patient"), 2, SystemCoins()).mask
    >>> mask[[1, 2]].tolist(), int(mask[[0, 3, 4]].sum())
    ([True, False], 2)
    """
    if at_most < 1:
        raise InvalidParameter("a person keeps at least one row: at_most must be 1 or more.")
    return _without(_BEYOND, rows, column, at_most, lambda size: coins.below(_COINS, size))


def exclude(rows: Rows, column: Column, beyond: int) -> RowLimit:
    """Retain all rows of people who have at most `beyond`, and no row of other people; none without an id.

    Whether a person's rows stay depends on their number, not on other people.  Memory is that of `limit`.

    >>> from incrowd.engines.readers.sources import open_source
    >>> visits = open_source(pa.table({"patient": ["a", "b", None, "a"]}))
    >>> exclude(visits, Column("patient"), 1).mask.tolist()
    [False, True, False, False]
    """
    if beyond < 1:
        raise InvalidParameter("a person has at least one row: beyond must be 1 or more.")
    return _without(_ALL_OF_CROWDED, rows, column, beyond, _no_coins)


def crowded(rows: Rows, column: Column, beyond: int) -> int:
    """Return how many people have more than `beyond` rows.

    >>> from incrowd.engines.readers.sources import open_source
    >>> visits = open_source(pa.table({"patient": ["a", "b", None, "a", "a"]}))
    >>> crowded(visits, Column("patient"), 1)
    1
    """
    failures = list[Failure]()
    people = _people(rows, column, _no_coins, [])
    (count,) = _answered(_CROWDED, _reader(people, column, failures), beyond, failures)
    return int(count[0])


def _without(query: str, rows: Rows, column: Column, most: int, draw: Draw) -> RowLimit:
    """Return the rows that have an id, except those at the positions that a query about people returns."""
    masks, failures = [np.zeros(0, np.bool_)], list[Failure]()
    people = _reader(_people(rows, column, draw, masks), column, failures)
    positions = _answered(query, people, most, failures)
    mask = np.concatenate(masks)
    for batch in positions:
        mask[batch] = False
    return RowLimit(mask)


def _no_coins(size: int) -> NDArray[np.int64]:
    return np.zeros(size, np.int64)


def _reader(people: Iterator[pa.RecordBatch], column: Column, failures: list[Failure]) -> pa.RecordBatchReader:
    fields = pa.schema([("person", column.type.storage), ("draw", pa.int64()), ("position", pa.int64())])
    return pa.RecordBatchReader.from_batches(fields, note_failures(people, failures))


def _answered(query: str, people: pa.RecordBatchReader, most: int, failures: list[Failure]) -> list[NDArray[np.int64]]:
    """Return the numbers that a query returns for `most` rows a person; `failures` are those of reading the rows."""
    import duckdb

    from incrowd.engines.spill import memory_database

    with memory_database(_MEMORY) as connection:
        connection.register("people", people)
        try:
            answer = connection.sql(query, params=[most]).to_arrow_reader()
            return [batch.column(0).to_numpy() for batch in answer]
        except (duckdb.Error, pa.ArrowException):
            if not failures:
                raise
    raise failures[0]


def _people(rows: Rows, column: Column, draw: Draw, masks: list[NDArray[np.bool_]]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that have an id with their coins, and add to `masks` which rows have an id."""
    start = 0
    for batch in rows.batches([column.name]):
        ids = ids_of(batch.column(0), column)
        valid = ids.is_valid().to_numpy(zero_copy_only=False)
        masks.append(valid)
        where = np.flatnonzero(valid)
        columns = [ids.drop_null(), pa.array(draw(len(where))), pa.array(where + start)]
        start += len(batch)
        yield pa.RecordBatch.from_arrays(columns, names=["person", "draw", "position"])
