"""Task: work that is sent to the workers, and its failures in words without a row, a plan or a stack trace.

The text of an exception on a worker may quote a value, and Spark sends it to the driver whole.  So nothing of such a
text is passed on: it is searched for a few patterns, and each pattern has its own message.
"""

from __future__ import annotations

import base64
import errno
import pickle
import re
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from logging import Logger, LogRecord
from typing import TYPE_CHECKING, Any, Protocol

from incrowd import errors
from incrowd.errors import ClusterUnavailable, IncrowdError, JobFailed, SourceChanged, SourceUnreadable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""To these loggers PySpark writes every error with its text, values included; they print to standard error."""

_REPORT = re.compile(r"incrowd-task<(\w+):([A-Za-z0-9+/=]*)>")
_DISK = (JobFailed, "the disk of a worker is full. Free space where spark.local.dir points, or add workers.")
_MEMORY = (
    JobFailed,
    "an executor ran out of memory. Give it more (spark.executor.memory, memoryOverhead), or fewer cores.",
)
_TOO_MANY = (
    JobFailed,
    "there are more cells than the driver takes. Generalize more, or raise spark.driver.maxResultSize.",
)
_LOST = (JobFailed, "workers were lost repeatedly. Check the machines of the cluster.")
_LACKING = (
    ClusterUnavailable,
    "a worker lacks Python or a package that tasks need: set PYSPARK_PYTHON to one with numpy, pyarrow, cryptography.",
)
_GONE = (SourceChanged, "a file disappeared while it was in use. Start again when nobody writes to the source.")
_UNREADABLE = (SourceUnreadable, "a file cannot be read in its format. Write it again, or declare its format.")
_FOREIGN = (
    SourceUnreadable,
    "files hold a type that Spark does not read, such as times in nanoseconds. Use microseconds or the local engine.",
)
_ABSENT = (
    SourceUnreadable,
    "there is nothing at this address that Spark can read. Check the path and its permissions.",
)
_VERSIONS = (
    ClusterUnavailable,
    "the workers run another Python than the driver. Set PYSPARK_PYTHON to the same version on all machines.",
)
_MASTER = (
    ClusterUnavailable,
    "Spark does not know this master. Write spark://HOST:PORT, yarn, k8s://ADDRESS, or local[4] for this machine.",
)
_UNSTARTED = (ClusterUnavailable, "Java did not start Spark. Read what it printed, and check JAVA_HOME and config.")
_UNANSWERED = (ClusterUnavailable, "the cluster does not answer. Start it, or check its address.")

_PATTERNS: tuple[tuple[str, tuple[type[IncrowdError], str]], ...] = (
    (r"No space left on device|DiskSpace|ENOSPC", _DISK),
    (r"OutOfMemoryError|MemoryError|exit code 137|exit code 52|killed by YARN|OOMKilled|UNABLE_TO_ACQUIRE", _MEMORY),
    (r"maxResultSize", _TOO_MANY),
    (r"JAVA_GATEWAY_EXITED", _UNSTARTED),
    (r"Could not parse Master URL|INVALID_MASTER|master URL", _MASTER),
    (r"Illegal Parquet type|PARQUET_TYPE_(ILLEGAL|NOT_SUPPORTED|NOT_RECOGNIZED)|UNSUPPORTED_TIME_TYPE", _FOREIGN),
    (r"PYTHON_VERSION_MISMATCH", _VERSIONS),
    (r"No module named|ModuleNotFoundError|Cannot run program", _LACKING),
    (r"FILE_NOT_EXIST|FileNotFoundException", _GONE),
    (r"PATH_NOT_FOUND|TABLE_OR_VIEW_NOT_FOUND|UNABLE_TO_INFER_SCHEMA|No FileSystem for scheme|ClassNotFound", _ABSENT),
    (r"AccessDenied|Permission denied|AccessControlException|Forbidden", _ABSENT),
    (r"FAILED_READ_FILE|is not a Parquet file|PARQUET_|MALFORMED|BINARY_FILE_TOO_LARGE", _UNREADABLE),
    (r"SparkContext was shut down|stopped SparkContext|StatusCode.UNAVAILABLE|Connection refused", _UNANSWERED),
    (r"ExecutorLostFailure|Executor heartbeat timed out|Lost executor|worker lost", _LOST),
)


@contextmanager
def explained() -> Iterator[None]:
    """Run work on a cluster; a failure is raised in our words, after Spark's own error was released.

    >>> with explained():
    ...     raise ConnectionRefusedError("10.0.0.7")
    Traceback (most recent call last):
    ...
    incrowd.errors.ClusterUnavailable: the cluster does not answer. Start it, or check its address.
    """
    failure: IncrowdError | None = None
    try:
        with _unlogged(), warnings.catch_warnings():  # PySpark warns of versions of pandas, which is not used here
            warnings.simplefilter("ignore", FutureWarning)
            yield
    except IncrowdError:
        raise
    except _kinds() as error:
        failure = explanation(f"{type(error).__name__} {error}")
    if failure is not None:
        try:
            raise failure
        finally:
            failure.__context__ = None  # Python attached Spark's error, whose text may quote values


@dataclass(frozen=True, eq=False)
class _Mute:
    """Drops what one thread logs."""

    thread: int

    def filter(self, record: LogRecord) -> bool:
        return record.thread != self.thread


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep PySpark from writing the texts of this thread's errors to its own loggers.

    Queries run in many threads at once: what other threads log is passed on, and a thread that never returns leaves
    no filter for others.
    """
    mute, loggers = _Mute(threading.get_ident()), _loggers()
    for logger in loggers:
        logger.addFilter(mute)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(mute)


def explanation(text: str) -> IncrowdError:
    """Return the error that a text of Spark means.

    >>> explanation("java.io.IOException: No space left on device (row 17: Smith)")
    JobFailed('the disk of a worker is full. ...')
    """
    report = _REPORT.search(text)
    if report is not None:
        return _repeated(report[1], base64.b64decode(report[2]).decode())
    if "ConnectionRefusedError" in text or "ConnectionResetError" in text:
        return _UNANSWERED[0](_UNANSWERED[1])
    for pattern, (kind, message) in _PATTERNS:
        if re.search(pattern, text):
            return kind(message)
    return _unknown()


def safe_words(error: Exception) -> str:
    """Return what a worker may report to the driver: our own messages, which hold no values, or a kind of failure.

    >>> explanation(safe_words(ValueError("Smith")))
    JobFailed('the job failed on the cluster. ...')
    >>> explanation(safe_words(SourceChanged("a file changed.")))
    SourceChanged('a file changed.')
    """
    if isinstance(error, IncrowdError):
        kind, message = type(error).__name__, str(error)
    elif isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        kind, message = _DISK[0].__name__, _DISK[1]
    elif isinstance(error, MemoryError):
        kind, message = _MEMORY[0].__name__, _MEMORY[1]
    else:
        return "incrowd-task failed"
    return f"incrowd-task<{kind}:{base64.b64encode(message.encode()).decode()}>"


def _unknown() -> JobFailed:
    return JobFailed("the job failed on the cluster. Its logs tell the reason.")


def _repeated(name: str, message: str) -> IncrowdError:
    kind = getattr(errors, name, JobFailed)
    return kind(message) if isinstance(kind, type) and issubclass(kind, IncrowdError) else _unknown()


def _loggers() -> list[Logger]:
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:
        return []
    return [PySparkLogger.getLogger(name) for name in _LOGGERS]


def _kinds() -> tuple[type[Exception], ...]:
    """Return the classes of errors that Spark, its bridge to Java and its remote client raise."""
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
    except ImportError:
        return ConnectionError, EOFError
    return ConnectionError, EOFError, Py4JError, PySparkException


class Work(Protocol):
    """What a task does to the batches of one partition; it can be pickled, and a second run gives the same."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the batches of a partition and return its result."""


class TaskFailed(Exception):
    """Work failed on a worker; the text holds no values."""


def map_partitions(frame: DataFrame, work: Work, fields: str) -> DataFrame:
    """Return the result of the work on each partition of a frame, as columns described by `fields`.

    The work is part of the closure of the task, as compressed bytes: its secret keys reach neither plans nor the pages
    or logs of Spark.
    """
    packed = zlib.compress(pickle.dumps(work), 1)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from incrowd.engines.spark.task import perform  # imported on the worker, so only its name is pickled

        return perform(packed, batches)

    return map_batches(frame, task, fields)


def map_batches(
    frame: DataFrame, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], fields: str
) -> DataFrame:
    """Return the result of a function of batches on each partition of a frame."""
    with explained():
        return frame.mapInArrow(task, fields)


def perform(packed: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Unpack the work and run it; of an error only safe words are passed on."""
    words: str | None = None
    try:
        work: Work = pickle.loads(zlib.decompress(packed))  # noqa: S301  made by `map_partitions` on our own driver
        yield from work.run(batches)
    except Exception as error:  # noqa: BLE001  the text of any error may hold a value
        words = safe_words(error)
    if words is not None:
        raise TaskFailed(words)


def collect(frame: DataFrame) -> pa.Table:
    """Return a small frame of counts or facts to the driver."""
    with explained():
        return frame.toArrow()


def is_remote(thing: DataFrame | SparkSession) -> bool:
    """Whether a session or a frame uses a Spark Connect server."""
    return type(thing).__module__.startswith("pyspark.sql.connect")


def functions_of(frame: DataFrame) -> Any:
    """Return the functions that build columns for a frame: a process may use both kinds of Spark at once."""
    return import_module("pyspark.sql.connect.functions" if is_remote(frame) else "pyspark.sql.functions")


def window_of(frame: DataFrame) -> Any:
    """Return the class that describes windows over a frame."""
    return import_module("pyspark.sql.connect.window" if is_remote(frame) else "pyspark.sql.window").Window


def column(frame: DataFrame, name: str) -> Column:
    """Return a column by its exact name, whatever characters are in it."""
    quoted = name.replace("`", "``")
    result: Column = functions_of(frame).col(f"`{quoted}`")
    return result
