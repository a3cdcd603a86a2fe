"""A question that is made of several is priced, charged, certified, kept and planned again as one."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.core.steps.step import walk
from incrowd.errors import IncrowdError, InvalidParameter, QueryRefused
from incrowd.queries import work
from incrowd.queries.query import QueryTerms
from incrowd.queries.steps.query import Combine, Understand
from incrowd.queries.work import unit_steps
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.query.request import BatchRequest, QueryRequest
from incrowd.workflows.query.service import publish_answer
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.verify.verify import verify
from tests.contract.forging import fitting
from tests.workflows.query.test_published import plain_of
from tests.workflows.query.test_service import ROWS, service_of

BY_SEX, BY_TOWN = (f"SELECT {key}, COUNT(*) AS n FROM people GROUP BY {key}" for key in ("sex", "town"))
UNION = f"{BY_SEX} UNION ALL SELECT 'all', COUNT(*) FROM people ORDER BY n DESC"
OPEN = f"SELECT t.town, t.n, t.n / (SELECT COUNT(*) FROM people) AS part FROM ({BY_TOWN}) t ORDER BY part"
COLUMNS = {"sex": {"categories": ["F", "M"]}, "age": {"type": "integer", "bounds": [0, 120]}, "town": {}}
PAID = {UNION: QueryTerms(epsilon=Fraction(2)), OPEN: QueryTerms(epsilon=Fraction(2), delta=Fraction(1, 10**7))}


@pytest.fixture(scope="module", params=PAID)
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Policy]:
    """An answer in a folder, which was asked, charged once and asked again; and its policy."""
    folder = tmp_path_factory.mktemp("people")
    pq.write_table(ROWS.append_column("town", pa.array(["A", "A", "B", "C"] * 50)), folder / "people.parquet")
    sql, paid = request.param, PAID[request.param]
    with service_of(folder, columns=COLUMNS, budget={"epsilon": 5, "delta": "1e-6"}) as service:
        price = service.price(QueryRequest(sql, paid))
        assert float(price.cost.epsilon) == pytest.approx(2, rel=0.01)
        assert {each.output for each in price.expected} <= {"n", "part"}
        answered = service.ask(QueryRequest(sql, paid))
        assert answered.cost == price.cost
        again = service.ask(QueryRequest(sql.lower(), paid))
        assert again.repeated
        assert again.answer == answered.answer
        assert service.budgets.status("people").totals.charges == 1
        publish_answer(answered, service.budgets.ledger, Destination(folder / "out", "csv"))
        found = verify(folder / "out", ledger=service.budgets.ledger, policy=service.planner.policies[0])
        assert found.passed, found
        assert found.complete
        return folder / "out", service.planner.policies[0]


def test_the_certificate_names_the_question_and_its_parts(published: tuple[Path, Policy]) -> None:
    folder, _ = published
    steps = verify(folder).certificate.steps
    (combine,) = (each for each in steps if isinstance(each, Combine))
    parts = [each.question for each in walk(steps) if isinstance(each, Understand)]
    assert len(parts) == 2
    assert combine.sentence.startswith(f"From these answers alone, as {combine.question} asks: ")


FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another column": lambda plain: plain["steps"][-1].update(columns=["sex", "m"]),
    "no combination": lambda plain: plain["steps"].pop(),
    "two combinations": lambda plain: plain["steps"].append(plain["steps"][-1]),
    "a combination first": lambda plain: plain["steps"].reverse(),
    "a part less": lambda plain: plain["steps"][0]["questions"].pop(),
    "less confidence": lambda plain: plain["steps"][-1].update(confidence="0.5"),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_certificate_that_tells_another_combination_is_found_out(
    published: tuple[Path, Policy], change: Callable[[dict[str, Any]], Any]
) -> None:
    folder, _ = published
    assert not _passes(folder, change)


def test_another_question_over_the_same_parts_is_found_out_with_the_policy(published: tuple[Path, Policy]) -> None:
    folder, policy = published
    told = plain_of(folder)["steps"][-1]["question"]
    for changed in (f"{told} LIMIT 9", f"{told} LIMIT"):
        assert not _passes(folder, partial(_ask, question=changed), policy=policy)


def _ask(plain: dict[str, Any], question: str) -> None:
    plain["steps"][-1].update(question=question)


def _passes(folder: Path, change: Callable[[dict[str, Any]], Any], **held: Any) -> bool:
    """Return whether a changed certificate passes; the folder is left as it was."""
    file = folder / "certificate.json"
    true = file.read_text(encoding="utf-8")
    plain = plain_of(folder)
    change(plain)
    file.write_text(json.dumps(fitting(plain)), encoding="utf-8")
    try:
        return verify(folder, **held).passed
    except IncrowdError:
        return False
    finally:
        file.write_text(true, encoding="utf-8")


def test_what_is_refused_costs_nothing(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        before = service.budgets.ledger.chain.head()
        with pytest.raises(QueryRefused, match="ask UNION ALL alone"):
            service.ask(BatchRequest((UNION, BY_SEX), QueryTerms(epsilon=Fraction(1))))
        with pytest.raises(InvalidParameter, match="one epsilon for all"):
            service.ask(QueryRequest(UNION, QueryTerms(error=Fraction(5))))
        with pytest.raises(InvalidParameter, match="different types"):
            service.ask(
                QueryRequest(f"{BY_SEX} UNION ALL SELECT 1, COUNT(*) FROM people", QueryTerms(epsilon=Fraction(1)))
            )
        assert service.budgets.ledger.chain.head() == before


def test_the_work_of_all_parts_is_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with service_of(tmp_path) as service:
        alone = service.prepare(QueryRequest(BY_SEX, QueryTerms(epsilon=Fraction(1))))
        both = service.prepare(QueryRequest(UNION, QueryTerms(epsilon=Fraction(1))))
        steps = [
            sum(unit_steps(each, service.planner.catalog) for each in asked.planned.statistics)
            for asked in (alone, both)
        ]
        monkeypatch.setattr(work, "MOST_STEPS", steps[1] - 1)
        assert steps[0] < steps[1]
        service.prepare(QueryRequest(f"{BY_SEX} LIMIT 1", QueryTerms(epsilon=Fraction(1))))
        with pytest.raises(QueryRefused, match="the duration of this query"):
            service.prepare(QueryRequest(f"{UNION} LIMIT 1", QueryTerms(epsilon=Fraction(1))))
