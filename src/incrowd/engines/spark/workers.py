"""Workers: they get this very code, and are asked for their versions before anything is charged."""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd import errors
from incrowd.engines.spark.failures import explained
from incrowd.engines.spark.task import collect, is_remote, map_batches
from incrowd.errors import ClusterUnavailable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
"""What a session must do so that values are read as they are written, the same as on a single machine."""

LEAST = {"numpy": 2, "pyarrow": 18, "cryptography": 44}
"""The packages that tasks need, with the least major version of each."""

_FIELDS = "python string, pyspark string, incrowd string, numpy string, pyarrow string, cryptography string"
_PROBES = 4
PATIENCE = 180.0
"""How many seconds a cluster may take until some worker does a small job."""


def ready(session: SparkSession, patience: float | None = None) -> SparkSession:
    """Return a session of our own beside the given one, with the code on its workers and its versions checked.

    Code is sent for each session anew, and a frame is worked on in its own: so the given one gets it too.
    """
    with explained():
        _ship_if_far(session)
        own: SparkSession = session.newSession()
    return prepare(own, patience)


def prepare(session: SparkSession, patience: float | None = None) -> SparkSession:
    """Set up a session that is ours: settings, code, versions."""
    with explained():
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
        _ship_if_far(session)
    check_versions(_asked(session, PATIENCE if patience is None else patience))
    return session


def check_versions(found: list[dict[str, str | None]]) -> None:
    """Raise if a worker has other versions than the driver, and say which.

    >>> check_versions([{"python": "3.8", "pyspark": "4.0.0", "incrowd": "0.1.0", "numpy": "2.1", "pyarrow": "18.0"}])
    Traceback (most recent call last):
    ...
    incrowd.errors.ClusterUnavailable: a worker has Python 3.8, the driver has Python 3... Set PYSPARK_PYTHON ...
    """
    import pyspark

    here = {
        "Python": python_version(),
        "PySpark": _minor(pyspark.__version__),
        "incrowd": import_module("incrowd").__version__,
    }
    for worker in found:
        there = {
            "Python": worker["python"],
            "PySpark": _minor(worker["pyspark"] or ""),
            "incrowd": worker["incrowd"],
        }
        for name, version in here.items():
            if there[name] != version:
                raise ClusterUnavailable(
                    f"a worker has {name} {there[name] or '(none)'}, the driver has {name} {version}. Set "
                    "PYSPARK_PYTHON to an environment with the same versions on all machines."
                )
        for name, least in LEAST.items():
            version = worker.get(name) or ""
            if not version or int(version.split(".")[0]) < least:
                raise ClusterUnavailable(
                    f"a worker has {name} {version or '(none)'}, and tasks need {least} or later. Install it on the "
                    "workers, or set PYSPARK_PYTHON to an environment that has it."
                )


def python_version() -> str:
    """Return the version of Python that tasks must have too."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _asked(session: SparkSession, patience: float) -> list[dict[str, str | None]]:
    """Let a small job report the versions of the workers that take it."""
    frame = map_batches(session.range(0, _PROBES, 1, _PROBES), _probe(), _FIELDS)
    pool = ThreadPoolExecutor(1)
    try:
        return _waited(pool, frame, patience)
    except Late:
        session.interruptAll()
    finally:
        pool.shutdown(wait=False)
    raise ClusterUnavailable(
        f"no worker took a small job within {patience:.0f} seconds. Are there workers, with free cores and memory?"
    )


def _waited(pool: ThreadPoolExecutor, frame: DataFrame, patience: float) -> list[dict[str, str | None]]:
    found: list[dict[str, str | None]] = pool.submit(collect, frame).result(patience).to_pylist()
    return found


def _probe() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a task that needs nothing of ours on the worker: being local, it is pickled whole."""

    def probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import importlib
        import sys

        import pyarrow as pa

        def version(name: str) -> str | None:
            try:
                return str(importlib.import_module(name).__version__)
            except ImportError:
                return None

        for _ in batches:
            found = {name: [version(name)] for name in ("pyspark", "incrowd", "numpy", "pyarrow", "cryptography")}
            yield pa.record_batch({"python": [f"{sys.version_info.major}.{sys.version_info.minor}"], **found})

    return probe


def _ship_if_far(session: SparkSession) -> None:
    """Give the workers the code, unless they are threads of this process."""
    if is_remote(session) or re.match(r"local($|\[)", str(session.conf.get("spark.master"))) is None:
        _ship(session)


def _ship(session: SparkSession) -> None:
    """Give the workers the code that runs here."""
    if is_remote(session):
        with tempfile.TemporaryDirectory(prefix="incrowd-") as folder:
            session.addArtifacts(str(packed_code(Path(folder))), pyfile=True)
        return
    from pyspark import SparkFiles

    own = Path(SparkFiles.getRootDirectory(), "incrowd-code")  # Spark removes it when it stops
    own.mkdir(exist_ok=True)
    session.addArtifacts(str(packed_code(own)), pyfile=True)


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


_EPOCH = (1980, 1, 1, 0, 0, 0)


def packed_code(folder: Path) -> Path:
    """Write the modules of this package into an archive named after their content, and return its path.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = packed_code(Path(folder))
    ...     path.suffix, "incrowd/errors.py" in zipfile.ZipFile(path).namelist()
    ('.zip', True)
    """
    root = Path(errors.__file__).parent
    modules = {f"incrowd/{path.relative_to(root).as_posix()}": path.read_bytes() for path in sorted(root.rglob("*.py"))}
    digest = hashlib.sha256()
    for name, content in modules.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    target = folder / f"incrowd-{digest.hexdigest()[:16]}.zip"
    if not target.exists():
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in modules.items():
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    return target
