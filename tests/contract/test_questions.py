"""Questions are computed to the same numbers wherever the rows are: here, on Spark, in PostgreSQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from incrowd.core.table import DEFAULTS, Engine
from incrowd.engines.readers.sources import open_source
from incrowd.engines.sql.duckdb import warehouse
from incrowd.engines.sql.engine import QueryTables, StoredTable
from incrowd.errors import QueryRefused
from incrowd.queries.language.tables import ready_rows
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import measurement
from incrowd.queries.query import Catalog, QueryTerms
from tests.contract import kinds
from tests.contract.questions import LIMITED, LOCAL_ONLY, MORE, NOT_IN_POSTGRES, QUESTIONS, tables
from tests.postgres_tables import load
from tests.queries.language.hospital import CATALOG

TERMS = QueryTerms(epsilon=Fraction(1), delta=Fraction(1, 10**6))
OF_EVERY_TYPE = (*QUESTIONS[:6], *QUESTIONS[20:22], QUESTIONS[24], QUESTIONS[32])
Numbers = list[Counter[tuple[tuple[str, Any], ...]]]


READY = Catalog(tuple(replace(each, ready=True) for each in CATALOG.relations))


@cache
def statistics(sql: str, *, ready: bool = False) -> tuple[exp.Query, ...]:
    """Return the queries that a question is computed by, from tables as they are or as they are ready."""
    question = understand(sql, READY if ready else CATALOG, 1 if sql in LIMITED else None)
    return measurement(question, CATALOG[question.tables[0]].unit, TERMS).statistics


def numbers(asked: QueryTables, sql: str, *, ready: bool = False) -> Numbers:
    """Return what an engine collects for a question, whatever the order of rows."""
    found = [asked.collect(query) for query in statistics(sql, ready=ready)]
    return [Counter(tuple(sorted(row.items())) for row in table.to_pylist()) for table in found]


def stored(opened: Mapping[str, object], engine: Callable[[Any], Any] = open_source) -> dict[str, StoredTable]:
    """Return the tables as an engine opened them."""
    return {name: StoredTable(engine(source), CATALOG[name].schema) for name, source in opened.items()}


def held(opened: Mapping[str, StoredTable]) -> dict[str, StoredTable]:
    """Return tables whose rows are held ready."""
    return {name: replace(each, ready=ready_rows(READY[name])) for name, each in opened.items()}


def differing(asked: QueryTables, expected: Mapping[str, Numbers], sqls: Sequence[str] = QUESTIONS) -> list[str]:
    """Return the questions that come out differently; several are asked at once."""
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda sql: numbers(asked, sql), sqls))
    return [sql for sql, each in zip(sqls, found, strict=True) if each != expected[sql]]


def truth(*, extreme: bool, sqls: Sequence[str]) -> dict[str, Numbers]:
    """Return what DuckDB computes from frames."""
    with warehouse(stored(tables(extreme=extreme))) as asked:
        return {sql: numbers(asked, sql) for sql in sqls}


@pytest.fixture(scope="module")
def expected() -> dict[str, Numbers]:
    return truth(extreme=True, sqls=(*QUESTIONS, *MORE, *LIMITED, *NOT_IN_POSTGRES))


@pytest.fixture(scope="module")
def moderate() -> dict[str, Numbers]:
    """What is expected of rows without numbers so large or small that text does not hold them."""
    return truth(extreme=False, sqls=QUESTIONS)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("parquet")
    for name, table in tables().items():
        pq.write_table(table, folder / f"{name}.parquet")
    return {name: folder / f"{name}.parquet" for name in tables()}


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("csv")
    for name, table in tables(extreme=False).items():
        pc.write_csv(table, folder / f"{name}.csv")
    return {name: folder / f"{name}.csv" for name in tables()}


@pytest.fixture(scope="module")
def spark_asked(parquet: dict[str, Path], spark_engine: Engine) -> Iterator[QueryTables]:
    with on_spark(parquet, spark_engine) as asked:
        yield asked


def on_spark(files: Mapping[str, Path], engine: Engine, *, ready: bool = False) -> AbstractContextManager[QueryTables]:
    """Return the tables of some files on Spark, as they are or held ready."""
    from incrowd.engines.spark.engine import SparkEngine
    from incrowd.engines.sql.spark import spark_warehouse

    assert isinstance(engine, SparkEngine)
    opened = stored(files, engine.open)
    return spark_warehouse(engine.session, held(opened) if ready else opened)


@pytest.fixture
def postgres_asked(postgres: str) -> Iterator[QueryTables]:
    from incrowd.engines.sql.postgres import open_server_rows, postgres_warehouse

    addresses = {name: load(postgres, name, table) for name, table in tables().items()}
    with postgres_warehouse(stored(addresses, lambda source: open_server_rows(source, DEFAULTS))) as asked:
        yield asked


def test_every_question_finds_rows_to_count(expected: dict[str, Numbers]) -> None:
    assert len(QUESTIONS) >= 40
    for sql, found in expected.items():
        assert all(found), sql


def test_rows_that_are_ready_are_asked_as_the_table_is(expected: dict[str, Numbers]) -> None:
    """Listed texts are grouped by codes there, and whole numbers are added up as such; here, by texts and doubles."""
    with warehouse(held(stored(tables()))) as asked:
        texts = [asked._text(tree) for sql in expected for tree in statistics(sql, ready=True)]
        assert [sql for sql, found in expected.items() if numbers(asked, sql, ready=True) != found] == []
    assert sum(', code" AS TEXT) AS' in text for text in texts) > 9
    assert sum("SUM(CASE WHEN" in text for text in texts) > 2


def test_parquet_is_asked_as_frames_are(parquet: dict[str, Path], expected: dict[str, Numbers]) -> None:
    with warehouse(stored(parquet)) as asked:
        assert asked.views == set(parquet)
        assert differing(asked, expected) == []


def test_text_is_asked_as_frames_are(csv: dict[str, Path], moderate: dict[str, Numbers]) -> None:
    with warehouse(stored(csv)) as asked:
        assert differing(asked, moderate) == []


@pytest.mark.parametrize("kind", ["folder", "arrow", "duckdb", "sqlite"])
def test_every_other_source_is_asked_as_frames_are(kind: str, tmp_path: Path, moderate: dict[str, Numbers]) -> None:
    """Each question here reads columns of other types: whole numbers, decimals, text, dates, booleans."""
    opened = dict[str, object]()
    for name, table in tables(extreme=False).items():
        (tmp_path / name).mkdir()
        opened[name] = kinds.LOCAL[kind](table, tmp_path / name)
    with warehouse(stored(opened)) as asked:
        assert differing(asked, moderate, OF_EVERY_TYPE) == []


def test_spark_computes_what_duckdb_does(spark_asked: QueryTables, expected: dict[str, Numbers]) -> None:
    assert differing(spark_asked, expected, (*QUESTIONS, *MORE, *LIMITED, *NOT_IN_POSTGRES)) == []


def test_spark_interprets_text_as_duckdb_is_given_it(csv: dict[str, Path], spark_engine: Engine) -> None:
    some = QUESTIONS[3:5]
    with on_spark({name: csv[name] for name in csv}, spark_engine) as asked:
        assert differing(asked, truth(extreme=False, sqls=some), some) == []


def test_spark_adds_up_whole_numbers_of_rows_that_are_ready(
    parquet: dict[str, Path], spark_engine: Engine, expected: dict[str, Numbers]
) -> None:
    sql = "SELECT ward, smoker, COUNT(*), SUM(cost), AVG(age) FROM visits GROUP BY ward, smoker"
    assert "SUM(CASE WHEN" in statistics(sql, ready=True)[0].sql()
    with on_spark({"visits": parquet["visits"]}, spark_engine, ready=True) as asked:
        assert numbers(asked, sql, ready=True) == expected[sql]


@pytest.mark.postgres
def test_postgresql_computes_what_duckdb_does(postgres_asked: QueryTables, expected: dict[str, Numbers]) -> None:
    assert differing(postgres_asked, expected, (*QUESTIONS, *MORE, *LIMITED)) == []


@pytest.mark.parametrize("sql", LOCAL_ONLY)
def test_spark_refuses_what_it_would_spell_otherwise(spark_asked: QueryTables, sql: str) -> None:
    for query in statistics(sql):
        with pytest.raises(QueryRefused, match="only the local engine"):
            spark_asked.require(query)


@pytest.mark.postgres
def test_postgresql_refuses_what_it_would_compute_otherwise(postgres_asked: QueryTables) -> None:
    for sql in (*LOCAL_ONLY, *NOT_IN_POSTGRES):
        with pytest.raises(QueryRefused, match=r"only the local engine|local engine alone|not computed in PostgreSQL"):
            postgres_asked.require(statistics(sql)[0])


@pytest.mark.postgres
def test_no_sample_is_drawn_on_spark_or_in_postgresql(spark_asked: QueryTables, postgres_asked: QueryTables) -> None:
    for asked in (spark_asked, postgres_asked):
        with pytest.raises(QueryRefused, match="secret sample"):
            asked.require(statistics(QUESTIONS[0])[0], sampled=True)
