"""Learn on a cluster: every task summarizes its own rows, and one more merges the summaries."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from incrowd.core.table import Learned, Summary
from incrowd.engines.spark.pieces import read_in_full
from incrowd.engines.spark.reading import PartitionReading
from incrowd.engines.spark.task import collected, mapped

if TYPE_CHECKING:
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
            read += rows.batch.num_rows
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
    summaries = mapped(frame, Learning(reading, empty), _FIELDS)
    found = collected(mapped(summaries.repartition(1), Merging(empty), _FIELDS))
    read_in_full(rows.origin.pieces, sum(found.column("rows").to_pylist()))
    whole = empty()
    for packed in found.column("summary"):
        whole.merge(_unpacked(packed.as_py()))
    return whole


def _packed(summary: Summary, rows: int) -> pa.RecordBatch:
    return pa.record_batch({"summary": pa.array([pickle.dumps(summary)], pa.binary()), "rows": pa.array([rows])})


def _unpacked(content: bytes) -> Any:
    return pickle.loads(content)  # noqa: S301  made by our own task on our own worker
