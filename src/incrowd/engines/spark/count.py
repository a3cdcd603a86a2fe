"""Count on a cluster: each task counts its own rows; only the keys of cells and their counts are exchanged.

Codes of an open level are numbered while reading, so two tasks would number them differently.  Therefore the key of a
cell only says whether its value is an ordinary one, outside the domain or missing, and a column `mark` holds the value.
"""

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
from incrowd.core.keys import Codes, Keys, Layout, grouped
from incrowd.core.recoding import Classes, Recoding
from incrowd.engines.local.counting import CountingLimits, CountTally, Disk
from incrowd.engines.local.encoding import Encoder
from incrowd.engines.spark.limit import PersonLimit
from incrowd.engines.spark.places import Places, fixed, people, ranks, read_in_full, unchanged
from incrowd.engines.spark.rows import PartitionReading, Slice
from incrowd.engines.spark.task import Work, collect, functions_of, map_partitions
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from incrowd.core.table import RowFilter
    from incrowd.engines.spark.rows import SparkRows

LIMITS = CountingLimits(dense=2**22, buffered=2**18, held=2**20)
"""A worker runs one task for each of its cores: each takes a few tens of megabytes, and goes to disk beyond."""
_CHUNK = 2**16  # keys unpacked at a time on a worker
_ORDINARY, _OTHER, _MISSING = range(3)
_SPARK_TYPES = {
    pa.string(): "string",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.binary(): "binary",
}


@dataclass(frozen=True)
class CellColumns:
    """The columns in which cells travel between tasks: one key and, for each open level, the value itself."""

    cells: Cells

    @property
    def layout(self) -> Layout:
        """How a key is laid out; an open level takes one of three codes."""
        recodings = self.cells.recodings
        return Layout(tuple(_MISSING + 1 if r.classes is None else len(r.classes) for r in recodings))

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return ["key", *(f"mark{place}" for place, _ in self._open)]

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the columns."""
        key = pa.int64() if self.layout.dtype == np.int64 else pa.binary()
        return [key, *(recoding.column.domain.storage for _, recoding in self._open)]

    @property
    def fields(self) -> str:
        """The columns with their types, as Spark spells them.

        >>> from incrowd.core.schema import Column, Schema
        >>> CellColumns(Cells.of(Schema((Column("zip"),)), {})).fields
        'key bigint, mark0 string'
        """
        return ", ".join(f"{name} {_SPARK_TYPES[kind]}" for name, kind in zip(self.names, self.types, strict=True))

    @property
    def _open(self) -> list[tuple[int, Recoding]]:
        return [(place, recoding) for place, recoding in enumerate(self.cells.recodings) if recoding.classes is None]

    def arrays(self, codes: Sequence[Codes], classes: Sequence[tuple[Classes, Codes | None]]) -> list[pa.Array]:
        """Return tuples of codes as columns that mean the same in every task."""
        parts, marks = [], []
        for column, (ordered, final), recoding in zip(codes, classes, self.cells.recodings, strict=True):
            if recoding.classes is not None or final is None:
                parts.append(column)
                continue
            places = final[column]
            ordinary = len(ordered.marks)
            parts.append(np.maximum(places - ordinary + 1, _ORDINARY).astype(np.int32))
            marks.append(ordered.marks.take(pa.array(places, mask=places >= ordinary)))
        return [_sent(self.layout.pack(parts)), *marks]

    def empty(self) -> list[pa.Array]:
        """Return one row without a cell."""
        return [pa.nulls(1, kind) for kind in self.types]

    def counts(self, table: pa.Table) -> Counts:
        """Return the counts that travelled as these columns and `count`: the value that one process would count."""
        classes: list[Classes] = []
        columns: list[Codes] = []
        keys = self.layout.unpack(_received(table.column("key").combine_chunks(), self.layout))
        for place, (recoding, codes) in enumerate(zip(self.cells.recodings, keys, strict=True)):
            if recoding.classes is not None:
                classes.append(recoding.classes)
                columns.append(codes)
            else:
                ordered, renumbered = _renumbered(recoding, codes, table.column(f"mark{place}").combine_chunks())
                classes.append(ordered)
                columns.append(renumbered)
        layout = Layout(tuple(len(column) for column in classes))
        ordered_keys, sums = grouped(layout.pack(columns), table.column("count").to_numpy().astype(np.int64))
        return Counts(tuple(classes), ordered_keys, sums).pruned()


def _renumbered(recoding: Recoding, codes: Codes, marks: pa.Array) -> tuple[Classes, Codes]:
    unique = pc.unique(marks.drop_null())
    ordered = unique.take(pc.array_sort_indices(unique))
    places = pc.fill_null(pc.index_in(marks, value_set=ordered), 0).to_numpy(zero_copy_only=False)
    special = len(ordered) + codes - _OTHER
    classes = Classes(recoding, ordered, has_other=True, has_missing=True)
    return classes, np.where(codes == _ORDINARY, places, special).astype(np.int32)


def _sent(keys: Keys) -> pa.Array:
    return pa.array(keys) if keys.dtype == np.int64 else fixed(np.ascontiguousarray(keys).tobytes(), len(keys))


def _received(keys: pa.Array, layout: Layout) -> Keys:
    if layout.dtype == np.int64:
        numbers: Keys = keys.to_numpy(zero_copy_only=False).astype(np.int64)
        return numbers
    return np.frombuffer(b"".join(keys.to_pylist()), layout.dtype)


@dataclass(frozen=True, eq=False)
class Counting:
    """Counts the rows of a partition that all filters keep; a last row without a key says how many rows it read."""

    reading: PartitionReading
    cells: Cells
    filters: tuple[RowFilter, ...]
    limits: CountingLimits = LIMITS

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        encoder, read, columns = Encoder(self.cells), 0, CellColumns(self.cells)
        names = [*columns.names, "count"]
        with Disk() as disk:
            tally = CountTally(self.limits, encoder.sizes, disk)
            for rows in self.reading.slices(batches):
                read += rows.read
                chosen = np.flatnonzero(chosen_rows(rows, self.filters)) if self.filters else None
                if chosen is None or len(chosen):
                    codes = encoder.codes(rows.batch, chosen)
                    tally.add(codes, encoder.sizes)
            layout, (keys, counts) = tally.result()
        classes = encoder.classes()
        for start in range(0, len(keys), _CHUNK):
            arrays = columns.arrays(layout.unpack(keys[start : start + _CHUNK]), classes)
            yield pa.RecordBatch.from_arrays([*arrays, pa.array(counts[start : start + _CHUNK])], names=names)
        yield pa.RecordBatch.from_arrays([*columns.empty(), pa.array([read])], names=names)


@dataclass(frozen=True, eq=False)
class Limiting:
    """Sends every row that has a person: the person, the row's rank, and its key if all filters keep the row."""

    reading: PartitionReading
    cells: Cells
    limit: PersonLimit
    filters: tuple[RowFilter, ...]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        read = 0
        for rows in self.reading.slices(batches):
            read += rows.read
            yield self._sent(rows)
        nobody = [pa.nulls(1, pa.binary()), pa.nulls(1, pa.binary())]
        yield self._batch([*nobody, *CellColumns(self.cells).empty(), pa.array([read])])

    def _sent(self, rows: Slice) -> pa.RecordBatch:
        mask = chosen_rows(rows, self.filters)
        persons = people(self.limit.person_key, rows.batch.column(self.limit.column.name), self.limit.column)
        encoder = Encoder(self.cells)
        codes = encoder.codes_of_all(rows.batch)
        for column in codes:
            mask &= column >= 0
        keys = CellColumns(self.cells).arrays([np.maximum(column, 0) for column in codes], encoder.classes())
        masked = [column.take(pa.array(np.arange(len(mask)), mask=~mask)) for column in keys]
        ones = pa.array(np.ones(len(mask), np.int64))
        whole = self._batch([persons, ranks(self.limit.row_key, _places(rows)), *masked, ones])
        return whole.filter(persons.is_valid())

    def _batch(self, columns: list[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(columns, names=["person", "rank", *CellColumns(self.cells).names, "count"])


def chosen_rows(rows: Slice, filters: Sequence[RowFilter]) -> NDArray[np.bool_]:
    """Return which rows all filters keep."""
    mask = np.ones(rows.batch.num_rows, np.bool_)
    for row_filter in filters:
        mask &= _places(rows).chosen(row_filter)
    return mask


def _places(rows: Slice) -> Places:
    if rows.places is None:
        raise InvalidParameter("these rows have neither positions nor ids, so no sample: name a unique id column.")
    return rows.places


def count(rows: SparkRows, cells: Cells, filters: Sequence[RowFilter], at_least: int) -> Counts:
    """Count in one pass the rows that all filters keep; workers drop the cells with fewer than `at_least` rows."""
    limits = [row_filter for row_filter in filters if isinstance(row_filter, PersonLimit)]
    others = tuple(row_filter for row_filter in filters if not isinstance(row_filter, PersonLimit))
    if len(limits) > 1:
        raise InvalidParameter("a person's rows are limited once: give one limit.")
    if filters:
        require_stable(rows, "a sample")
    fields = f"{CellColumns(cells).fields}, count bigint"
    if not limits:
        frame, reading = rows.selected(cells.reads)
        counted = map_partitions(frame, Counting(reading, cells, others), fields)
    else:
        frame, reading = rows.selected(tuple(dict.fromkeys((*cells.reads, limits[0].column.name))))
        work: Work = Limiting(reading, cells, limits[0], others)
        counted = limits[0].apply(map_partitions(frame, work, f"person binary, rank binary, {fields}"))
    return _summed(rows, cells, counted, at_least)


def require_stable(rows: SparkRows, purpose: str) -> None:
    """Raise unless every row has the same place in every pass, so that its coin is evaluated once."""
    if not rows.origin.stable:
        raise InvalidParameter(
            f"{purpose} needs rows with a position or an id, and this source has neither. Name a unique id column for "
            "the Spark engine, or write the table as Parquet files."
        )


def _summed(rows: SparkRows, cells: Cells, counted: DataFrame, at_least: int) -> Counts:
    functions, columns = functions_of(counted), CellColumns(cells)
    total = functions.sum("count").alias("count")
    enough = functions.col("key").isNull() | (functions.col("count") >= at_least)
    table = collect(counted.groupBy(*columns.names).agg(total).where(enough))
    without_key = pc.is_null(table.column("key"))
    read_in_full(rows.origin.pieces, pc.sum(table.filter(without_key).column("count")).as_py() or 0)
    unchanged(rows.origin.pieces, rows.origin.stamps())
    return columns.counts(table.filter(pc.invert(without_key)))
