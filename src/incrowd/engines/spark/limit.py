"""Limit on a cluster: at most so many rows of each person, chosen by a secret order of that person's own rows.

Every row has a rank, 128 bits that are a function of a secret key and of the row's position or id; of each person's
rows those of least rank stay.  Ranks are distinct and, without the key, in random order, so the choice is a uniformly
random one; being a function, they are the same in a task that is run again.  Nothing is kept between the choice and
the count: both happen in one job.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.keys import Codes
from incrowd.core.recoding import Classes, Recoding
from incrowd.core.schema import Column
from incrowd.engines.local.encoding import Codebook
from incrowd.engines.spark import tuples
from incrowd.engines.spark.places import fresh_key, people, ranks
from incrowd.engines.spark.reading import PartitionReading, Slice
from incrowd.engines.spark.task import collect, functions_of, map_partitions, window_of
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from incrowd.core.coins import Coins
    from incrowd.core.table import RowFilter
    from incrowd.engines.spark.rows import SparkRows


@dataclass(frozen=True, eq=False)
class PersonLimit:
    """Which rows of each person stay: a rule that is applied where the rows are counted, not a list of rows."""

    column: Column
    at_most: int
    row_key: bytes = field(repr=False)
    person_key: bytes = field(repr=False)

    def at(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Refuse: whether a row stays depends on the person's other rows, which are elsewhere."""
        del start, stop
        raise InvalidParameter("this choice of rows is applied on the cluster: give it to the count of its engine.")

    def apply(self, coded: DataFrame) -> DataFrame:
        """Return of each person's rows those of least rank, if they have a key; and what has no person at all."""
        functions = functions_of(coded)
        order = window_of(coded).partitionBy("person").orderBy("rank")
        numbered = coded.withColumn("number", functions.row_number().over(order))
        stays = (functions.col("number") <= self.at_most) & functions.col("key").isNotNull()
        return numbered.where(functions.col("person").isNull() | stays)


@dataclass(frozen=True, eq=False)
class PersonExclusion(PersonLimit):
    """Which people stay: those with few enough rows, with all of them."""

    def apply(self, coded: DataFrame) -> DataFrame:
        """Return the rows of people who have few enough, if they have a key; and what has no person at all."""
        functions = functions_of(coded)
        owned = functions.count(functions.lit(1)).over(window_of(coded).partitionBy("person"))
        stays = (functions.col("owned") <= self.at_most) & functions.col("key").isNotNull()
        return coded.withColumn("owned", owned).where(functions.col("person").isNull() | stays)


def limit(column: Column, at_most: int, coins: Coins) -> PersonLimit:
    """Draw the keys by which rows of a person are put in order.

    >>> from incrowd.noise.system import SystemCoins
    >>> limit(Column("patient"), 2, SystemCoins()).at_most
    2
    """
    if at_most < 1:
        raise InvalidParameter("a person keeps at least one row: at_most must be 1 or more.")
    return PersonLimit(column, at_most, fresh_key(coins), fresh_key(coins))


def exclude(column: Column, beyond: int, coins: Coins) -> PersonExclusion:
    """Draw the keys under which people travel.

    >>> from incrowd.noise.system import SystemCoins
    >>> exclude(Column("patient"), 1, SystemCoins()).at_most
    1
    """
    if beyond < 1:
        raise InvalidParameter("a person has at least one row: beyond must be 1 or more.")
    return PersonExclusion(column, beyond, fresh_key(coins), fresh_key(coins))


@dataclass(frozen=True, eq=False)
class Naming:
    """Sends for every row that has a person who it is, under a key."""

    reading: PartitionReading
    column: Column
    key: bytes = field(repr=False)

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the people of a partition, row by row."""
        for rows in self.reading.slices(batches):
            persons = people(self.key, rows.batch.column(self.column.name), self.column)
            yield pa.RecordBatch.from_arrays([persons.drop_null()], names=["person"])


def crowded(rows: SparkRows, column: Column, beyond: int) -> int:
    """Return how many people have more than `beyond` rows."""
    frame, reading = rows.selected((column.name,))
    named = map_partitions(frame, Naming(reading, column, secrets.token_bytes(32)), "person binary")
    owned = named.groupBy("person").count()
    functions = functions_of(named)
    some = owned.where(functions.col("count") > beyond).agg(functions.count(functions.lit(1)).alias("people"))
    return int(collect(some).column("people")[0].as_py())


@dataclass(frozen=True, eq=False)
class Limiting:
    """Sends every row that has a person: who, its rank, and its key if it is kept otherwise."""

    reading: PartitionReading
    cells: Cells
    limit: PersonLimit
    kept: tuple[RowFilter, ...]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition, and last how many rows were read."""
        read = 0
        for rows in self.reading.slices(batches):
            read += rows.read
            yield self._sent(rows)
        empty = tuples.empty_cell_arrays(self.cells, 1)
        yield self._batch([pa.nulls(1, pa.binary()), pa.nulls(1, pa.binary()), *empty, pa.array([read])])

    def _sent(self, rows: Slice) -> pa.RecordBatch:
        places = rows.places
        if places is None:
            raise InvalidParameter("nothing tells these rows apart, so none can have a rank: name a unique id column.")
        persons = people(self.limit.person_key, rows.batch.column(self.limit.column.name), self.limit.column)
        mask = np.ones(rows.batch.num_rows, np.bool_)
        for each in self.kept:
            mask &= places.chosen(each)
        codes, classes = coded(self.cells.recodings, rows.batch)
        for column in codes:
            mask &= column >= 0
        keys = tuples.cell_arrays(self.cells, [np.maximum(column, 0) for column in codes], classes)
        shown = [column.take(pa.array(np.arange(len(mask)), mask=~mask)) for column in keys]
        ones = pa.array(np.ones(len(mask), np.int64))
        whole = self._batch([persons, ranks(self.limit.row_key, places), *shown, ones])
        return whole.filter(persons.is_valid())

    def _batch(self, columns: list[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(columns, names=["person", "rank", *tuples.names(self.cells), "count"])


def coded(
    recodings: Sequence[Recoding], batch: pa.RecordBatch
) -> tuple[list[Codes], list[tuple[Classes, Codes | None]]]:
    """Return for each column the codes of all rows, −1 where a row is left out, and the classes they stand for."""
    codes: list[Codes] = []
    classes: list[tuple[Classes, Codes | None]] = []
    for recoding in recodings:
        book = Codebook(recoding) if recoding.classes is None else None
        if recoding.needs_rows:
            codes.append(recoding.codes(batch.column(recoding.column.name), book))
        else:
            codes.append(np.zeros(batch.num_rows, np.int32))
        known = recoding.classes
        classes.append((known, None) if known is not None else (book or Codebook(recoding)).classes())
    return codes, classes
