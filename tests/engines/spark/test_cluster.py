"""A real cluster: a task that is run again, beside itself or after the death of its worker meets the same coins."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.settings import Spark
from incrowd.engines.spark.engine import SparkEngine
from incrowd.engines.spark.task import explained
from incrowd.errors import SourceInvalid
from incrowd.noise.positioned import PositionedSample
from tests import spark
from tests.engines.spark import driver

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
ROWS = 6000


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows in six files."""
    folder = tmp_path_factory.mktemp("visits")
    draws = np.random.default_rng(7).integers(0, 40, ROWS)
    table = pa.table({"zip": [f"0{n:03}" for n in draws], "person": [f"p{n % 900}" for n in range(ROWS)]})
    for part in range(6):
        pq.write_table(table.slice(part * ROWS // 6, ROWS // 6), folder / f"part {part}.parquet")
    return folder


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, spark_cluster: str, data: Path) -> Path:
    """The folder in which a driver wrote down what it found."""
    folder = tmp_path_factory.mktemp("driver")
    command = [sys.executable, driver.__file__, spark_cluster, str(data), str(folder)]
    try:
        done = subprocess.run(
            command, env=spark.environment(), capture_output=True, text=True, check=False, timeout=1700
        )
    finally:
        with suppress(FileNotFoundError, ProcessLookupError):
            os.killpg(int((folder / "third.pid").read_text()), signal.SIGKILL)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def outcome(work: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((work / "found.json").read_text())
    return result


@pytest.fixture(scope="module")
def expected(data: Path) -> list[list[object]]:
    """What one process counts under the same coins."""
    engine = LocalEngine()
    return driver.shown(engine.count(engine.open(data), driver.CELLS, driver.SAMPLE))


def test_a_cluster_counts_what_one_process_counts(outcome: dict[str, Any], expected: list[list[object]]) -> None:
    assert outcome["steady"] == expected


def test_tasks_that_are_run_again_repeat_their_coins(outcome: dict[str, Any], expected: list[list[object]]) -> None:
    again = {name.split("-")[0] for name in outcome["retried"]["attempts"] if name.split("-")[1] != "0"}
    first = {name.split("-")[0] for name in outcome["retried"]["attempts"]}
    assert again == first, "every task failed once"
    assert len(first) >= 3
    assert outcome["retried"]["counts"] == expected


def test_tasks_that_run_beside_themselves_repeat_their_coins(
    outcome: dict[str, Any], expected: list[list[object]]
) -> None:
    assert any(name.split("-")[1] == "1" for name in outcome["speculated"]["attempts"]), "no second attempt was made"
    assert outcome["speculated"]["counts"] == expected


def test_a_worker_that_is_killed_in_mid_job_changes_nothing(
    outcome: dict[str, Any], expected: list[list[object]]
) -> None:
    assert outcome["killed"]["shot"]
    assert any(name.endswith(driver.THIRD) for name in outcome["killed"]["attempts"])
    assert outcome["killed"]["counts"] == expected


def test_the_rows_a_person_keeps_are_the_same_on_one_thread(
    outcome: dict[str, Any], spark_engine: Any, data: Path
) -> None:
    rows = spark_engine.open(data)
    assert outcome["limited"] == driver.shown(spark_engine.count(rows, driver.CELLS, driver.LIMIT, driver.SAMPLE))


def spellings(key: bytes) -> list[bytes]:
    """Return the ways in which a key might be written somewhere."""
    return [key, key.hex().encode(), key.hex().upper().encode(), base64.b64encode(key)[:40], repr(key).encode()[2:-1]]


KEYS = (driver.POSITION_KEY, driver.ID_KEY, driver.ROW_KEY, driver.PERSON_KEY)


def test_keys_are_in_no_event_log_on_no_page_and_in_no_setting(work: Path) -> None:
    logs = [path.read_bytes() for path in (work / "events").rglob("*") if path.is_file()]
    pages = (work / "seen").read_bytes()
    assert b"SparkListenerJobStart" in b"".join(logs)
    assert b"MapInArrow" in pages, "the plans are on the pages"
    for key in KEYS:
        for spelling in spellings(key):
            assert not any(spelling in text for text in (*logs, pages))


def test_a_count_over_spark_connect_is_the_same_and_shows_no_key(
    spark_connect: str, data: Path, expected: list[list[object]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    from incrowd.engines.spark.engine import spark_engine

    with spark_engine(Spark(remote=spark_connect, id="visit")) as engine:
        frame = engine.session.read.parquet(data.as_uri())
        numbered = frame.selectExpr("*", "hash(zip, person) AS visit")
        with pytest.raises(SourceInvalid, match="does not identify rows"):
            engine.marks(engine.open(numbered), driver.CELLS_SCHEMA, bytes(32))
    with spark_engine(Spark(remote=spark_connect)) as engine:
        rows = engine.open(data)
        assert driver.shown(engine.count(rows, driver.CELLS, driver.SAMPLE)) == expected
        unlimited = engine.count(rows, driver.CELLS, PositionedSample.fresh(Fraction(1, 2)), at_least=10**6)
        assert len(unlimited) == 0
    base = tmp_path_factory.getbasetemp()
    logs = [path for folder in (base, base.parent) for path in folder.glob("spark-connect/**/*") if path.is_file()]
    texts = [path.read_bytes() for path in logs]
    assert any(b"SparkListenerConnectOperationStarted" in text for text in texts)
    for key in KEYS:
        assert not any(spelling in text for spelling in spellings(key) for text in texts)


def test_a_frame_of_someone_elses_session_finds_the_code_there(spark_connect: str) -> None:
    def paths(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        for _ in batches:
            yield pa.record_batch({"sent": [any("/incrowd-" in path for path in sys.path)]})

    with explained():
        from pyspark.sql.connect.session import SparkSession

        session = SparkSession.builder.remote(spark_connect).create()
    try:
        SparkEngine.on(session)
        with explained():
            outcome = session.range(0, 1, 1, 1).mapInArrow(paths, "sent boolean").toArrow()
        assert outcome.column("sent").to_pylist() == [True]
    finally:
        session.stop()
