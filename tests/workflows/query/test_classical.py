"""Classical answers from end to end: the attacks of the literature work, and nothing private lies beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.errors import BudgetExceeded, QueryRefused, Refused
from incrowd.queries.classical_answers import Audited, PerturbedCopy, Protection, RandomSample, SizeControl
from incrowd.queries.query import QueryTerms
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.classical import ask_classical
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import QueryService, open_queries

STAFF = pa.table(
    {
        "sex": ["F", "M"] * 10,
        "dept": ["law", "art", "art", "law", "bio"] * 4,
        "age": [20 + place for place in range(20)],
        "pay": [1000 + 37 * place for place in range(20)],
    }
)
TEACHING = {"unbounded": "made-up people, for a lecture"}


@contextmanager
def service_of(folder: Path, budget: dict[str, Any] | None = None, staff: pa.Table = STAFF) -> Iterator[QueryService]:
    pq.write_table(staff, folder / "staff.parquet")
    told = {
        "incrowd": 1,
        "dataset": {"name": "staff"},
        "columns": {
            "sex": {"categories": ["F", "M"]},
            "dept": {"categories": ["law", "art", "bio"]},
            "age": {"type": "integer", "bounds": [0, 120]},
            "pay": {"type": "integer", "bounds": [0, 100000], "role": "sensitive"},
        },
        "queries": {},
        "budget": budget or TEACHING,
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }
    with open_queries([load_policy(told)], folder / "staff.parquet") as service:
        yield service


def value(service: QueryService, sql: str, protection: Protection) -> float:
    found = ask_classical(service, sql, protection).value
    assert found is not None
    return found


def test_a_tracker_breaks_size_control(tmp_path: Path) -> None:
    """Denning, Denning and Schwartz 1979: with a set T of middling size, q(C) = q(C or T) + q(C or not T) − q(all)."""
    control = SizeControl(4)
    victim, tracker = "(age = 27)", "(sex = 'F')"
    with service_of(tmp_path) as service:

        def ask(condition: str) -> float:
            return value(service, f"SELECT SUM(pay) FROM staff WHERE {condition}", control)

        with pytest.raises(QueryRefused, match="fewer than 4"):
            ask(victim)
        everything = ask(tracker) + ask(f"NOT {tracker}")
        assert ask(f"{victim} OR {tracker}") + ask(f"{victim} OR NOT {tracker}") - everything == 1000 + 37 * 7


def test_an_audited_history_stops_the_tracker(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        women = value(service, "SELECT SUM(pay) FROM staff WHERE sex = 'F'", Audited())
        assert women == sum(1000 + 37 * place for place in range(0, 20, 2))
        with pytest.raises(QueryRefused, match="would determine"):
            ask_classical(service, "SELECT SUM(pay) FROM staff WHERE sex = 'F' OR age = 27", Audited())
        assert value(service, "SELECT COUNT(*) FROM staff WHERE sex = 'F' OR age = 27", Audited()) == 11
        assert value(service, "SELECT SUM(pay) FROM staff WHERE sex = 'F'", Audited()) == women
    with service_of(tmp_path) as service, pytest.raises(QueryRefused, match="would determine"):  # after a restart
        ask_classical(service, "SELECT SUM(pay) FROM staff WHERE sex = 'F' AND age <> 20", Audited())


def test_sums_of_other_rows_are_not_audited_together(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        ask_classical(service, "SELECT SUM(pay) FROM staff", Audited())
    with service_of(tmp_path, staff=STAFF.slice(1)) as service, pytest.raises(QueryRefused, match="rows changed"):
        ask_classical(service, "SELECT SUM(pay) FROM staff", Audited())


@pytest.mark.parametrize(
    ("sql", "match"),
    [
        ("SELECT SUM(pay) FROM staff WHERE pay > 1300", "must not depend on a sensitive column"),
        ("SELECT COUNT(*) FROM staff WHERE pay > 1300", "must not depend on a sensitive column"),
        ("SELECT SUM(age) FROM staff", "role: sensitive"),
        ("SELECT AVG(pay) FROM staff", "role: sensitive"),
        ("SELECT SUM(pay + 0) FROM staff", "role: sensitive"),
    ],
)
def test_what_an_auditor_cannot_follow_is_refused(tmp_path: Path, sql: str, match: str) -> None:
    with service_of(tmp_path) as service, pytest.raises(QueryRefused, match=match):
        ask_classical(service, sql, Audited())


def test_copies_and_samples_are_kept_for_good(tmp_path: Path) -> None:
    sql = "SELECT SUM(pay) FROM staff WHERE dept = 'law'"
    protections = (PerturbedCopy(Fraction(100)), RandomSample(Fraction(1, 2)))
    with service_of(tmp_path) as service:
        first = [value(service, sql, each) for each in protections]
    with service_of(tmp_path) as service:
        assert [value(service, sql, each) for each in protections] == first
        assert abs(first[0] - value(service, sql, SizeControl(1))) <= 8 * 100


def test_nothing_classical_is_given_beside_a_private_budget(tmp_path: Path) -> None:
    budgets: list[dict[str, Any]] = [{"epsilon": 1}, {"epsilon": 1, **TEACHING}]
    for number, budget in enumerate(budgets):
        folder = tmp_path / str(number)
        folder.mkdir()
        with service_of(folder, budget) as service, pytest.raises(Refused, match="never given beside private ones"):
            ask_classical(service, "SELECT COUNT(*) FROM staff", SizeControl(5))


def test_nothing_private_is_answered_beside_classical_answers(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        answer = ask_classical(service, "SELECT COUNT(*) FROM staff WHERE age < 30", SizeControl(5))
        assert answer.value == 10
        assert "tracker" in answer.broken_by
        assert service.budgets.ledger.standing("staff").totals.unbounded == 1
        with pytest.raises(BudgetExceeded):
            service.ask(QueryRequest("SELECT COUNT(*) FROM staff", QueryTerms(epsilon=Fraction(1))))
        assert service.budgets.ledger.check().ok


def test_large_tables_get_no_such_answers(tmp_path: Path) -> None:
    many = pa.concat_tables([STAFF] * 11)
    with service_of(tmp_path, staff=many) as service, pytest.raises(Refused, match="more than 200 rows"):
        ask_classical(service, "SELECT COUNT(*) FROM staff", Audited())
