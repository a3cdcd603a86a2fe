"""Workers: they get this code, and their versions are checked before anything is charged."""

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
from incrowd.engines.spark.task import collect, explained, is_remote, map_batches
from incrowd.errors import ClusterUnavailable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
"""Settings under which Spark reads values as they are written, as the local engine does."""

LEAST = {"numpy": 2, "pyarrow": 18, "cryptography": 44}
"""The packages that tasks need, with the minimum major version of each."""

_FIELDS = "python string, pyspark string, incrowd string, numpy string, pyarrow string, cryptography string"
_PROBES = 4  # tasks that try the workers' Python before rows are sent
PATIENCE = 180.0
"""Seconds within which some worker must finish a small job."""


def ready(session: SparkSession, patience: float | None = None) -> SparkSession:
    """Return a new session beside this one, with the code on its workers and their versions checked.

    Code is sent to each session separately, and a frame is processed in its own: so this session gets it too.
    """
    with explained():
        _ship_if_far(session)
        own: SparkSession = session.newSession()
    return prepare(own, patience)


def prepare(session: SparkSession, patience: float | None = None) -> SparkSession:
    """Prepare a session of our own: settings, code, versions."""
    with explained():
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
        _ship_if_far(session)
    check_versions(_versions(session, PATIENCE if patience is None else patience))
    return session


def check_versions(workers: list[dict[str, str | None]]) -> None:
    """Raise if a worker has other versions than the driver, and name them.

    >>> check_versions([{"python": "3.8", "pyspark": "4.0.0", "incrowd": "0.1.0", "numpy": "2.1", "pyarrow": "18.0"}])
    Traceback (most recent call last):
    ...
    incrowd.errors.ClusterUnavailable: a worker has Python 3.8, the driver has Python 3... Set PYSPARK_PYTHON ...
    """
    import pyspark

    incrowd = import_module("incrowd").__version__
    here = {"Python": python_version(), "PySpark": _minor(pyspark.__version__), "incrowd": incrowd}
    for worker in workers:
        there = {"Python": worker["python"], "PySpark": _minor(worker["pyspark"] or ""), "incrowd": worker["incrowd"]}
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
    """Return the version of Python that workers must have too."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _versions(session: SparkSession, patience: float) -> list[dict[str, str | None]]:
    """Let a small job report the versions of the workers that run it."""
    frame = map_batches(session.range(0, _PROBES, 1, _PROBES), _probe(), _FIELDS)
    pool = ThreadPoolExecutor(1)
    try:
        return list(pool.submit(collect, frame).result(patience).to_pylist())
    except Late:
        session.interruptAll()
    finally:
        pool.shutdown(wait=False)
    raise ClusterUnavailable(
        f"no worker ran a small job within {patience:.0f} seconds. Are there workers with free cores and memory?"
    )


def _probe() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a task that needs none of our code on the worker: as a local function, it is pickled whole."""

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
            packages = {name: [version(name)] for name in ("pyspark", "incrowd", "numpy", "pyarrow", "cryptography")}
            yield pa.record_batch({"python": [f"{sys.version_info.major}.{sys.version_info.minor}"], **packages})

    return probe


def _ship_if_far(session: SparkSession) -> None:
    """Send the code to the workers, unless they are threads of this process."""
    if is_remote(session) or re.match(r"local($|\[)", str(session.conf.get("spark.master"))) is None:
        _ship(session)


def _ship(session: SparkSession) -> None:
    """Send the code that runs here to the workers."""
    if is_remote(session):
        with tempfile.TemporaryDirectory(prefix="incrowd-") as folder:
            session.addArtifacts(str(packed_code(Path(folder))), pyfile=True)
        return
    from pyspark import SparkFiles

    own = Path(SparkFiles.getRootDirectory(), "incrowd-code")  # Spark removes this folder when it stops
    own.mkdir(exist_ok=True)
    session.addArtifacts(str(packed_code(own)), pyfile=True)


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date of a ZIP file: equal code gives equal archives


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
