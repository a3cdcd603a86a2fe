"""SparkEngine: the operations of the local engine, done on a cluster; summaries that its tasks learn and merge."""

from __future__ import annotations

import hashlib
import pickle
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.fingerprints import SourceFingerprint
from incrowd.core.schema import Column, Schema
from incrowd.core.table import (
    DEFAULTS,
    Learned,
    PeriodChoice,
    PersonFilter,
    Progress,
    RowFilter,
    Rows,
    SourceOptions,
    Summary,
)
from incrowd.engines.columns import require
from incrowd.engines.people import PersonIds
from incrowd.engines.spark.count import count
from incrowd.engines.spark.limit import PersonLimit, exclude, limit
from incrowd.engines.spark.opening import open_rows
from incrowd.engines.spark.places import hashed, read_in_full
from incrowd.engines.spark.rows import AdmittedPeople, PartitionReading, SparkRows, on_cluster
from incrowd.engines.spark.session import session_of
from incrowd.engines.spark.shared_disk import SharedParquet
from incrowd.engines.spark.task import collect, column, explained, functions_of, map_partitions
from incrowd.engines.spark.validate import marks_of
from incrowd.engines.spark.workers import ready

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from incrowd.core.coins import Coins
    from incrowd.engines.settings import Spark

_FIELDS = "summary binary, rows bigint"
_WORDS = _HEX = 8  # a SHA-256 hash in hexadecimal is eight words of eight digits


@dataclass(frozen=True)
class SparkEngine:
    """Rows on a cluster, classic or by Spark Connect; `id` names the column that identifies rows without an order.

    Its session was prepared: use `SparkEngine.on`, or `spark_engine` to start one.
    """

    session: SparkSession
    id: str | None = None

    @classmethod
    def on(cls, session: SparkSession, id_column: str | None = None) -> SparkEngine:
        """Use an existing session: its workers are checked, and its own settings are not changed."""
        return cls(ready(session), id_column)

    def open(self, source: object, options: SourceOptions = DEFAULTS) -> SparkRows:
        return open_rows(self.session, source, options, self.id)

    def types(self, rows: Rows, columns: Sequence[str]) -> Mapping[str, pa.DataType]:
        opened = on_cluster(rows)
        require(opened.names, columns)
        return {name: opened.origin.types.get(name, pa.string()) for name in columns}

    def keyed(self, rows: Rows, cells: Cells | None) -> Rows:
        """Return the rows unchanged: many tasks share the cost of a second pass."""
        return rows

    def marks(self, rows: Rows, schema: Schema, key: bytes, progress: Progress | None = None) -> SourceFingerprint:
        opened = on_cluster(rows)
        with explained():
            marks = marks_of(opened, schema, key)
            if progress is not None and opened.rows is not None:
                progress(opened.rows, opened.rows)
        return marks

    def admitted(self, rows: Rows, people: PersonFilter) -> SparkRows:
        """Return the rows of admitted people: one job brings all ids here, later ones leave the other people out.

        Workers get a keyed hash of each admitted person of the source, under a key drawn for this one set.  They get
        neither the key of pseudonyms, nor a pseudonym, nor anybody who has no row in the source.
        """
        opened, person, key = on_cluster(rows), people.person, secrets.token_bytes(32)
        with explained():
            names = learn(opened, [person.name], partial(PersonIds, person)).names
            hashes = frozenset(hashed(key, name) for name in people.among(names))
            return replace(opened, admitted=AdmittedPeople(person, key, hashes), counted=False)

    def in_period(self, rows: Rows, period: PeriodChoice) -> SparkRows:
        """Return the rows of one period: workers judge each row by its own cell, and nothing is read before."""
        return replace(on_cluster(rows), period=period, counted=False)

    def digest(self, rows: Rows) -> bytes:
        with explained():
            return content_digest(on_cluster(rows))

    def count(self, rows: Rows, cells: Cells, *filters: RowFilter, at_least: int = 1) -> Counts:
        """Count in one job, in each cell, the rows that all filters keep.

        Each task counts its own rows in some tens of megabytes and sends keys with counts; workers drop the cells with
        fewer than `at_least` rows.  The result takes some 60 bytes for each cell.
        """
        with explained():
            return count(on_cluster(rows), cells, filters, at_least)

    def limit(self, rows: Rows, column: Column, at_most: int, coins: Coins) -> PersonLimit:
        require(on_cluster(rows).names, [column.name])
        return limit(column, at_most, coins)

    def exclude(self, rows: Rows, column: Column, beyond: int, coins: Coins) -> PersonLimit:
        require(on_cluster(rows).names, [column.name])
        return exclude(column, beyond, coins)

    def learn(self, rows: Rows, columns: Sequence[str], empty: Callable[[], Learned]) -> Learned:
        with explained():
            return learn(on_cluster(rows), columns, empty)

    def watched(self, rows: Rows, progress: Progress) -> Rows:
        """Return the rows unchanged: tasks do not report their progress."""
        return rows


@contextmanager
def spark_engine(settings: Spark) -> Iterator[SparkEngine]:
    """Start Spark, or connect to it, as the settings say; stop at the end what was started."""
    with session_of(settings) as session:
        yield SparkEngine(session, settings.id)


@dataclass(frozen=True, eq=False)
class Learning:
    """Summarizes a partition: one pickled summary, and how many rows it has seen."""

    reading: PartitionReading
    empty: Callable[[], Summary]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        summary, read = self.empty(), 0
        for rows in self.reading.slices(batches):
            summary.add(rows.batch)
            read += rows.read
        if read:
            yield _packed(summary, read)


@dataclass(frozen=True, eq=False)
class Merging:
    """Merges summaries as they come: a summary may take tens of megabytes, and there are as many as tasks."""

    empty: Callable[[], Summary]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        whole, read = self.empty(), 0
        for batch in batches:
            for packed, rows in zip(batch.column(0), batch.column(1), strict=True):
                whole.merge(_unpacked(packed.as_py()))
                read += rows.as_py()
        yield _packed(whole, read)


def learn(rows: SparkRows, columns: Sequence[str], empty: Callable[[], Learned]) -> Learned:
    """Read these columns once and return what all summaries learned, merged."""
    frame, reading = rows.selected(columns)
    summaries = map_partitions(frame, Learning(reading, empty), _FIELDS)
    merged = collect(map_partitions(summaries.repartition(1), Merging(empty), _FIELDS))
    read_in_full(rows.origin.pieces, sum(merged.column("rows").to_pylist()))
    whole = empty()
    for packed in merged.column("summary"):
        whole.merge(_unpacked(packed.as_py()))
    return whole


def _packed(summary: Summary, rows: int) -> pa.RecordBatch:
    return pa.record_batch({"summary": pa.array([pickle.dumps(summary)], pa.binary()), "rows": pa.array([rows])})


def _unpacked(content: bytes) -> Any:
    return pickle.loads(content)  # noqa: S301  made by our own task on our own worker


def content_digest(rows: SparkRows) -> bytes:
    """Return 32 bytes for the names, types and rows of a source; of files that tasks open, for their bytes.

    Workers hash each row by SHA-256, and the eight 32-bit words of the hashes are summed as whole numbers: a hash of
    the multiset of rows.  So the digest does not depend on how Spark cuts or orders the rows.  It differs from the
    digest that the local engine computes for the same files, which hashes their bytes.
    """
    if isinstance(rows.origin, SharedParquet):
        return rows.origin.digest()
    content = rows.origin.content
    functions = functions_of(content)
    row = functions.to_json(functions.struct(*(column(content, name) for name in content.columns)))
    hashes = content.select(functions.sha2(row, 256).alias("hash"))
    words = [functions.substring("hash", 1 + _HEX * place, _HEX) for place in range(_WORDS)]
    numbers = [functions.conv(word, 16, 10).cast("bigint") for word in words]
    sums = [functions.sum(number).alias(f"word{place}") for place, number in enumerate(numbers)]
    totals = collect(hashes.agg(functions.count("*").alias("rows"), *sums)).to_pylist()[0]
    kinds = [(item.name, item.dataType.simpleString()) for item in content.schema.fields]
    stated = repr((kinds, sorted(totals.items())))
    return hashlib.sha256(stated.encode("utf-8", "surrogatepass")).digest()
