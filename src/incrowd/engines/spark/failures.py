"""Failures: what went wrong on a cluster, in words that hold no row, no plan and no stack trace.

The text of an exception on a worker may quote the value it stumbled over, and Spark carries it to the driver whole.  So
nothing of such a text is passed on: it is searched for a few known marks, and each mark has its own message.
"""

from __future__ import annotations

import base64
import errno
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from logging import Logger, LogRecord

from incrowd import errors
from incrowd.errors import ClusterUnavailable, IncrowdError, JobFailed, SourceChanged, SourceUnreadable

_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""To these PySpark tells every error with its text, values included; they write to standard error."""

_SAID = re.compile(r"incrowd-task<(\w+):([A-Za-z0-9+/=]*)>")
_DISK = (
    JobFailed,
    "the disk of a worker is full. Free space where spark.local.dir points, or add workers.",
)
_MEMORY = (
    JobFailed,
    "an executor ran out of memory. Give it more (spark.executor.memory, memoryOverhead), or fewer cores.",
)
_TOO_MANY = (
    JobFailed,
    "there are more cells than the driver takes. Use coarser levels, or raise spark.driver.maxResultSize.",
)
_LOST = (JobFailed, "workers were lost again and again. Look at the machines of the cluster.")
_LACKING = (
    ClusterUnavailable,
    "a worker lacks Python or a package that tasks need: set PYSPARK_PYTHON to one with numpy, pyarrow, cryptography.",
)
_GONE = (SourceChanged, "a file disappeared while it was in use. Start again when nobody writes to the source.")
_UNREADABLE = (SourceUnreadable, "a file cannot be read as what it was said to be. Write it again, or say its format.")
_FOREIGN = (
    SourceUnreadable,
    "files hold a type that Spark does not read, like moments in nanoseconds. Use microseconds or the local engine.",
)
_ABSENT = (
    SourceUnreadable,
    "there is nothing at this address that Spark can read. Check the path and who may read it.",
)
_VERSIONS = (
    ClusterUnavailable,
    "the workers run another Python than the driver. Set PYSPARK_PYTHON to the same version on all machines.",
)
_MASTER = (
    ClusterUnavailable,
    "Spark does not know such a master. It is spark://HOST:PORT, yarn, k8s://ADDRESS, or local[4] for this machine.",
)
_UNSTARTED = (ClusterUnavailable, "Java did not start Spark. What it wrote says why: check JAVA_HOME and config.")
_UNANSWERED = (ClusterUnavailable, "the cluster does not answer any more. Start it, or check its address.")

_MARKS: tuple[tuple[str, tuple[type[IncrowdError], str]], ...] = (
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
    (
        r"FAILED_READ_FILE|is not a Parquet file|PARQUET_|MALFORMED|BINARY_FILE_TOO_LARGE",
        _UNREADABLE,
    ),
    (r"SparkContext was shut down|stopped SparkContext|StatusCode.UNAVAILABLE|Connection refused", _UNANSWERED),
    (r"ExecutorLostFailure|Executor heartbeat timed out|Lost executor|worker lost", _LOST),
)


@contextmanager
def explained() -> Iterator[None]:
    """Run something on a cluster; a failure is told in our words, raised after Spark's own error has been let go.

    >>> with explained():
    ...     raise ConnectionRefusedError("10.0.0.7")
    Traceback (most recent call last):
    ...
    incrowd.errors.ClusterUnavailable: the cluster does not answer any more. Start it, or check its address.
    """
    failure: IncrowdError | None = None
    try:
        with _unlogged(), warnings.catch_warnings():  # PySpark warns of versions of pandas, which takes no part here
            warnings.simplefilter("ignore", FutureWarning)
            yield
    except IncrowdError:
        raise
    except _kinds() as error:
        failure = explanation(f"{type(error).__name__} {error}")
    if failure is not None:
        raise failure


@dataclass(frozen=True, eq=False)
class _Mute:
    """Lets nothing pass that one thread logs."""

    thread: int

    def filter(self, record: LogRecord) -> bool:
        return record.thread != self.thread


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep PySpark meanwhile from writing the texts of errors of this thread to its own loggers.

    Questions are asked in many threads at once: what others log is passed on, and nothing is left behind by a thread
    that never comes back.
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
    """Return the error that a text of Spark stands for.

    >>> explanation("java.io.IOException: No space left on device (row 17: Smith)")
    JobFailed('the disk of a worker is full. ...')
    """
    said = _SAID.search(text)
    if said is not None:
        return _repeated(said[1], base64.b64decode(said[2]).decode())
    if "ConnectionRefusedError" in text or "ConnectionResetError" in text:
        return _UNANSWERED[0](_UNANSWERED[1])
    for mark, (kind, message) in _MARKS:
        if re.search(mark, text):
            return kind(message)
    return _unknown()


def safe_words(error: Exception) -> str:
    """Return on a worker what the driver may hear: our own messages, which hold no values, or a kind of failure.

    >>> explanation(safe_words(ValueError("Smith")))
    JobFailed('the job failed on the cluster ...')
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
    return JobFailed("the job failed on the cluster for a reason that only its own logs tell.")


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
    """Return the classes of error by which Spark, its bridge to Java and its remote client report."""
    kinds: list[type[Exception]] = [ConnectionError, EOFError]
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        kinds += [Py4JError, PySparkException]
    except ImportError:
        return tuple(kinds)
    return tuple(kinds)
