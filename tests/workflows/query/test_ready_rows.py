"""Rows that are held ready are those that the tree makes of the table as it is, and no more than the bound allows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from incrowd.engines.sql.duckdb import Warehouse
from incrowd.errors import QueryRefused
from incrowd.queries.language.periods import reading_periods
from incrowd.queries.language.row_query import Context
from incrowd.queries.language.tables import table_rows
from incrowd.queries.query import Catalog, QueryTerms
from incrowd.queries.work import unit_steps
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import QueryService, open_queries
from tests.queries.slow import KIN
from tests.queries.test_work import passed

ROWS = 6
PEOPLE = 4
GREEDY = 3000
"""So many rows has somebody who may have six."""


def table() -> pa.Table:
    """Four people with as many rows as may be, one with far more, rows of nobody, and values outside their bounds."""
    owners: list[int | None] = [each for each in range(PEOPLE) for _ in range(ROWS)] + [99] * GREEDY + [None] * 5
    size = len(owners)
    return pa.table(
        {
            "patient": pa.array(owners, pa.int64()),
            "age": pa.array([place % 130 - 5 for place in range(size)], pa.int64()),
            "cost": pa.array([float(place % 7) if place % 11 else None for place in range(size)], pa.float64()),
            "ward": [("heart", "lung", "moon", None)[place % 4] for place in range(size)],
            "note": ["a" * (place % 300) for place in range(size)],
        }
    )


@pytest.fixture(scope="module", params=["parquet", "csv"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryService]:
    folder: Path = tmp_path_factory.mktemp("ready")
    if request.param == "parquet":
        pq.write_table(table(), folder / "visits.parquet")
    else:
        table().to_pandas().astype({"patient": "Int64"}).to_csv(folder / "visits.csv", index=False)
    content: dict[str, Any] = {
        "incrowd": 1,
        "dataset": {"name": "visits", "unit": {"column": "patient", "max_rows": ROWS}},
        "source": str(folder / f"visits.{request.param}"),
        "columns": {
            "patient": {"role": "identifier", "type": "integer"},
            "age": {"type": "integer", "bounds": [0, 99]},
            "cost": {"type": "decimal", "bounds": [0, 1000]},
            "ward": {"categories": ["heart", "lung"]},
            "note": {"max_length": 210},
        },
        "queries": {},
        "budget": {"epsilon": 10**6, "delta": "1e-3"},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }
    with open_queries([load_policy(content)]) as found:
        yield found


def multiset(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), key=repr)


def test_rows_are_ready_as_the_tree_makes_them(service: QueryService) -> None:
    ready = service.planner.catalog["visits"]
    trees = [
        table_rows(each, Context(service.planner.catalog, None)).query for each in (ready, replace(ready, ready=False))
    ]
    first, second = (multiset(service.planner.tables.collect(tree)) for tree in trees)
    assert first == second
    assert len(first) == ROWS * (PEOPLE + 1)


def test_they_hang_on_no_question_and_are_read_once(service: QueryService, monkeypatch: pytest.MonkeyPatch) -> None:
    service.load()
    monkeypatch.setattr(Warehouse, "_read", lambda *_: pytest.fail("the rows were read again"))
    answer = service.ask(QueryRequest("SELECT COUNT(*) AS n FROM visits", QueryTerms(epsilon=Fraction(1000)))).answer
    assert abs(answer.columns[0].values[0].as_py() - ROWS * (PEOPLE + 1)) <= 6


@pytest.mark.parametrize("number", [number for number in range(len(KIN)) if number % 3 == 0])
def test_rows_beyond_those_of_a_person_pass_no_operator(service: QueryService, number: int) -> None:
    """Whoever brings three thousand rows makes nobody's question longer than six would."""
    service.load()
    asking = QueryRequest(KIN[number], QueryTerms(epsilon=Fraction(1, 100)))
    with suppress(QueryRefused):  # what is too much work for one person is refused
        check_passed(service, service.prepare(asking).planned.statistics, service.planner.catalog)


def check_passed(service: QueryService, statistics: Sequence[exp.Query], catalog: Catalog) -> None:
    assert isinstance(service.planner.tables, Warehouse)
    for tree in statistics:
        found = (
            service.planner.tables.base.cursor()
            .execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {tree.sql('duckdb')}")
            .fetchall()
        )
        most = max(passed(json.loads(found[0][1])))
        assert most * 20 <= unit_steps(tree, catalog) * (PEOPLE + 1)


MARCH, SPRING = "day BETWEEN '2025-03-01' AND '2025-03-31'", "day >= '2025-03-01' AND day < '2025-06-01'"


@contextmanager
def by_period(folder: Path, more: str | None, per: str | None = None) -> Iterator[QueryService]:
    """Serve the same people with days of spring, of whom one has thousands of rows on the last of May, and in March."""
    content: dict[str, Any] = {
        "incrowd": 1,
        "dataset": {"name": "visits", "unit": {"column": "patient", "max_rows": ROWS, "more": more, "per": per}},
        "columns": {
            "patient": {"role": "identifier", "type": "integer"},
            "age": {"type": "integer", "bounds": [0, 99], "outside": "drop"},
            "cost": {"type": "decimal", "bounds": [0, 1000]},
            "ward": {"categories": ["heart", "lung"]},
            "day": {"type": "date", "bounds": ["2025-01-01", "2025-12-31"], "outside": "drop"},
        },
        "period": {"column": "day", "every": "month", "first": "2025-01", "last": "2025-12"},
        "queries": {},
        "budget": {"epsilon": 10**6},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }
    visits = table()
    days = [("2025-03-02", "2025-04-30", "2025-05-31", None, "2024-03-02")[n % 5] for n in range(len(visits))]
    with open_queries([load_policy(content, folder=folder)], visits.append_column("day", pa.array(days))) as service:
        service.load()
        yield service


@pytest.mark.parametrize(("more", "per"), [(None, None), ("drop", None), (None, "period")])
def test_rows_of_some_periods_are_those_of_the_table_and_no_more_pass(
    tmp_path: Path, more: str | None, per: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with by_period(tmp_path, more, per) as service:
        monkeypatch.setattr(Warehouse, "_read", lambda *_: pytest.fail("the rows were read again"))
        for where in (MARCH, SPRING) if per is None else (MARCH,):
            sql = f"SELECT ward, COUNT(*) AS n, SUM(age) AS s FROM visits WHERE {where} GROUP BY ward"
            catalog, read = reading_periods(sql, service.planner.catalog)
            assert read is not None
            planned = service.prepare(QueryRequest(sql, QueryTerms(epsilon=Fraction(1, 100)))).planned
            check_passed(service, planned.statistics, catalog)
            held = table_rows(catalog["visits"], Context(catalog, None)).query
            rows = multiset(service.planner.tables.collect(held))
            monkeypatch.undo()
            plain = table_rows(replace(catalog["visits"], by_period=False), Context(catalog, None)).query
            assert rows == multiset(service.planner.tables.collect(plain))
            assert rows
