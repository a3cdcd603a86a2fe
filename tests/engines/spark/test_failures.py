from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from incrowd.engines.settings import Spark
from incrowd.engines.spark.failures import explained, explanation, safe_words
from incrowd.engines.spark.session import require_java, require_pyspark
from incrowd.engines.spark.workers import check_versions, python_version
from incrowd.errors import ClusterUnavailable, IncrowdError, JobFailed, PackageMissing, SourceChanged, SourceUnreadable
from tests import spark

needs_spark = pytest.mark.skipif(
    spark.missing() is not None and os.environ.get("CI") != "true", reason=spark.missing() or ""
)


@pytest.mark.parametrize(
    ("text", "kind", "gist"),
    [
        ("java.io.IOException: No space left on device", JobFailed, "disk of a worker is full"),
        ("java.lang.OutOfMemoryError: Java heap space", JobFailed, "out of memory"),
        ("ExecutorLostFailure (executor 3 exited caused by ...) exit code 137", JobFailed, "out of memory"),
        ("ExecutorLostFailure (executor 3 exited caused by one of the running tasks)", JobFailed, "workers were lost"),
        ("... is bigger than spark.driver.maxResultSize (1024.0 MiB)", JobFailed, "more cells than the driver takes"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.8", ClusterUnavailable, "another Python"),
        ("ModuleNotFoundError: No module named 'pyarrow'", ClusterUnavailable, "lacks Python or a package"),
        ("[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error", SourceChanged, "disappeared"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x", SourceUnreadable, "nothing at this address"),
        ("[FAILED_READ_FILE.NO_HINT] Encountered error while reading", SourceUnreadable, "cannot be read as"),
        ("something entirely new about Smith", JobFailed, "only its own logs tell"),
    ],
)
def test_a_failure_is_told_in_our_own_words(text: str, kind: type[IncrowdError], gist: str) -> None:
    error = explanation(f"{text}\nrow 17: Smith, 02139\n\tat org.apache.spark.Executor.run(Executor.scala:906)")
    assert type(error) is kind
    assert gist in str(error)
    assert "Smith" not in str(error)
    assert "scala" not in str(error)


def test_a_full_disk_and_an_empty_memory_of_a_worker_are_told_apart() -> None:
    assert "disk" in str(explanation(safe_words(OSError(errno.ENOSPC, "Smith"))))
    assert "memory" in str(explanation(safe_words(MemoryError("Smith"))))


def test_a_forged_mark_raises_none_of_our_other_errors() -> None:
    assert type(explanation("incrowd-task<annotations:>")) is JobFailed


def test_our_own_errors_pass_as_they_are() -> None:
    with pytest.raises(SourceChanged, match="as it is"), explained():
        raise SourceChanged("as it is")


def versions(**other: str | None) -> dict[str, str | None]:
    from incrowd import __version__

    pyspark = pytest.importorskip("pyspark")
    same = {"python": python_version(), "pyspark": pyspark.__version__, "incrowd": __version__}
    return {**same, "numpy": "2.4.0", "pyarrow": "26.0.0", "cryptography": "50.0.0", **other}


@pytest.mark.parametrize(
    ("other", "gist"),
    [
        ({"python": "3.8"}, "a worker has Python 3.8"),
        ({"pyspark": "3.5.1"}, "a worker has PySpark 3.5"),
        ({"incrowd": None}, "a worker has incrowd (none)"),
        ({"pyarrow": "9.0.0"}, "a worker has pyarrow 9.0.0, and tasks need 18"),
        ({"cryptography": None}, "a worker has cryptography (none)"),
    ],
)
def test_workers_with_other_versions_are_refused_by_name(other: dict[str, str | None], gist: str) -> None:
    check_versions([versions()])
    with pytest.raises(ClusterUnavailable) as caught:
        check_versions([versions(), versions(**other)])
    assert gist in str(caught.value)


def test_without_java_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterUnavailable, match="Java 17 or later, and none was found"):
        require_java()


def test_an_old_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ClusterUnavailable, match="Java 11 is found"):
        require_java()


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(PackageMissing, match=r"incrowd\[spark\]"):
        require_pyspark()


@needs_spark
@pytest.mark.parametrize("settings", [Spark(master="spark://127.0.0.1:9"), Spark(remote="sc://127.0.0.1:9")])
def test_a_cluster_that_does_not_answer_is_given_up_soon(settings: Spark) -> None:
    from incrowd.engines.spark.engine import spark_engine

    with pytest.raises(ClusterUnavailable, match="nobody answers at"), spark_engine(settings):
        pass
