"""SparkEngine: the same few things that the local engine does, done on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.fingerprints import SourceFingerprint
from incrowd.core.schema import Column, Schema
from incrowd.core.table import DEFAULTS, Learned, PersonFilter, Progress, RowFilter, Rows, SourceOptions
from incrowd.engines.columns import require
from incrowd.engines.spark.consenting import admitted
from incrowd.engines.spark.count import count
from incrowd.engines.spark.failures import explained
from incrowd.engines.spark.limit import PersonLimit, exclude, limit
from incrowd.engines.spark.opening import open_rows
from incrowd.engines.spark.rows import SparkRows, on_cluster
from incrowd.engines.spark.session import session_of
from incrowd.engines.spark.summaries import content_digest, learn
from incrowd.engines.spark.validate import marks_of
from incrowd.engines.spark.workers import ready

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from incrowd.core.coins import Coins
    from incrowd.engines.settings import Spark


@dataclass(frozen=True)
class SparkEngine:
    """Rows on a cluster, classic or by Spark Connect; `id` names the column that tells rows without an order apart.

    The session is one that was made ready: use `SparkEngine.on`, or `spark_engine` to start one.
    """

    session: SparkSession
    id: str | None = None

    @classmethod
    def on(cls, session: SparkSession, id_column: str | None = None) -> SparkEngine:
        """Use a session that is there: its workers are checked, and its own settings are left alone."""
        return cls(ready(session), id_column)

    def open(self, source: object, options: SourceOptions = DEFAULTS) -> SparkRows:
        """Open a path or URI, the name of a table, or a frame of Spark, without reading a row."""
        return open_rows(self.session, source, options, self.id)

    def types(self, rows: Rows, columns: Sequence[str]) -> Mapping[str, pa.DataType]:
        """Return the type in which each of these columns is read; a column of which nothing is known is text."""
        opened = on_cluster(rows)
        require(opened.names, columns)
        return {name: opened.origin.types.get(name, pa.string()) for name in columns}

    def keyed(self, rows: Rows, cells: Cells | None) -> Rows:
        """Return the rows as they are: what is read twice is read by many at once."""
        del cells
        return rows

    def marks(self, rows: Rows, schema: Schema, key: bytes, progress: Progress | None = None) -> SourceFingerprint:
        """Raise if rows cannot be told apart or read as declared; return their marks, gathered by every task."""
        opened = on_cluster(rows)
        with explained():
            marks = marks_of(opened, schema, key)
            if progress is not None and opened.rows is not None:
                progress(opened.rows, opened.rows)
        return marks

    def admitted(self, rows: Rows, whose: PersonFilter) -> SparkRows:
        """Return the rows of admitted people alone: one job names all people here, later ones leave the others out."""
        with explained():
            return admitted(on_cluster(rows), whose)

    def digest(self, rows: Rows) -> bytes:
        """Return 32 bytes that tell this content from any other, whatever the order of the rows."""
        with explained():
            return content_digest(on_cluster(rows))

    def count(self, rows: Rows, cells: Cells, *kept: RowFilter, at_least: int = 1) -> Counts:
        """Count in one job, in each cell, the rows that every one of `kept` keeps.

        Each task counts its own rows in some tens of megabytes and sends keys with counts; cells with fewer than
        `at_least` rows are left out on the workers.  What comes back takes some 60 bytes for each cell.
        """
        with explained():
            return count(on_cluster(rows), cells, kept, at_least)

    def limit(self, rows: Rows, column: Column, at_most: int, coins: Coins) -> PersonLimit:
        """Keep at most that many rows of each person, a random choice among the person's own."""
        require(on_cluster(rows).names, [column.name])
        return limit(column, at_most, coins)

    def exclude(self, rows: Rows, column: Column, beyond: int, coins: Coins) -> PersonLimit:
        """Keep all rows of people who have at most `beyond` of them, and none of anybody else's."""
        require(on_cluster(rows).names, [column.name])
        return exclude(column, beyond, coins)

    def learn(self, rows: Rows, columns: Sequence[str], empty: Callable[[], Learned]) -> Learned:
        """Read these columns once and return what a summary, started by `empty` in every task, learned of them."""
        with explained():
            return learn(on_cluster(rows), columns, empty)

    def watched(self, rows: Rows, progress: Progress) -> Rows:
        """Return the rows as they are: tasks do not tell how far they are."""
        del progress
        return rows


@contextmanager
def spark_engine(settings: Spark) -> Iterator[SparkEngine]:
    """Start or reach Spark as the settings say, and stop at the end what was started."""
    with session_of(settings) as session:
        yield SparkEngine(session, settings.id)
