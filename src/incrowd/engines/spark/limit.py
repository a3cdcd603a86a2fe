"""Limit rows per person on a cluster: the rows that stay are the first in a secret order of the person's own rows.

Every row has a rank: 128 bits that are a function of a secret key and of the row's position or id.  Of each person's
rows those of least rank stay.  Ranks are distinct and, without the key, in random order, so the choice is uniformly
random.  Being a function, they are the same when a task runs again.  Choice and count happen in one job: nothing is
stored between them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.schema import Column
from incrowd.engines.spark.places import fresh_key, people
from incrowd.engines.spark.rows import PartitionReading
from incrowd.engines.spark.task import collect, functions_of, map_partitions, window_of
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from incrowd.core.coins import Coins
    from incrowd.engines.spark.rows import SparkRows


@dataclass(frozen=True, eq=False)
class PersonLimit:
    """Which rows of each person stay: a rule that the count applies on the cluster, not a list of rows."""

    column: Column
    at_most: int
    row_key: bytes = field(repr=False)
    person_key: bytes = field(repr=False)

    def at(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Refuse: whether a row stays depends on the person's other rows, which other tasks read."""
        raise InvalidParameter("this limit is applied on the cluster: pass it to the count of the Spark engine.")

    def apply(self, coded: DataFrame) -> DataFrame:
        """Return each person's rows of least rank that have a key, and all rows without a person."""
        functions = functions_of(coded)
        order = window_of(coded).partitionBy("person").orderBy("rank")
        numbered = coded.withColumn("number", functions.row_number().over(order))
        stays = (functions.col("number") <= self.at_most) & functions.col("key").isNotNull()
        return numbered.where(functions.col("person").isNull() | stays)


@dataclass(frozen=True, eq=False)
class PersonExclusion(PersonLimit):
    """Which people stay: those with at most `at_most` rows, with all of them."""

    def apply(self, coded: DataFrame) -> DataFrame:
        functions = functions_of(coded)
        owned = functions.count(functions.lit(1)).over(window_of(coded).partitionBy("person"))
        stays = (functions.col("owned") <= self.at_most) & functions.col("key").isNotNull()
        return coded.withColumn("owned", owned).where(functions.col("person").isNull() | stays)


def limit(column: Column, at_most: int, coins: Coins) -> PersonLimit:
    """Draw the keys that put the rows of each person in order.

    >>> from incrowd.noise.system import SystemCoins
    >>> limit(Column("patient"), 2, SystemCoins()).at_most
    2
    """
    if at_most < 1:
        raise InvalidParameter("a person keeps at least one row: at_most must be 1 or more.")
    return PersonLimit(column, at_most, fresh_key(coins), fresh_key(coins))


def exclude(column: Column, beyond: int, coins: Coins) -> PersonExclusion:
    """Draw the keys under which people are sent between tasks.

    >>> from incrowd.noise.system import SystemCoins
    >>> exclude(Column("patient"), 1, SystemCoins()).at_most
    1
    """
    if beyond < 1:
        raise InvalidParameter("a person has at least one row: beyond must be 1 or more.")
    return PersonExclusion(column, beyond, fresh_key(coins), fresh_key(coins))


@dataclass(frozen=True, eq=False)
class Naming:
    """Sends the keyed hash of the person of every row that has one."""

    reading: PartitionReading
    column: Column
    key: bytes = field(repr=False)

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in self.reading.slices(batches):
            persons = people(self.key, rows.batch.column(self.column.name), self.column)
            yield pa.RecordBatch.from_arrays([persons.drop_null()], names=["person"])


def crowded(rows: SparkRows, column: Column, beyond: int) -> int:
    """Return how many people have more than `beyond` rows."""
    frame, reading = rows.selected((column.name,))
    named = map_partitions(frame, Naming(reading, column, secrets.token_bytes(32)), "person binary")
    owned = named.groupBy("person").count()
    functions = functions_of(named)
    many = owned.where(functions.col("count") > beyond).agg(functions.count(functions.lit(1)).alias("people"))
    return int(collect(many).column("people")[0].as_py())
