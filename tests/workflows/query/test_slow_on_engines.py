"""Questions whose duration one person could decide, where Spark or PostgreSQL computes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
from incrowd.engines.sql.spark import SparkWarehouse
from incrowd.errors import IncrowdError
from incrowd.queries.query import QueryTerms
from incrowd.queries.work import unit_steps
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import QueryService, open_queries
from tests import spark
from tests.postgres_tables import ask, load
from tests.queries.slow import ATTACK, KIN, WRITTEN
from tests.queries.test_work import PEOPLE, ROWS
from tests.workflows.query.test_slow_questions import outcome

LONG = 5000
ON_SPARK = Spark(master=spark.MASTER, config=spark.CONFIG)
NEIGHBORS = (True, False)
TERMS = QueryTerms(epsilon=Fraction(1, 1000))
SOME = (*KIN[: -len(WRITTEN) : 3], *WRITTEN)
ON_CLUSTER = (KIN[0], WRITTEN[1], WRITTEN[6], WRITTEN[12])
"""A join with long texts, quantiles, a membership and a union: each takes Spark a second."""


def visits(people: Sequence[int], note: str = "short note") -> dict[str, list[Any]]:
    """Return as many rows of each of these people as may be, all alike."""
    owners = [person for person in people for _ in range(ROWS)]
    rest: dict[str, list[Any]] = {"age": [50], "cost": [5.0], "ward": ["heart"], "note": [note]}
    return {"patient": owners, **{name: values * len(owners) for name, values in rest.items()}}


def table(*, victim: bool) -> pa.Table:
    """Return rows of some people, and of one more whose texts are far longer than may be."""
    parts = [visits(range(PEOPLE))] + ([visits([PEOPLE], "a" * LONG)] if victim else [])
    return pa.concat_tables([pa.table(part) for part in parts])


def policy(folder: Path, source: str, **queries: Any) -> Path:
    folder.mkdir(exist_ok=True)
    content = {
        "incrowd": 1,
        "dataset": {"name": "visits", "unit": {"column": "patient", "max_rows": ROWS}, "rows": 50_000},
        "source": source,
        "columns": {
            "patient": {"role": "identifier", "type": "integer"},
            "age": {"type": "integer", "bounds": [0, 99]},
            "cost": {"type": "decimal", "bounds": [0, 1000]},
            "ward": {"categories": ["heart", "lung"]},
            "note": {"max_length": 210},
        },
        "queries": queries,
        "budget": {"epsilon": 100, "delta": "1e-3"},
    }
    path = folder / "policy.yaml"
    path.write_text(json.dumps(content))
    return path


@contextmanager
def in_postgres(folder: Path, address: str) -> Iterator[tuple[QueryService, QueryService]]:
    """Open desks for two tables of a database that differ in one person."""
    sources = [load(address, f"visits_{int(victim)}", table(victim=victim)) for victim in NEIGHBORS]
    files = [
        policy(folder / str(number), source, pushdown=True, table="visits") for number, source in enumerate(sources)
    ]
    with ExitStack() as stack:
        first, second = (stack.enter_context(open_queries([load_policy(file)])) for file in files)
        yield first, second


@contextmanager
def on_spark(folder: Path) -> Iterator[tuple[QueryService, QueryService]]:
    files = []
    for victim in NEIGHBORS:
        path = folder / f"{victim}.parquet"
        pq.write_table(table(victim=victim), path)
        files.append(policy(folder / str(victim), str(path)))
    with ExitStack() as stack:
        opened = (stack.enter_context(open_queries([load_policy(file)], settings=ON_SPARK)) for file in files)
        first, second = opened
        yield first, second


def passed_postgres(plan: dict[str, Any]) -> Iterator[float]:
    """Yield how many rows an operator of PostgreSQL gave or threw away, and each below it."""
    thrown = sum(plan.get(f"Rows Removed by {kind}", 0) for kind in ("Filter", "Join Filter"))
    yield (plan["Actual Rows"] + thrown) * plan["Actual Loops"]
    for child in plan.get("Plans", ()):
        yield from passed_postgres(child)


def bound(service: QueryService, sql: str) -> object:
    """Return how much work a question is at most, or why it is refused."""
    try:
        return service.prepare(QueryRequest(sql, TERMS)).steps
    except IncrowdError as problem:
        return str(problem)


def check_bound(service: QueryService, sql: str, passed: Callable[[exp.Query], Iterator[float]]) -> None:
    """Raise AssertionError if more rows pass an operator than the bound on a question's work allows."""
    for tree in service.prepare(QueryRequest(sql, TERMS)).planned.statistics:
        assert 0 < max(passed(tree)) * 20 <= unit_steps(tree, service.planner.catalog) * (PEOPLE + 1), sql


@pytest.mark.postgres
def test_postgresql_shows_nothing_of_a_person_by_bound_time_reply_or_rows(tmp_path: Path, postgres: str) -> None:
    with in_postgres(tmp_path, postgres) as services:
        found = {sql: [outcome(service, sql) for service in services] for sql in (ATTACK, *SOME)}
        assert [sql for sql, (first, second) in found.items() if first != second] == []
        assert found[ATTACK][0][0] == "QueryRefused"
        answered = [sql for sql, (first, _) in found.items() if isinstance(first[0], int)]
        assert len(answered) > 20
        warehouse = services[0].planner.tables
        assert isinstance(warehouse, PostgresWarehouse)

        def passed(tree: exp.Query) -> Iterator[float]:
            text = warehouse.text(tree).replace(":", r"\:")
            ((plan,),) = ask(postgres, f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {text}")
            return passed_postgres(plan[0]["Plan"])

        for sql in answered:
            check_bound(services[0], sql, passed)


def passed_spark(frame: Any) -> Iterator[float]:
    """Yield how many rows each operator of Spark gave: those of the plan as it was run in the end."""
    frame.collect()
    waiting = [frame._jdf.queryExecution().executedPlan()]
    while waiting:
        plan = waiting.pop()
        if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
            waiting.append(plan.executedPlan())
            continue
        if plan.getClass().getSimpleName().endswith("QueryStageExec"):
            waiting.append(plan.plan())
            continue
        metrics = plan.metrics()
        if metrics.contains("numOutputRows"):
            yield metrics.apply("numOutputRows").value()
        children = plan.children()
        waiting += [children.apply(number) for number in range(children.size())]


def test_spark_shows_nothing_of_a_person_by_bound_time_reply_or_rows(tmp_path: Path, spark_engine: Engine) -> None:
    del spark_engine  # the session that the desks find
    with on_spark(tmp_path) as services:
        bounds = {sql: [bound(service, sql) for service in services] for sql in SOME}
        assert [sql for sql, (first, second) in bounds.items() if first != second] == []
        warehouse = services[0].planner.tables
        assert isinstance(warehouse, SparkWarehouse)
        for sql in ON_CLUSTER:
            first, second = (outcome(service, sql) for service in services)
            assert first == second
            check_bound(services[0], sql, lambda tree: passed_spark(warehouse.session.sql(warehouse._text(tree))))
