"""Hundreds of questions of people who mean harm: refused before a row is read, or answered as guaranteed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.plan import Plan
from incrowd.engines.sql.dialects import replace_tables
from incrowd.engines.sql.duckdb import Warehouse
from incrowd.engines.sql.engine import ready_name
from incrowd.errors import IncrowdError, SourceUnreadable
from incrowd.noise.system import SystemCoins
from incrowd.queries.language.tables import ready_rows
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import Measurement
from incrowd.queries.query import Query, QueryTerms, Relation
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query import planning
from incrowd.workflows.query.service import open_queries
from incrowd.workflows.release import run as road
from incrowd.workflows.release.perform import ChargeTarget, ExecutedPlan, performing
from tests.queries.hostile.growing import GROWING
from tests.queries.hostile.judging import glimpsed, judged, look, planned
from tests.queries.hostile.worlds import Worlds, worlds

ANSWERED = {"yes": {"person", "row"}, "no": set[str](), "people": {"person"}, "rows": {"row"}}
"""What the word before a question says: in which worlds it is answered."""

THOROUGH = 2

Family = list[tuple[str, str]]


def families() -> dict[str, Family]:
    """Return the questions that are written down, each with its word, family by family."""
    text = (Path(__file__).parent / "hostile" / "questions.txt").read_text(encoding="utf-8")
    found: dict[str, Family] = {}
    for line in text.splitlines():
        if line.startswith("# "):
            found[line[2:]] = []
        elif line:
            word, sql = line.split(maxsplit=1)
            found[next(reversed(found))].append((word, sql))
    return found


QUESTIONS = families()


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    with worlds(tmp_path_factory.mktemp("people"), "person") as opened:
        yield opened


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    with worlds(tmp_path_factory.mktemp("rows"), "row") as opened:
        yield opened


def test_there_are_many_questions_and_none_twice() -> None:
    asked = [sql for family in QUESTIONS.values() for _, sql in family]
    assert len(asked) >= 500
    assert len(set(asked)) == len(asked)
    assert min(map(len, QUESTIONS.values())) >= 9


def test_neighboring_worlds_are_declared_alike(people: Worlds, rows: Worlds) -> None:
    for pair in (people, rows):
        assert pair.with_victim.planner.catalog == pair.without.planner.catalog


@pytest.mark.parametrize("family", QUESTIONS)
def test_no_question_tells_whether_one_person_is_there(people: Worlds, family: str) -> None:
    """What is refused, and the first answers of a family, go all the way through ledger and certificate."""
    answered = 0
    for word, sql in QUESTIONS[family]:
        verdict = judged(people, sql) if word == "no" or answered < THOROUGH else glimpsed(people, sql)
        assert not verdict.complaints, (sql, verdict)
        assert (verdict.kind == "answered") == ("person" in ANSWERED[word]), (sql, verdict.kind)
        answered += verdict.kind == "answered"


@pytest.mark.parametrize("family", QUESTIONS)
def test_no_question_tells_whether_one_row_is_there(rows: Worlds, family: str) -> None:
    """What is refused in both worlds is refused for the same reasons: a few of each family are enough."""
    refused = [(word, sql) for word, sql in QUESTIONS[family] if word == "no"]
    for word, sql in [*(each for each in QUESTIONS[family] if each[0] != "no"), *refused[::4]]:
        verdict = glimpsed(rows, sql)
        assert not verdict.complaints, (sql, verdict)
        assert (verdict.kind == "answered") == ("row" in ANSWERED[word]), (sql, verdict.kind)


@pytest.mark.parametrize("name", GROWING)
def test_questions_that_grow_are_refused_or_answered_in_time(people: Worlds, name: str) -> None:
    assert not glimpsed(people, GROWING[name]).complaints


@pytest.mark.parametrize("name", GROWING)
def test_no_plan_outgrows_its_question(people: Worlds, name: str) -> None:
    plan = planned(people.without, GROWING[name])
    if isinstance(plan, Measurement):
        assert len(plan.question.rows.sql("duckdb")) < 2000 + 40 * len(GROWING[name])


def test_nested_functions_are_refused_with_a_way_out(people: Worlds) -> None:
    for name in ("clamped again and again", "roots of roots", "fractions of fractions", "cases of cases"):
        assert "subquery" in str(planned(people.without, GROWING[name]))
    assert isinstance(planned(people.without, GROWING["clamped in subqueries"]), Measurement)


def _planted(monkeypatch: pytest.MonkeyPatch, change: Callable[[Query], Query]) -> None:
    """Let the planner misunderstand questions."""
    monkeypatch.setattr(planning, "interpret", lambda *given: change(understand(*given)))


def _unbounded(question: Query, relation: Relation) -> Query:
    """Let a person take part with all rows: the table is not read as it is ready, but made so without the limit."""
    whole = exp.Subquery(this=ready_rows(relation).transform(_without_limit))
    return replace(question, rows=replace_tables(question.rows, {ready_name(relation.name): whole}))


def _without_limit(node: exp.Expression) -> exp.Expression:
    return exp.true() if isinstance(node, exp.LTE) and "_place" in node.sql() else node


def _failing(question: Query) -> Query:
    """Let a cast of private text fail in the engine."""
    return replace(question, rows=cast("exp.Query", question.rows.transform(_strict)))


def _strict(node: exp.Expression) -> exp.Expression:
    return exp.Cast(this=node.this, to=node.args["to"]) if isinstance(node, exp.TryCast) else node


def test_the_suite_sees_a_person_with_too_many_rows(people: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT COUNT(*) AS all_of_them FROM people"
    assert not judged(people, sql + " WHERE TRUE").complaints
    _planted(monkeypatch, lambda question: _unbounded(question, people.without.planner.catalog["people"]))
    assert any("further than the noise" in complaint for complaint in judged(people, sql).complaints)


def test_the_suite_sees_a_failure_that_depends_on_rows(people: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    _planted(monkeypatch, _failing)
    found = judged(people, "SELECT AVG(CLAMP(CAST(zip AS DOUBLE), 0, 7)) FROM people").complaints
    assert any("the worlds differ" in complaint for complaint in found)
    assert any("after rows were read" in complaint for complaint in found)


@pytest.mark.parametrize(
    ("error", "complaint"),
    [
        (SourceUnreadable("Could not convert 'canary' to INT"), "shows a value"),
        (ZeroDivisionError("division by zero"), "on purpose"),
    ],
)
def test_the_suite_sees_values_and_faults_in_errors(
    people: Worlds, monkeypatch: pytest.MonkeyPatch, error: Exception, complaint: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(planning, "interpret", fail)
    assert any(complaint in found for found in judged(people, "SELECT COUNT(*) FROM people WHERE age > 7").complaints)


def test_the_suite_sees_rows_that_are_read_before_they_are_paid_for(
    people: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def eager(
        plan: Plan, rows: Warehouse, ledger: Ledger, target: ChargeTarget, appeared: Callable[[], bool]
    ) -> Iterator[ExecutedPlan]:
        plan.release(rows, SystemCoins())
        with performing(plan, rows, ledger, target, appeared) as executed:
            yield executed

    monkeypatch.setattr(road, "performing", eager)
    found = judged(people, "SELECT COUNT(*) FROM people WHERE age > 8").complaints
    assert any("before the charge" in complaint for complaint in found)


def test_a_damaged_value_is_missing_and_every_question_is_answered(tmp_path: Path) -> None:
    """A text that is not Unicode, of somebody who is 41: no condition may decide whether the question fails."""
    raw = pa.array([b"10001", b"\xff\xfe", b"10003"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    pq.write_table(pa.table({"zip": texts, "age": [7, 41, 9]}), tmp_path / "people.parquet", row_group_size=1)
    policy = load_policy(
        {
            "incrowd": 1,
            "dataset": {"name": "people"},
            "columns": {"zip": {}, "age": {"type": "integer", "bounds": [0, 120]}},
            "queries": {},
            "budget": {"epsilon": 10},
            "ledger": f"sqlite:///{tmp_path}/ledger.sqlite",
        }
    )
    with open_queries([policy], tmp_path / "people.parquet") as opened:
        told = set()
        for condition in ("age = 41 AND zip = 'x'", "age = 7 AND zip = 'x'", "age = 9"):
            seen = look(opened, f"SELECT COUNT(*) FROM people WHERE {condition}", QueryTerms(epsilon=Fraction(1)))
            assert seen.charged
            told.add(seen.kind)
    assert told == {"answered"}


def test_messages_are_the_same_on_every_day_and_name_no_machine(people: Worlds) -> None:
    for family in QUESTIONS.values():
        for word, sql in family[:3]:
            if word == "no":
                with pytest.raises(IncrowdError) as raised:
                    understand(sql, people.without.planner.catalog)
                assert not re.search(r"0x[0-9a-f]{6}|/tmp/|/home/|site-packages", str(raised.value)), sql
