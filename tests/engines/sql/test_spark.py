"""Tables on Spark: asked in their declared types, of this session or of a frame's, and nothing is told of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import parse_one

from incrowd.core.domain import Type
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Engine
from incrowd.engines.sql.engine import Limits, StoredTable
from incrowd.errors import IncrowdError, QueryFailed, SourceChanged

SCHEMA = Schema((Column("zip"), Column("a.b", type=Type.INTEGER)))
PEOPLE = pa.table({"zip": ["01", None, "NO"], "a.b": [1, None, 3]})
COUNT: Any = parse_one('SELECT COUNT(*) AS n, COUNT("zip") AS z, SUM("a.b") AS s FROM people', dialect="duckdb")


@pytest.fixture
def engine(spark_engine: Engine) -> Any:
    return spark_engine


def over(engine: Any, source: object, limits: Limits | None = None) -> Any:
    from incrowd.engines.sql.spark import spark_warehouse

    return spark_warehouse(engine.session, {"people": StoredTable(engine.open(source), SCHEMA)}, limits)


def test_views_are_gone_at_the_end_and_a_changed_file_is_refused(tmp_path: Path, engine: Any) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(PEOPLE, path)
    with over(engine, path) as tables:
        assert tables.collect(COUNT).to_pylist() == [{"n": 3, "z": 2, "s": 4}]
        view = tables.views["people"]
        assert engine.session.catalog.tableExists(view)
        pq.write_table(PEOPLE.slice(0, 1), path)
        with pytest.raises((SourceChanged, IncrowdError)) as failure:
            tables.collect(COUNT)
        assert "NO" not in str(failure.value)
    assert not engine.session.catalog.tableExists(view)


def test_bytes_that_are_no_text_are_missing(tmp_path: Path, engine: Any) -> None:
    broken = pa.array([b"01", b"\xff\xfe", b"ok"], pa.binary()).view(pa.string())
    pq.write_table(PEOPLE.set_column(0, "zip", broken), tmp_path / "people.parquet")
    listed: Any = parse_one("SELECT zip FROM people", dialect="duckdb")
    with over(engine, tmp_path / "people.parquet") as tables:
        assert sorted(tables.collect(listed)["zip"].to_pylist(), key=str) == ["01", None, "ok"]


def test_a_frame_is_asked_in_its_own_session_and_a_slow_question_is_stopped(engine: Any) -> None:
    frame = engine.session.newSession().createDataFrame([("01", 1), (None, None)], "zip string, `a.b` int")
    with over(engine, frame) as tables:
        assert tables.session is frame.sparkSession
        assert tables.collect(COUNT).to_pylist() == [{"n": 2, "z": 1, "s": 1}]
    # A stopped task goes on with its loop until that ends: long enough to be stopped, short enough to be over soon.
    wide = engine.session.range(30_000).selectExpr("CAST(id AS string) AS zip", "id AS `a.b`")
    pairs: Any = parse_one('SELECT COUNT(*) AS n FROM people AS a JOIN people AS b ON a."a.b" < b."a.b"')
    with (
        over(engine, wide, Limits(seconds=0.3)) as tables,
        pytest.raises(QueryFailed, match="time limit"),
    ):
        tables.collect(pairs)
