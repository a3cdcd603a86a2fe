"""The warehouse: every source is asked in its declared types, and the database sees nothing else of the machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from sqlglot import exp, parse_one

from incrowd.core.domain import Type
from incrowd.core.schema import Column, Schema
from incrowd.engines.readers.sources import open_source
from incrowd.engines.sql.duckdb import Warehouse, warehouse
from incrowd.engines.sql.engine import Limits, SampledTable, StoredTable
from incrowd.errors import QueryFailed, SourceChanged, SourceUnreadable
from incrowd.noise.system import SystemCoins
from tests.statistics.alarm import FALSE_ALARM, binomial_p_value

SCHEMA = Schema(
    (
        Column("age", type=Type.INTEGER),
        Column("pay", type=Type.DECIMAL),
        Column("zip"),
        Column("born", type=Type.DATE),
        Column("ill", type=Type.BOOLEAN),
    )
)
PEOPLE = pa.table(
    {
        "age": pa.array([30, None, 41], pa.int64()),
        "pay": pa.array([1.5, float("nan"), 2.25], pa.float64()),
        "zip": ["01", None, "NO"],
        "born": pa.array([date(1990, 1, 2), None, date(1980, 2, 29)], pa.date32()),
        "ill": [True, None, False],
    }
)


@contextmanager
def over(source: object, limits: Limits | None = None, schema: Schema = SCHEMA) -> Iterator[Warehouse]:
    with warehouse({"people": StoredTable(open_source(source), schema)}, limits) as tables:
        yield tables


def query(text: str) -> exp.Query:
    result = parse_one(text, dialect="duckdb")
    assert isinstance(result, exp.Query)
    return result


ALL = query('SELECT * FROM "people" ORDER BY "age"')


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    pc.write_csv(PEOPLE.set_column(1, "pay", pa.array(["1.5", None, "2.25"])), tmp_path / "people.csv")
    return tmp_path / "people.csv"


def test_files_and_frames_are_the_same_rows_in_the_same_types(parquet: Path, csv: Path) -> None:
    result = []
    for source in (parquet, csv, PEOPLE):
        with over(source) as tables:
            result.append(tables.collect(ALL))
    assert result[0].schema.types == [pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.bool_()]
    assert result[0].equals(result[1])
    assert result[0].equals(result[2])
    assert result[0]["pay"].to_pylist() == [1.5, 2.25, None], "what is no number is missing"


def test_parquet_is_read_by_the_database_itself_unless_it_is_stored_otherwise(parquet: Path, tmp_path: Path) -> None:
    with over(parquet) as tables:
        assert tables.views == {"people"}
    pq.write_table(PEOPLE.set_column(0, "age", pa.array(["30", None, "41"])), tmp_path / "texts.parquet")
    with over(tmp_path / "texts.parquet") as tables:
        assert tables.views == frozenset()
        assert tables.collect(ALL)["age"].to_pylist() == [30, 41, None]


def test_nothing_is_read_before_the_first_question(csv: Path) -> None:
    with over(csv) as tables:
        assert not tables.loaded
        tables.collect(ALL)
        assert tables.loaded == {"people"}


def test_the_database_sees_no_other_file_and_cannot_be_told_to(parquet: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with over(parquet) as tables:
        for text in (
            f"SELECT * FROM read_csv('{tmp_path}/secret.csv')",
            "SET enable_external_access = true",
            f"COPY people TO '{tmp_path}/stolen.csv'",
            "INSTALL httpfs",
        ):
            with pytest.raises(Exception, match=r"(?i)permission|locked|disabled|external"):
                tables.base.execute(text)
    assert not (tmp_path / "stolen.csv").exists()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('x')",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM elsewhere",
        "SELECT * FROM 'x.parquet'",
    ],
)
def test_a_tree_that_reads_anything_but_the_tables_is_a_mistake_of_ours(parquet: Path, text: str) -> None:
    with over(parquet) as tables, pytest.raises(AssertionError, match="declared tables only"):
        tables.collect(query(text))


def test_errors_of_the_database_never_show_what_it_read(parquet: Path) -> None:
    with over(parquet) as tables, pytest.raises(SourceUnreadable) as failure:
        tables.collect(query("SELECT CAST(zip AS INTEGER) FROM people"))
    assert "NO" not in str(failure.value).replace("Nothing", "")
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None


def test_ctrl_c_while_rows_are_loaded_stays_what_it_is(csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: int) -> pa.RecordBatch:
        raise KeyboardInterrupt

    monkeypatch.setattr("incrowd.engines.sql.engine.typed_batches", lambda *_: map(interrupted, [1]))
    with over(csv) as tables, pytest.raises(KeyboardInterrupt):
        tables.collect(ALL)


def test_a_question_that_takes_too_long_is_stopped(parquet: Path) -> None:
    many = query("SELECT COUNT(*) FROM people a, people b" + "".join(f", people c{n}" for n in range(24)))
    with over(parquet, Limits(seconds=0.3)) as tables, pytest.raises(QueryFailed, match="exceeded its time limit"):
        tables.collect(many)


def test_a_file_that_changed_is_refused(parquet: Path) -> None:
    with over(parquet) as tables:
        pq.write_table(PEOPLE.slice(0, 1), parquet)
        with pytest.raises((SourceChanged, SourceUnreadable)):
            tables.collect(ALL)


def test_a_sample_takes_the_place_of_its_table_for_one_question(tmp_path: Path) -> None:
    pq.write_table(pa.table({"zip": ["1"] * 40_000}), tmp_path / "many.parquet")
    schema, count = Schema((Column("zip"),)), query("SELECT COUNT(*) AS n FROM people")
    with over(tmp_path / "many.parquet", schema=schema) as tables:
        sampled = SampledTable("people", SystemCoins().sample(Fraction(1, 4)))
        first, again = (tables.collect(count, sampled)["n"][0].as_py() for _ in range(2))
        assert first == again, "the same coins, however often the rows are read"
        assert binomial_p_value(first, 40_000, 0.25) > FALSE_ALARM
        assert tables.collect(count)["n"][0].as_py() == 40_000


def test_many_threads_may_ask_at_once(csv: Path) -> None:
    result, failed = list[int](), list[BaseException]()
    with over(csv) as tables:

        def ask() -> None:
            try:
                result.append(tables.collect(query("SELECT COUNT(*) AS n FROM people"))["n"][0].as_py())
            except BaseException as error:  # noqa: BLE001 - told to the test
                failed.append(error)

        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (result, failed) == ([3] * 16, [])
