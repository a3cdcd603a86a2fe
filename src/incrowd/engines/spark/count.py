"""Count on a cluster: each task counts its own rows, and only keys and counts are exchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.engines.local.counting import CountingLimits, CountTally, Disk
from incrowd.engines.local.encoding import Encoder
from incrowd.engines.spark import tuples
from incrowd.engines.spark.limit import Limiting, PersonLimit
from incrowd.engines.spark.pieces import read_in_full, unchanged
from incrowd.engines.spark.reading import PartitionReading, Slice
from incrowd.engines.spark.task import Work, collect, functions_of, map_partitions
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from incrowd.core.table import RowFilter
    from incrowd.engines.spark.rows import SparkRows

LIMITS = CountingLimits(dense=2**22, buffered=2**18, held=2**20)
"""A worker runs one task for each of its cores: each takes a few tens of megabytes, and goes to disk beyond."""

_CHUNK = 2**16


@dataclass(frozen=True, eq=False)
class Counting:
    """Counts the rows of a partition that are kept, and says in a row without a key how many rows it read."""

    reading: PartitionReading
    cells: Cells
    kept: tuple[RowFilter, ...]
    limits: CountingLimits = LIMITS

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read everything, then return keys and counts."""
        encoder, read = Encoder(self.cells), 0
        with Disk() as disk:
            tally = CountTally(self.limits, encoder.sizes, disk)
            for rows in self.reading.slices(batches):
                read += rows.read
                chosen = picked(rows, self.kept)
                if chosen is None or len(chosen):
                    codes = encoder.codes(rows.batch, chosen)
                    tally.add(codes, encoder.sizes)
            layout, (keys, counts) = tally.result()
        classes = encoder.classes()
        for start in range(0, len(keys), _CHUNK):
            codes = layout.unpack(keys[start : start + _CHUNK])
            columns = tuples.cell_arrays(self.cells, codes, classes)
            yield _batch(self.cells, columns, pa.array(counts[start : start + _CHUNK]))
        yield _batch(self.cells, tuples.empty_cell_arrays(self.cells, 1), pa.array([read]))


def picked(rows: Slice, kept: Sequence[RowFilter]) -> NDArray[np.intp] | None:
    """Return which rows every one of `kept` keeps, or None if there is nothing to choose by."""
    if not kept:
        return None
    if rows.places is None:
        raise InvalidParameter("nothing tells these rows apart, so none can have a coin: name a unique id column.")
    return np.flatnonzero(np.logical_and.reduce([rows.places.chosen(each) for each in kept]))


def count(rows: SparkRows, cells: Cells, kept: Sequence[RowFilter], at_least: int) -> Counts:
    """Count in one pass the rows that every one of `kept` keeps; cells with too few are dropped on the workers."""
    limits = [each for each in kept if isinstance(each, PersonLimit)]
    others = tuple(each for each in kept if not isinstance(each, PersonLimit))
    if len(limits) > 1:
        raise InvalidParameter("a person's rows are limited once: give one limit.")
    if kept and not rows.origin.stable:
        raise InvalidParameter(
            "a sample needs to know rows apart, and nothing tells those of this source apart. Name a unique id column "
            "for the Spark engine, or write the table as Parquet files."
        )
    if not limits:
        frame, reading = rows.selected(cells.reads)
        counted = map_partitions(frame, Counting(reading, cells, others), f"{tuples.fields(cells)}, count bigint")
    else:
        counted = _limited(rows, cells, limits[0], others)
    return _summed(rows, cells, counted, at_least)


def _limited(rows: SparkRows, cells: Cells, limit: PersonLimit, others: tuple[RowFilter, ...]) -> DataFrame:
    """Return the rows of each person that stay, before anything is summed up."""
    frame, reading = rows.selected(tuple(dict.fromkeys((*cells.reads, limit.column.name))))
    work: Work = Limiting(reading, cells, limit, others)
    coded = map_partitions(frame, work, f"person binary, rank binary, {tuples.fields(cells)}, count bigint")
    return limit.apply(coded)


def _summed(rows: SparkRows, cells: Cells, counted: DataFrame, at_least: int) -> Counts:
    functions = functions_of(counted)
    total = functions.sum("count").alias("count")
    enough = functions.col("key").isNull() | (functions.col("count") >= at_least)
    found = collect(counted.groupBy(*tuples.names(cells)).agg(total).where(enough))
    without = pc.is_null(found.column("key"))
    read_in_full(rows.origin.pieces, pc.sum(found.filter(without).column("count")).as_py() or 0)
    unchanged(rows.origin.pieces, rows.origin.stamps())
    return tuples.counts_of(cells, found.filter(pc.invert(without)))


def _batch(cells: Cells, columns: list[pa.Array], counts: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*columns, counts], names=[*tuples.names(cells), "count"])
