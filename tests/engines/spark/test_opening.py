"""What the Spark engine opens, under whatever name, and what it refuses before anything is charged."""

from __future__ import annotations

import logging
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.core.cells import Cells
from incrowd.core.schema import Column, Schema
from incrowd.core.table import SourceOptions
from incrowd.engines.spark.engine import SparkEngine
from incrowd.engines.spark.session import _stop
from incrowd.errors import InvalidParameter, JobFailed, SourceChanged, SourceUnreadable
from incrowd.noise.positioned import PositionedSample

WARD = Schema((Column("ward"),))
CELLS = Cells.of(WARD, {})
TABLE = pa.table({"ward": ["a", "b", "a"]})


def test_a_name_may_hold_any_character(spark_engine: SparkEngine, tmp_path: Path) -> None:
    name = "my Bücher [1]{2} %41 #b a,b"
    folder, text = tmp_path / name, tmp_path / name / "x.csv"
    (folder / "parts").mkdir(parents=True)
    pq.write_table(TABLE, folder / "parts" / f"{name}.parquet")
    text.write_text("ward\na\nb\na\n")
    for source in (folder / "parts", str(text), (folder / "parts").as_uri()):
        rows = spark_engine.open(source)
        assert spark_engine.count(rows, CELLS).total == 3
        assert rows.address == (folder / ("x.csv" if "x.csv" in str(source) else "parts")).as_posix()


def test_files_are_held_to_what_was_validated(spark_engine: SparkEngine, tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    pq.write_table(TABLE, path)
    rows = spark_engine.open(path)
    spark_engine.marks(rows, WARD, bytes(32))
    pq.write_table(pa.table({"ward": ["c"] * 9}), path)
    with pytest.raises(SourceChanged):
        spark_engine.count(rows, CELLS, PositionedSample.fresh(Fraction(1, 2)))


def test_a_file_that_came_after_the_opening_is_in_the_digest(spark_engine: SparkEngine, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    rows = spark_engine.open(tmp_path)
    before = spark_engine.digest(rows)
    pq.write_table(TABLE, tmp_path / "b.parquet")
    assert spark_engine.digest(rows) != before


@pytest.mark.parametrize("address", ["postgresql://me@host/clinic::visits", "clinic.sqlite::visits"])
def test_databases_belong_to_the_local_engine(spark_engine: SparkEngine, address: str) -> None:
    with pytest.raises(InvalidParameter, match="Use --engine local"):
        spark_engine.open(address)


@pytest.mark.parametrize("ending", ["orc", "json"])
def test_an_option_that_means_nothing_is_refused(spark_engine: SparkEngine, tmp_path: Path, ending: str) -> None:
    with pytest.raises(InvalidParameter, match="the option nulls means nothing"):
        spark_engine.open(str(tmp_path / f"x.{ending}"), SourceOptions(nulls=("", "NA")))
    with pytest.raises(InvalidParameter, match="the option delimiter means nothing for a table of Spark"):
        spark_engine.open("::visits", SourceOptions(delimiter=";"))


def test_a_broken_line_of_json_is_an_error_and_no_missing_row(spark_engine: SparkEngine, tmp_path: Path) -> None:
    path = tmp_path / "visits.json"
    path.write_text('{"ward": "a"}\n{"ward": "b"\n{"ward": "a"}\n')
    with pytest.raises(SourceUnreadable, match="cannot be read"):
        spark_engine.count(spark_engine.open(path), CELLS)


def test_moments_that_spark_does_not_read_are_named(spark_engine: SparkEngine, tmp_path: Path) -> None:
    pq.write_table(pa.table({"ward": ["a"], "at": pa.array([1], pa.timestamp("ns"))}), tmp_path / "x.parquet")
    with pytest.raises(SourceUnreadable, match="nanoseconds"):
        spark_engine.open(tmp_path / "x.parquet")


@pytest.mark.parametrize("sample", ["monotonically_increasing_id()", "uuid()", "cast(rand() * 1e9 as bigint)"])
def test_ids_that_are_made_while_reading_are_refused(spark_engine: SparkEngine, sample: str) -> None:
    frame = spark_engine.session.range(9).selectExpr("'a' as ward", f"{sample} as visit")
    with pytest.raises(InvalidParameter, match="differ whenever it is read"):
        SparkEngine(spark_engine.session, "visit").open(frame)
    assert spark_engine.count(spark_engine.open(frame), CELLS).total == 9


def test_columns_that_a_session_takes_for_one_are_refused(spark_engine: SparkEngine) -> None:
    session = spark_engine.session.newSession()
    frame = session.range(3).selectExpr("'a' as ward", "'b' as other").toDF("ward", "Ward")
    with pytest.raises(InvalidParameter, match="upper and lower case"):
        spark_engine.open(frame)


class Heard(logging.Handler):
    """Keeps what is logged."""

    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__()
        self.records = records

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def test_no_value_reaches_the_loggers_of_spark(spark_engine: SparkEngine) -> None:
    from pyspark.logger import PySparkLogger

    session = spark_engine.session.newSession()
    frame = session.createDataFrame([("Smith",)], "name string").selectExpr("cast(name as int) as ward")
    heard: list[logging.LogRecord] = []
    handler = Heard(heard)
    loggers: list[Any] = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        with pytest.raises(JobFailed) as caught:
            spark_engine.count(spark_engine.open(frame), CELLS)
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
    assert not heard
    assert "Smith" not in str(caught.value)
    assert not any(logger.disabled for logger in loggers)


class Dead:
    """A session whose Java has died."""

    stopped = False

    def stop(self) -> None:
        self.stopped = True
        raise ConnectionRefusedError("10.0.0.7")


def test_the_end_of_a_dead_session_hides_no_other_error() -> None:
    session = Dead()
    _stop(session)
    assert session.stopped
