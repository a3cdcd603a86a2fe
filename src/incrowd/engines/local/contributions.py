"""Contributions: at most so many rows of each person, chosen before any sample is drawn.

A person's rows are kept or not by that person's rows and coins alone, so adding or removing a person changes nothing
for the others: what is guaranteed for at most m rows then holds for people.  Choosing after sampling would not do: of
a person with five rows one would be left far more often than the rate says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.reading import as_dictionary, read
from incrowd.core.schema import Column
from incrowd.core.table import Rows
from incrowd.engines.readers.reader import Failure, note_failures
from incrowd.errors import InvalidParameter

_COINS = 2**62
_MEMORY = "512MB"
_BEYOND = """
    SELECT position FROM people QUALIFY row_number() OVER (PARTITION BY person ORDER BY coin, position) > ?
"""
_OF_CROWDED = "SELECT position FROM people QUALIFY count(*) OVER (PARTITION BY person) > ?"
_CROWDED = "SELECT count(*) FROM (SELECT person FROM people GROUP BY person HAVING count(*) > ?)"
Draw = Callable[[int], NDArray[np.int64]]
"""Gives each of so many rows a coin."""


@dataclass(frozen=True, eq=False)
class RowLimit:
    """The rows that are kept, by position."""

    mask: NDArray[np.bool_]

    def at(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return for each position in [start, stop) whether that row is kept."""
        return self.mask[start:stop]


def limit(rows: Rows, column: Column, at_most: int, coins: Coins) -> RowLimit:
    """Keep of each person's rows a uniformly random `at_most`, or all if there are no more; none without an id.

    People are told apart by the exact value of the column, read as its declared type; a value that cannot be read is
    no id.  Each row draws a coin of 62 bits, and the rows with the least coins are kept.  Memory is one byte per row,
    eight per row left out, and up to 512 MB to sort; what does not fit goes to files without a name.

    >>> from incrowd.core.schema import Role
    >>> from incrowd.engines.readers.sources import open_source
    >>> from incrowd.noise.system import SystemCoins
    >>> visits = open_source(pa.table({"patient": ["a", "b", None, "a", "a"]}))
    >>> kept = limit(visits, Column("patient", Role.IDENTIFIER), 2, SystemCoins()).mask
    >>> kept[[1, 2]].tolist(), int(kept[[0, 3, 4]].sum())
    ([True, False], 2)
    """
    if at_most < 1:
        raise InvalidParameter("a person keeps at least one row: at_most must be 1 or more.")
    return _without(_BEYOND, rows, column, at_most, lambda size: coins.below(_COINS, size))


def exclude(rows: Rows, column: Column, beyond: int) -> RowLimit:
    """Keep all rows of people who have at most `beyond` of them, and none of anybody else's; none without an id.

    Whether somebody's rows are kept hangs on how many there are, and on nothing of other people's.  Memory is that of
    `limit`.

    >>> from incrowd.core.schema import Role
    >>> from incrowd.engines.readers.sources import open_source
    >>> visits = open_source(pa.table({"patient": ["a", "b", None, "a"]}))
    >>> exclude(visits, Column("patient", Role.IDENTIFIER), 1).mask.tolist()
    [False, True, False, False]
    """
    if beyond < 1:
        raise InvalidParameter("a person has at least one row: beyond must be 1 or more.")
    return _without(_OF_CROWDED, rows, column, beyond, _no_coins)


def crowded(rows: Rows, column: Column, beyond: int) -> int:
    """Return how many people have more than `beyond` rows.

    >>> from incrowd.core.schema import Role
    >>> from incrowd.engines.readers.sources import open_source
    >>> visits = open_source(pa.table({"patient": ["a", "b", None, "a", "a"]}))
    >>> crowded(visits, Column("patient", Role.IDENTIFIER), 1)
    1
    """
    failures = list[Failure]()
    people = _people(rows, column, _no_coins, [])
    (found,) = _answered(_CROWDED, _reader(people, column, failures), beyond, failures)
    return int(found[0])


def _without(query: str, rows: Rows, column: Column, most: int, draw: Draw) -> RowLimit:
    """Return the rows that have an id, but for those whose positions a query about people returns."""
    masks, failures = [np.zeros(0, np.bool_)], list[Failure]()
    people = _reader(_people(rows, column, draw, masks), column, failures)
    positions = _answered(query, people, most, failures)
    mask = np.concatenate(masks)
    for some in positions:
        mask[some] = False
    return RowLimit(mask)


def _no_coins(size: int) -> NDArray[np.int64]:
    return np.zeros(size, np.int64)


def _reader(people: Iterator[pa.RecordBatch], column: Column, failures: list[Failure]) -> pa.RecordBatchReader:
    fields = pa.schema([("person", column.type.storage), ("coin", pa.int64()), ("position", pa.int64())])
    return pa.RecordBatchReader.from_batches(fields, note_failures(people, failures))


def _answered(query: str, people: pa.RecordBatchReader, most: int, failures: list[Failure]) -> list[NDArray[np.int64]]:
    """Return the numbers that a query about people and so many rows finds; `failures` are those of the rows below."""
    import duckdb

    from incrowd.engines.spill import memory_database

    with memory_database(_MEMORY) as connection:
        connection.register("people", people)
        try:
            found = connection.sql(query, params=[most]).to_arrow_reader()
            return [batch.column(0).to_numpy() for batch in found]
        except (duckdb.Error, pa.ArrowException):
            if not failures:
                raise
    raise failures[0]


def _people(rows: Rows, column: Column, draw: Draw, masks: list[NDArray[np.bool_]]) -> Iterator[pa.RecordBatch]:
    """Return the rows that have an id, each with its coin, and note for every row whether it has one."""
    start = 0
    for batch in rows.batches([column.name]):
        ids = ids_of(batch.column(0), column)
        known = ids.is_valid().to_numpy(zero_copy_only=False)
        masks.append(known)
        where = np.flatnonzero(known)
        columns = [ids.drop_null(), pa.array(draw(len(where))), pa.array(where + start)]
        start += len(batch)
        yield pa.RecordBatch.from_arrays(columns, names=["person", "coin", "position"])


def ids_of(array: pa.Array, column: Column) -> pa.Array:
    """Return the ids of people in a column, read as its declared type; null where there is none."""
    values, indices = as_dictionary(array)
    stored = read(values, column.type).values
    return stored if indices is None else stored.take(pa.array(indices, mask=indices == len(values)))
