"""Task: a piece of work that travels to the workers, how it is run there, and the functions of either kind of Spark."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from incrowd.engines.spark.failures import explained, safe_words

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession


class Work(Protocol):
    """What is done to the batches of one partition; it can be pickled, and done again it gives the same."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the batches of a partition and return what is made of them."""


class TaskFailed(Exception):
    """Work failed on a worker; the text is safe to be seen by anyone."""


def map_partitions(frame: DataFrame, work: Work, fields: str) -> DataFrame:
    """Return what the work makes of each partition of a frame, as columns described by `fields`.

    The work travels in the closure of the task, as bytes in which Spark sees no text: secret keys in it reach neither
    plans nor the pages or logs of Spark.
    """
    packed = zlib.compress(pickle.dumps(work), 1)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from incrowd.engines.spark.task import perform

        return perform(packed, batches)

    return map_batches(frame, task, fields)


def map_batches(
    frame: DataFrame, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], fields: str
) -> DataFrame:
    """Return what a function of batches makes of each partition of a frame."""
    with explained():
        return frame.mapInArrow(task, fields)


def perform(packed: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Unpack the work and run it; what an error says about values is left behind."""
    words: str | None = None
    try:
        work: Work = pickle.loads(zlib.decompress(packed))  # noqa: S301  made by `map_partitions` on our own driver
        yield from work.run(batches)
    except Exception as error:  # noqa: BLE001  the text of any error may hold a value
        words = safe_words(error)
    if words is not None:
        raise TaskFailed(words)


def collect(frame: DataFrame) -> pa.Table:
    """Return a small frame, counts or facts, on the driver."""
    with explained():
        return frame.toArrow()


def is_remote(thing: DataFrame | SparkSession) -> bool:
    """Return whether a session or a frame talks to a Spark Connect server."""
    return type(thing).__module__.startswith("pyspark.sql.connect")


def functions_of(frame: DataFrame) -> Any:
    """Return the functions that make columns for a frame: a process may use both kinds of Spark at once."""
    return import_module("pyspark.sql.connect.functions" if is_remote(frame) else "pyspark.sql.functions")


def window_of(frame: DataFrame) -> Any:
    """Return the class that describes windows over a frame."""
    return import_module("pyspark.sql.connect.window" if is_remote(frame) else "pyspark.sql.window").Window


def column(frame: DataFrame, name: str) -> Column:
    """Return a column by its exact name, whatever characters are in it."""
    quoted = name.replace("`", "``")
    found: Column = functions_of(frame).col(f"`{quoted}`")
    return found
