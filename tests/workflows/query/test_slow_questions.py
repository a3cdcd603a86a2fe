"""Questions whose duration one person could decide: reply and time are the same with that person and without."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import pytest

from incrowd.errors import IncrowdError
from incrowd.queries.query import QueryTerms
from incrowd.web.answering import shown_after
from incrowd.web.settings import Settings
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import QueryService, open_queries
from tests.queries.slow import ATTACK, KIN

VICTIM = "7,50,5.0,heart," + "a" * 5000 + "\n"
OTHERS = "".join(f"{person},{20 + person},{person}.5,lung,short note\n" for person in range(5) for _ in range(2))
HEAD = "patient,age,cost,ward,note\n"


def policy(folder: Path, rows: str) -> Path:
    folder.mkdir()
    (folder / "visits.csv").write_text(HEAD + rows)
    content = {
        "incrowd": 1,
        "dataset": {"name": "visits", "unit": {"column": "patient", "max_rows": 6}, "rows": 50_000},
        "source": "visits.csv",
        "columns": {
            "patient": {"role": "identifier"},
            "age": {"type": "integer", "bounds": [0, 99]},
            "cost": {"type": "decimal", "bounds": [0, 1000]},
            "ward": {"categories": ["heart", "lung"]},
            "note": {"max_length": 210},
        },
        "queries": {},
        "budget": {"epsilon": 10},
    }
    path = folder / "policy.yaml"
    path.write_text(json.dumps(content))
    return path


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[QueryService, QueryService]]:
    home = tmp_path_factory.mktemp("slow")
    files = (policy(home / "with", OTHERS + VICTIM * 6), policy(home / "without", OTHERS))
    with ExitStack() as stack:
        first, second = (stack.enter_context(open_queries([load_policy(file)])) for file in files)
        yield first, second


def outcome(service: QueryService, sql: str) -> tuple[object, ...]:
    """Return how much work a question is, when its reply shows, and of which kind it is."""
    try:
        prepared = service.prepare(QueryRequest(sql, QueryTerms(epsilon=Fraction(1, 1000))))
        shown = shown_after(prepared.steps, Settings())
        columns = prepared.begin().finish().answer.columns
        return prepared.steps, shown, [column.name for column in columns], [len(column.values) for column in columns]
    except IncrowdError as problem:
        return type(problem).__name__, str(problem)


@pytest.mark.parametrize("sql", KIN)
def test_bound_time_and_reply_are_the_same_with_and_without_a_person(
    services: tuple[QueryService, QueryService], sql: str
) -> None:
    first, second = (outcome(service, sql) for service in services)
    assert first == second


def test_the_question_of_the_attack_is_refused_before_it_is_charged(
    services: tuple[QueryService, QueryService],
) -> None:
    spent = [service.budgets.report(None) for service in services]
    for service in services:
        kind, words = outcome(service, ATTACK)
        assert (kind, "the duration of this query" in str(words)) == ("QueryRefused", True)
    assert [service.budgets.report(None) for service in services] == spent


def test_texts_are_read_as_far_as_declared(services: tuple[QueryService, QueryService]) -> None:
    asked = (
        services[0]
        .prepare(QueryRequest("SELECT MAX(LENGTH(note)) AS n FROM visits", QueryTerms(epsilon=Fraction(1))))
        .planned
    )
    (query,) = asked.statistics
    found = services[0].planner.tables.collect(query).to_pylist()
    assert max(row["_place"] for row in found) <= 210
