"""Session: Spark started or connected to, and stopped if it was started here."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from incrowd.engines.hidden_pandas import show_pandas
from incrowd.engines.spark.task import explained
from incrowd.engines.spark.workers import prepare, ready
from incrowd.engines.writers.sinks import staging_folder
from incrowd.errors import ClusterUnavailable, IncrowdError, InvalidParameter, PackageMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from incrowd.engines.settings import Spark

_HERE = "local[*]"
_JAVA = 17
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_QUIET = """\
appender.none.type = Null
appender.none.name = none
rootLogger.level = off
rootLogger.appenderRef.none.ref = none
"""
_PLANNING = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
"""Java of a driver that only plans: it lives for seconds, so code is compiled once, and one thread collects."""
_KNOCK = 10.0  # seconds to reach the master, before Spark is started, whose own error comes late


@contextmanager
def session_of(settings: Spark) -> Iterator[SparkSession]:
    """Start Spark or connect to it, prepare its workers, and stop at the end what was started.

    A classic session for the same master that this process already has is used and left running.
    """
    require_pyspark()
    master = settings.master or _HERE
    _knock(settings.remote or master)
    if settings.remote is not None:
        with _connected(settings.remote, settings.config) as session:
            yield prepare(session)
        return
    running = _running(master)
    if running is not None:
        yield ready(running)
        return
    require_java()
    with _started(master, settings.config) as session:
        yield prepare(session)


def require_pyspark() -> None:
    """Raise if PySpark is missing, and name the extra that installs it."""
    show_pandas()
    try:
        import pandas  # noqa: F401, ICN001  PySpark's Arrow functions need it
        import pyspark
    except ImportError as error:
        raise PackageMissing(
            f"the Spark engine needs the package {error.name}, which is not installed. Run: pip install "
            "'incrowd[spark]'"
        ) from error
    if int(pyspark.__version__.split(".")[0]) < 4:
        raise PackageMissing(f"the Spark engine needs PySpark 4, and {pyspark.__version__} is installed.")


def require_java() -> None:
    """Raise unless there is a Java that Spark 4 runs on."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        where = "JAVA_HOME does not point to one" if home else "none was found"
        raise ClusterUnavailable(
            f"Spark needs Java {_JAVA} or later, and {where}. Install it (for example the package "
            f"openjdk-{_JAVA}-jre-headless), or set JAVA_HOME."
        )
    shell = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30)  # noqa: S603
    version = java_version(shell.stderr + shell.stdout)
    if version is not None and version < _JAVA:
        raise ClusterUnavailable(f"Spark needs Java {_JAVA} or later, and Java {version} is found. Set JAVA_HOME.")


def java_version(text: str) -> int | None:
    """Return the major version that `java -version` names.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('java version "1.8.0_392"')
    (17, 8)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


def _knock(address: str) -> None:
    """Raise soon if no server listens at the address of a master: Spark itself would try for minutes."""
    try:
        parts = urlsplit(address.partition(",")[0])
        port = parts.port or (15002 if parts.scheme == "sc" else 7077)
    except ValueError:
        raise InvalidParameter(
            f"{address!r} is not the address of a cluster: write HOST:PORT, with a number."
        ) from None
    if parts.scheme not in {"spark", "sc"} or parts.hostname is None:
        return
    try:
        socket.create_connection((parts.hostname, port), _KNOCK).close()
    except OSError as error:
        raise ClusterUnavailable(
            f"nobody answers at {parts.scheme}://{parts.hostname}:{port}. Is the cluster running, is that its address, "
            "and may this machine reach it?"
        ) from error


def _running(master: str) -> SparkSession | None:
    """Return the classic session of this process if there is one for this master."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:  # noqa: SLF001  there is no public way to ask without starting one
        return None
    session = SparkSession.builder.getOrCreate()
    if session.sparkContext.master != master:
        raise ClusterUnavailable(
            f"this process already runs Spark on {session.sparkContext.master}, and it can run only one. Stop it first."
        )
    return session


@contextmanager
def _connected(remote: str, config: Mapping[str, str]) -> Iterator[SparkSession]:
    with explained():
        from pyspark.sql.connect.session import SparkSession as Remote

        builder = Remote.builder.remote(remote)
        for name, value in config.items():
            builder = builder.config(name, value)
        session = builder.create()
    try:
        yield session
    finally:
        _stop(session)


@contextmanager
def _started(master: str, config: Mapping[str, str]) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    with staging_folder(Path(tempfile.gettempdir(), "spark")) as folder:
        builder = SparkSession.builder.master(master).appName("incrowd")
        for name, value in {**_defaults(master, folder), **config}.items():
            builder = builder.config(name, value)
        with explained(), _python(master):
            session = builder.getOrCreate()
        try:
            yield session
        finally:
            _stop(session)


def _stop(session: SparkSession) -> None:
    """Stop a session; one whose Java process died has stopped, and its last job reported why."""
    with suppress(IncrowdError), explained():
        session.stop()


def _defaults(master: str, folder: Path) -> dict[str, str]:
    """Return the settings of our own session, which config may change: it prints nothing and leaves no files."""
    quiet = folder / "log4j2.properties"
    quiet.write_text(_QUIET)
    java = [] if master.startswith("local") else _PLANNING
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.extraJavaOptions": " ".join([f"-Dlog4j2.configurationFile={quiet.as_uri()}", *java]),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.broadcast.UDFCompressionThreshold": str(2**30),
    }
    if master.startswith("local"):
        chosen["spark.driver.memory"] = "2g"  # tasks run in the driver, each with a whole text file
        chosen["spark.io.encryption.enabled"] = "true"  # of what is shuffled or spilled, under a key in memory
    if _here(master):
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return chosen


def _here(master: str) -> bool:
    return master.startswith("local") or urlsplit(master).hostname in _LOOPBACK


@contextmanager
def _python(master: str) -> Iterator[None]:
    """Let workers on this machine run this Python, unless PYSPARK_PYTHON names another."""
    chosen = "PYSPARK_PYTHON" in os.environ
    if not chosen and _here(master):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        yield
    finally:
        if not chosen:
            os.environ.pop("PYSPARK_PYTHON", None)
