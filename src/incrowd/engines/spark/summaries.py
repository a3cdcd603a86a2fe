"""Summaries on a cluster: what tasks learn of their own rows, merged; and a hash of all rows as a multiset."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from incrowd.core.table import Learned, Summary
from incrowd.engines.spark.pieces import read_in_full
from incrowd.engines.spark.reading import PartitionReading
from incrowd.engines.spark.task import collect, column, functions_of, map_partitions

if TYPE_CHECKING:
    from pyspark.sql import Column

    from incrowd.engines.spark.rows import SparkRows

_FIELDS = "summary binary, rows bigint"


@dataclass(frozen=True, eq=False)
class Learning:
    """Summarizes a partition."""

    reading: PartitionReading
    empty: Callable[[], Summary]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return one summary, pickled, and how many rows it has seen."""
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
        """Return one summary for all, pickled, and how many rows it has seen."""
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
    found = collect(map_partitions(summaries.repartition(1), Merging(empty), _FIELDS))
    read_in_full(rows.origin.pieces, sum(found.column("rows").to_pylist()))
    whole = empty()
    for packed in found.column("summary"):
        whole.merge(_unpacked(packed.as_py()))
    return whole


def _packed(summary: Summary, rows: int) -> pa.RecordBatch:
    return pa.record_batch({"summary": pa.array([pickle.dumps(summary)], pa.binary()), "rows": pa.array([rows])})


def _unpacked(content: bytes) -> Any:
    return pickle.loads(content)  # noqa: S301  made by our own task on our own worker


_WORDS = 8
_HEX = 8


def content_digest(rows: SparkRows) -> bytes:
    """Return 32 bytes for the names, types and rows of a source; of a text file, for its bytes.

    Each row is hashed by SHA-256 where it lies, and the eight 32-bit words of the hashes are summed as whole numbers,
    which is a hash of the multiset of rows.  So the digest does not depend on how Spark cuts or orders the rows.  It is
    another one than the local engine makes of the same files, which hashes their bytes.
    """
    content = rows.origin.content
    functions = functions_of(content)
    row = functions.to_json(functions.struct(*(column(content, name) for name in content.columns)))
    hashed = content.select(functions.sha2(row, 256).alias("hash"))
    sums = [functions.sum(_word(functions, place)).alias(f"word{place}") for place in range(_WORDS)]
    found = collect(hashed.agg(functions.count("*").alias("rows"), *sums)).to_pylist()[0]
    kinds = [(each.name, each.dataType.simpleString()) for each in content.schema.fields]
    stated = repr((kinds, sorted(found.items())))
    return hashlib.sha256(stated.encode("utf-8", "surrogatepass")).digest()


def _word(functions: Any, place: int) -> Column:
    word: Column = functions.conv(functions.substring("hash", 1 + _HEX * place, _HEX), 16, 10).cast("bigint")
    return word
