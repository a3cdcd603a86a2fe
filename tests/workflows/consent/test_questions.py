"""Questions see the rows of people who consent at the moment they are asked, and of nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from incrowd.core.steps.around import gate_of
from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import Decided
from incrowd.queries.answer import Answer
from incrowd.queries.query import QueryTerms
from incrowd.verifier.check import Verdict
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.request import BatchRequest, QueryRequest
from incrowd.workflows.query.service import QueryService, open_queries
from incrowd.workflows.query.tables import admission_to, gated_rows
from incrowd.workflows.verify.verify import verify
from tests.consents import QUESTIONS, Consented, consented, known_people
from tests.policies import changed, written

ROWS = known_people()
HALF = [f"p{number}" for number in range(0, 600, 2)]
COUNT = "SELECT COUNT(*) AS n FROM people"
MANY = QueryTerms(epsilon=Fraction(5000))
RICH = changed(QUESTIONS, budget={"epsilon": 10**6, "delta": 0})


@contextmanager
def service(made: Consented, data: object = ROWS) -> Iterator[QueryService]:
    with open_queries([made.policy], data) as opened:
        yield opened


def count(opened: QueryService, epsilon: int = 5000) -> int:
    """Ask for so much that the answer is off by one with a chance below e^-2500."""
    return first(opened.ask(QueryRequest(COUNT, QueryTerms(epsilon=Fraction(epsilon)))).answer)


def first(answer: Answer) -> int:
    """Return the first number of an answer."""
    return int(answer.table.column(0)[0].as_py())


def sources(folder: Path) -> dict[str, Any]:
    pcsv.write_csv(ROWS, folder / "people.csv")
    pq.write_table(ROWS, folder / "people.parquet")
    return {"frame": ROWS, "csv": str(folder / "people.csv"), "parquet": str(folder / "people.parquet")}


@pytest.mark.parametrize("source", ["frame", "csv", "parquet"])
def test_only_rows_of_people_who_consented_are_seen(tmp_path: Path, source: str) -> None:
    made = consented(RICH, tmp_path, HALF)
    with service(made, sources(tmp_path)[source]) as opened:
        assert count(opened) == len(HALF)


def test_a_withdrawal_counts_from_the_next_question_on_and_kept_answers_stay(tmp_path: Path) -> None:
    made = consented(RICH, tmp_path, HALF)
    with service(made) as opened:
        assert count(opened, 5000) == len(HALF)
        made.decide(Decided.WITHDRAW, HALF[:50])
        assert count(opened, 5001) == len(HALF) - 50
        assert count(opened, 5000) == len(HALF)  # the declared version is the same, and so is the answer
        assert opened.ask(QueryRequest(COUNT, MANY)).repeated


def test_a_batch_is_gated_and_a_certificate_of_an_answer_makes_the_same_plan(tmp_path: Path) -> None:
    made = consented(RICH, tmp_path, HALF)
    with service(made) as opened:
        together = opened.ask(BatchRequest((COUNT, "SELECT COUNT(*) AS m FROM people WHERE sex = 'F'"), MANY))
        alone = opened.ask(QueryRequest(COUNT, MANY)).certificate
    women = sum(row["sex"] == "F" and row["id"] in set(HALF) for row in ROWS.to_pylist())
    found = [first(answer) for answer in together.answers]
    assert sorted(found) == sorted([len(HALF), women])
    for certificate in (together.certificate, alone):
        gate = gate_of(certificate.steps)
        assert gate is not None
        assert gate.settled
        file = tmp_path / f"{certificate.id}.json"
        file.write_text(certificate.to_text())
        findings = verify(file, policy=made.policy).findings
        assert [each for each in findings if each.verdict is Verdict.FAILED and each.about != "files"] == []


def test_a_secret_sample_is_drawn_among_those_who_consented(tmp_path: Path) -> None:
    made = consented(changed(QUESTIONS, budget={"epsilon": 10**6, "delta": "1e-3"}), tmp_path, HALF[:1])
    with service(made) as opened:
        admission = admission_to(opened.planner.policies)
        rows = gated_rows(opened.planner.tables, opened.planner.catalog, "people", admission)
        from sqlglot import exp

        from incrowd.engines.sql.engine import SampledTable

        class Everything:
            def at(self, start: int, stop: int) -> Any:
                return [True] * (stop - start)

        query = exp.select("COUNT(*) AS n").from_(exp.to_table("people"))
        drawn = SampledTable("people", Everything())  # type: ignore[arg-type]
        assert rows.collect(query, drawn)["n"].to_pylist() == [1]
        assert rows.collect(query)["n"].to_pylist() == [1]
        assert opened.planner.tables.collect(query)["n"].to_pylist() == [600]


def test_tables_of_the_same_people_are_gated_too_and_public_ones_are_not(tmp_path: Path) -> None:
    made = consented(RICH, tmp_path, HALF)
    folder = made.policy.folder
    visits = pa.table({"who": ["p0", "p0", "p1", "p2"], "ward": ["a", "b", "a", "a"]})
    pcsv.write_csv(visits, tmp_path / "visits.csv")
    pcsv.write_csv(pa.table({"ward": ["a", "b"]}), tmp_path / "wards.csv")
    tables = {
        "visits": {
            "source": "../visits.csv",
            "unit": "who",
            "max_rows": 2,
            "columns": {"who": {"role": "identifier"}, "ward": {}},
        },
        "wards": {"source": "../wards.csv", "public": True, "columns": {"ward": {}}},
    }
    policy = load_policy(written(changed(RICH, tables=tables), folder))
    with open_queries([policy], ROWS) as opened:
        answer = opened.ask(QueryRequest("SELECT COUNT(*) AS n FROM visits", MANY)).answer
        assert first(answer) == 3


def test_what_a_gate_cannot_do_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    made = consented(RICH, tmp_path, HALF)
    strict = load_policy(written(changed(RICH, dataset__unit__more="refuse"), made.policy.folder))
    with pytest.raises(InvalidParameter, match="did not consent"), open_queries([strict], ROWS):
        pass
