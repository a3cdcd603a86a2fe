"""A query service works wherever the rows are: on Spark, and in the database that holds them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from incrowd.core.table import Engine
from incrowd.engines.settings import Spark
from incrowd.engines.sql.postgres import PostgresWarehouse
from incrowd.errors import InvalidParameter, QueryFailed, QueryRefused, Refused, SourceUnreadable
from incrowd.queries.query import QueryTerms
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import QueryService, open_queries
from tests import spark
from tests.postgres_tables import ask, load

COUNT = "SELECT sex, COUNT(*) AS n, AVG(age) AS mean FROM people GROUP BY sex"
ROWS = pa.table({"sex": ["F", "M", "F", None] * 500, "age": list(range(100)) * 20})


def told(folder: Path, **changes: Any) -> dict[str, Any]:
    return {
        "incrowd": 1,
        "dataset": {"name": "people"},
        "columns": {"sex": {"categories": ["F", "M"]}, "age": {"type": "integer", "bounds": [0, 120]}},
        "queries": {},
        "budget": {"epsilon": 9, "delta": "1e-6"},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    } | changes


def asked(service: QueryService, sql: str = COUNT, **terms: Any) -> dict[object, float]:
    """Return the counts of an answer."""
    answer = service.ask(QueryRequest(sql, QueryTerms(epsilon=Fraction(4), **terms))).answer
    return {row["sex"]: row["n"] for row in answer.rows()}


def test_spark_answers_as_the_policy_or_the_caller_says(tmp_path: Path, spark_engine: Engine) -> None:
    del spark_engine  # the session that is there is used
    pq.write_table(ROWS, tmp_path / "people.parquet")
    settings = Spark(master=spark.MASTER, config=spark.CONFIG)
    with open_queries([load_policy(told(tmp_path))], tmp_path / "people.parquet", settings=settings) as service:
        found = asked(service)
        assert abs(found["F"] - 1000) < 40
        assert abs(found[None] - 500) < 40
        before = service.budgets.ledger.chain.head()
        with pytest.raises(QueryRefused, match="leave the rate out"):
            asked(service, rate=Fraction(1, 2))
        assert service.budgets.ledger.chain.head() == before, "nothing was charged"


@pytest.mark.postgres
def test_a_database_computes_what_is_asked_of_it(tmp_path: Path, postgres: str) -> None:
    source = load(postgres, "people", ROWS)
    with open_queries([load_policy(told(tmp_path, source=source, queries={"pushdown": True}))]) as service:
        assert isinstance(service.planner.tables, PostgresWarehouse)
        assert abs(asked(service)["F"] - 1000) < 40
        before = service.budgets.ledger.chain.head()
        with pytest.raises(QueryRefused, match="UPPER and LOWER are not computed in PostgreSQL"):
            asked(service, "SELECT UPPER(sex) AS sex, COUNT(*) AS n FROM people GROUP BY 1")
        assert service.budgets.ledger.chain.head() == before, "nothing was charged"


@pytest.mark.postgres
def test_the_same_rows_in_the_database_have_the_same_budget_under_another_name(tmp_path: Path, postgres: str) -> None:
    sources = [load(postgres, name, ROWS) for name in ("people", "copy")]
    for source, name in zip(sources, ("people", "others"), strict=True):
        policy = load_policy(told(tmp_path, source=source, dataset={"name": name}, queries={"pushdown": True}))
        if name == "people":
            with open_queries([policy]) as service:
                asked(service)
        else:
            with pytest.raises(Refused, match="are those of dataset people"), open_queries([policy]) as service:
                asked(service)


@pytest.mark.postgres
def test_a_question_in_the_database_reads_only_and_fails_without_data(tmp_path: Path, postgres: str) -> None:
    source = load(postgres, "people", ROWS)
    with open_queries([load_policy(told(tmp_path, source=source, queries={"pushdown": True}))]) as service:
        ask(postgres, "DROP TABLE people")
        with pytest.raises(SourceUnreadable, match="the charge is not refunded") as failure:
            asked(service)
        assert "relation" not in str(failure.value)
        assert "exist" not in str(failure.value)
        below = failure.value.__context__
        assert below is None or below.__context__ is None, "nothing of the server's own words is attached"


@pytest.mark.postgres
def test_a_database_is_stopped_when_a_question_takes_too_long(postgres: str) -> None:
    from sqlglot import parse_one

    from incrowd.core.schema import Column, Schema
    from incrowd.core.table import DEFAULTS
    from incrowd.engines.sql.engine import Limits, StoredTable
    from incrowd.engines.sql.postgres import open_server_rows, postgres_warehouse

    rows = open_server_rows(load(postgres, "people", ROWS), DEFAULTS)
    many: Any = parse_one("SELECT COUNT(*) FROM people a, people b, people c, people d", dialect="duckdb")
    known = {"people": StoredTable(rows, Schema((Column("sex"),)))}
    with (
        postgres_warehouse(known, Limits(seconds=0.3)) as stored,
        pytest.raises(QueryFailed, match="exceeded its time limit"),
    ):
        stored.collect(many)


@pytest.mark.postgres
def test_what_a_database_would_have_to_interpret_is_refused_when_it_is_opened(tmp_path: Path, postgres: str) -> None:
    texts = ROWS.set_column(1, "age", pa.array([str(age) for age in ROWS["age"].to_pylist()]))
    source = load(postgres, "people", texts)
    policy = load_policy(told(tmp_path, source=source, queries={"pushdown": True}))
    with pytest.raises(InvalidParameter, match="declared as integer and stored as text"), open_queries([policy]):
        pass


def test_pushdown_is_for_databases_and_not_for_spark(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "people.parquet")
    policy = load_policy(told(tmp_path, source=str(tmp_path / "people.parquet"), queries={"pushdown": True}))
    with (
        pytest.raises(InvalidParameter, match="all tables are in one PostgreSQL database"),
        open_queries([policy]),
    ):
        pass
    refused = pytest.raises(InvalidParameter, match="the database computes, not Spark")
    with refused, open_queries([policy], settings=Spark()):
        pass


@pytest.mark.postgres
def test_all_passes_of_a_question_see_the_same_rows(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(postgres, "people", ROWS)
    fetch = PostgresWarehouse._fetch

    def disturbed(self: PostgresWarehouse, *asked: Any) -> pa.Table:
        ask(postgres, "INSERT INTO people VALUES ('F', 30)")
        return fetch(self, *asked)

    monkeypatch.setattr(PostgresWarehouse, "_fetch", disturbed)
    with open_queries([load_policy(told(tmp_path, source=source, queries={"pushdown": True}))]) as service:
        count = exp.select(exp.alias_(exp.Count(this=exp.Star()), "n")).from_(exp.to_table("people"))
        first, *others = service.planner.tables.collect_together([count, count, count])
        assert [first.equals(other) for other in others] == [True, True]
        assert service.planner.tables.collect(count) != first
