"""Contributions: at most so many rows of each person, chosen before any sample is drawn.

A person's rows are kept or not by that person's rows and coins alone, so adding or removing a person changes nothing
for the others: what is promised for at most m rows then holds for people.  Choosing after sampling would not do: of
a person with five rows one would be left far more often than the rate says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.reading import as_dictionary, read
from incrowd.core.schema import Column
from incrowd.core.table import Rows
from incrowd.engines.readers.reader import note_failures
from incrowd.errors import IncrowdError, InvalidParameter

_COINS = 2**62
_MEMORY = "512MB"
_BEYOND = """
    SELECT position FROM people QUALIFY row_number() OVER (PARTITION BY person ORDER BY coin, position) > ?
"""


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
    masks, failures = [np.zeros(0, np.bool_)], list[IncrowdError]()
    fields = pa.schema([("person", column.type.storage), ("coin", pa.int64()), ("position", pa.int64())])
    drawn = note_failures(_people(rows, column, coins, masks), failures)
    positions = _beyond(pa.RecordBatchReader.from_batches(fields, drawn), at_most, failures)
    mask = np.concatenate(masks)
    for some in positions:
        mask[some] = False
    return RowLimit(mask)


def _beyond(people: pa.RecordBatchReader, at_most: int, failures: list[IncrowdError]) -> list[NDArray[np.int64]]:
    """Return the positions of rows that are more than `at_most` of a person; `failures` are those of the rows below."""
    import duckdb

    from incrowd.engines.spill import memory_database

    with memory_database(_MEMORY) as connection:
        connection.register("people", people)
        try:
            beyond = connection.sql(_BEYOND, params=[at_most]).to_arrow_reader()
            return [batch.column(0).to_numpy() for batch in beyond]
        except (duckdb.Error, pa.ArrowException):
            if not failures:
                raise
    raise failures[0]


def _people(rows: Rows, column: Column, coins: Coins, masks: list[NDArray[np.bool_]]) -> Iterator[pa.RecordBatch]:
    """Return the rows that have an id, each with its coin, and note for every row whether it has one."""
    start = 0
    for batch in rows.batches([column.name]):
        ids = _ids(batch.column(0), column)
        known = ids.is_valid().to_numpy(zero_copy_only=False)
        masks.append(known)
        where = np.flatnonzero(known)
        drawn = coins.below(_COINS, len(where))
        columns = [ids.drop_null(), pa.array(drawn), pa.array(where + start)]
        start += len(batch)
        yield pa.RecordBatch.from_arrays(columns, names=["person", "coin", "position"])


def _ids(array: pa.Array, column: Column) -> pa.Array:
    values, indices = as_dictionary(array)
    stored = read(values, column.type).values
    return stored if indices is None else stored.take(pa.array(indices, mask=indices == len(values)))
