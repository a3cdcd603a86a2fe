"""Where only so many rows or groups of each person take part, that is said beside the price and the answer."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from incrowd.queries.answer import Answer
from incrowd.queries.query import QueryTerms
from incrowd.queries.steps.query import BoundContribution
from incrowd.verifier.check import Problem
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.query.recompute import recomputed_plan
from incrowd.workflows.query.request import BatchRequest, QueryRequest
from incrowd.workflows.query.service import open_queries

COUNT = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country"
COUNTRIES = ["DE", "FR", "IT", "PL"]
PEOPLE = 3000
CAPS = "Numbers are of the capped table: at most 4 rows of each person in visits, and at most 2 groups of each person."
PAID = QueryTerms(epsilon=Fraction(4))


def policy_of(folder: Path, **changes: Any) -> Policy:
    rows = {"person": [n for n in range(PEOPLE) for _ in COUNTRIES], "country": COUNTRIES * PEOPLE}
    pq.write_table(pa.table(rows), folder / "visits.parquet")
    told: dict[str, Any] = {
        "incrowd": 1,
        "dataset": {"name": "visits", "unit": {"column": "person", "max_rows": 4}},
        "source": str(folder / "visits.parquet"),
        "columns": {"person": {"role": "identifier", "type": "integer"}, "country": {"categories": COUNTRIES}},
        "queries": {"max_groups": 2},
        "budget": {"epsilon": 20, "delta": "1e-6"},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }
    return load_policy(told | changes)


def test_of_four_equal_countries_none_is_missing_and_the_caps_are_said(tmp_path: Path) -> None:
    """Version 1 showed 3,000 people of two countries and nobody of the others, without a word."""
    with open_queries([policy_of(tmp_path)]) as service:
        assert service.price(QueryRequest(COUNT, PAID)).notes == (CAPS,)
        answered = service.ask(QueryRequest(COUNT, PAID))
        found = {row["country"]: row["n"] for row in answered.answer.rows()}
        assert all(abs(found[country] - PEOPLE / 2) < 300 for country in COUNTRIES)
        assert answered.answer.note == CAPS
        (bound,) = (step for step in answered.certificate.steps if isinstance(step, BoundContribution))
        assert (bound.max_rows, bound.max_groups) == ({"visits": 4}, 2)
        assert CAPS in bound.sentence
        again = service.ask(QueryRequest(COUNT, PAID))
        assert again.repeated
        assert again.answer.note == CAPS
        both = service.ask(BatchRequest((COUNT, "SELECT COUNT(*) AS n FROM visits"), PAID))
        assert [answer.note for answer in both.answers] == [
            CAPS,
            CAPS.replace(", and at most 2 groups of each person", ""),
        ]


def test_plans_of_capped_questions_are_made_again_from_their_certificates(tmp_path: Path) -> None:
    policy = policy_of(tmp_path)
    with open_queries([policy]) as service:
        alone = service.ask(QueryRequest(COUNT, PAID)).certificate
        both = service.ask(BatchRequest((COUNT, "SELECT COUNT(*) AS n FROM visits"), PAID)).certificate
    for certificate in (alone, both):
        made = recomputed_plan(certificate, policy)
        assert not isinstance(made, Problem)
        assert (made.steps, made.guarantee, made.claims) == (
            certificate.steps,
            certificate.guarantee,
            certificate.claims,
        )


def test_an_answer_that_was_kept_without_a_note_is_read() -> None:
    plain = {"answer": 1, "confidence": "0.95", "columns": [{"name": "n", "type": "integer", "values": [7]}]}
    assert Answer.from_json(plain).note == ""
    assert Answer.from_json(plain).to_json() == plain


def test_where_a_row_is_a_unit_nothing_is_capped_and_nothing_said(tmp_path: Path) -> None:
    with open_queries([policy_of(tmp_path, dataset={"name": "visits"})]) as service:
        answered = service.ask(QueryRequest(COUNT, PAID))
    assert answered.answer.note == ""
    assert "note" not in answered.answer.to_json()
