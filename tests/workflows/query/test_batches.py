"""Several questions at once: one charge, answers in their order, the same again for nothing, and refusals by number."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from incrowd.accounting.budget import Allowance, Amount
from incrowd.engines.sql.duckdb import Warehouse
from incrowd.errors import InvalidParameter, QueryRefused, Refused, SourceUnreadable
from incrowd.queries.batch import Batch
from incrowd.queries.query import QueryTerms
from incrowd.workflows.query import planning
from incrowd.workflows.query.planning import plan_together
from incrowd.workflows.query.request import BatchRequest
from incrowd.workflows.query.tables import declared_units
from tests.workflows.query.test_service import COUNT, asking, service_of

ALL, OLD = "SELECT COUNT(*) AS n FROM people", "SELECT COUNT(*) AS n FROM people WHERE age > 64"
MEAN, MEANS = "SELECT AVG(age) AS a FROM people", "SELECT sex, AVG(age) AS a FROM people GROUP BY sex"


def several(*questions: str, analyst: str | None = None, epsilon: str = "1") -> BatchRequest:
    return BatchRequest(questions, QueryTerms(epsilon=Fraction(epsilon)), analyst)


def test_each_question_has_its_answer_in_its_place_and_the_same_again_is_free(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        first = service.ask(several(ALL, COUNT, "select count(*) as n from PEOPLE", OLD))
        assert [len(answer.rows()) for answer in first.answers] == [1, 4, 1, 1]
        assert first.answers[0] is first.answers[2]
        assert service.budgets.ledger.standing("people").totals.spent == Amount.up(1, 0)
        again = service.ask(several(ALL, COUNT, OLD))
        assert (again.repeated, again.cost, again.certificate) == (True, Amount(), first.certificate)
        assert again.answers == (first.answers[0], first.answers[1], first.answers[3])
        assert service.price(several(ALL, COUNT, OLD)).repeated
        assert service.history.certificate(first.certificate.id) == first.certificate
        assert service.budgets.ledger.standing("people").totals.charges == 1
        assert not service.ask(asking(ALL)).repeated, "one of them alone is another question"


def test_the_price_of_several_tells_each_of_them_and_shows_others_as_if_new(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        before = service.price(several(OLD, ALL, OLD, analyst="bob"))
        old, everyone, again = (each.question for each in before.queries)
        assert old == again != everyone
        assert [len(each.expected) for each in before.queries] == [1, 1, 1]
        service.ask(several(OLD, ALL, analyst="ann"))
        after = service.price(several(OLD, ALL, OLD, analyst="bob"))
        assert (after.repeated, after.cost) == (False, before.cost)
        assert service.price(several(OLD, ALL, analyst="ann")).repeated


def test_a_batch_is_planned_for_each_asker_so_that_nobody_sees_by_the_time_what_others_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[int] = []

    def counted(*given: Any) -> Batch:
        planned.append(len(given))
        return plan_together(*given)

    monkeypatch.setattr(planning, "plan_together", counted)
    with service_of(tmp_path) as service:
        for analyst, plans in (("ann", 1), ("ann", 1), ("bob", 2), (None, 3), ("ann", 3)):
            service.price(several(OLD, ALL, analyst=analyst))
            assert len(planned) == plans


def test_who_has_not_paid_for_the_answers_pays_from_the_own_allowance(tmp_path: Path) -> None:
    with service_of(tmp_path, queries={}) as service:
        service.budgets.ledger.register(service.budgets.bonds["people"].declaration)
        for analyst in ("ann", "bob"):
            service.budgets.ledger.allow("people", Allowance.of(analyst, "1"), "owner", "a study")
        first = service.ask(several(ALL, OLD, analyst="ann"))
        assert service.ask(several(ALL, OLD, analyst="bob")).answers == first.answers
        assert [service.budgets.report(each)["people"]["spent"]["epsilon"] for each in ("ann", "bob")] == ["1", "1"]
        assert service.budgets.ledger.standing("people").totals.spent == Amount.up(1, 0)
        with pytest.raises(Refused, match="cid has no allowance"):
            service.ask(several(ALL, OLD, analyst="cid"))


@pytest.mark.parametrize(
    ("questions", "match"),
    [
        ((ALL, "SELECT COUNT(*) FROM nothing"), "^query 2: "),
        ((ALL, ALL, "SELECT age FROM people"), "^query 3: "),
        ((ALL, "SELECT age, COUNT(*) AS n FROM people GROUP BY age", "SELECT 1"), "^query 3: "),
        ((ALL, "SHOW TABLES"), "^query 2: "),
        ((ALL, f"EXPLAIN PRIVACY {ALL}"), "^query 2: "),
        ((ALL, f"{ALL}; {OLD}"), "^query 2: "),
        ((), "at least one query"),
    ],
)
def test_the_question_that_is_refused_is_named_and_nothing_is_charged(
    tmp_path: Path, questions: tuple[str, ...], match: str
) -> None:
    with service_of(tmp_path) as service:
        before = service.budgets.ledger.chain.head()
        for attempt in (service.price, service.ask):
            with pytest.raises((InvalidParameter, Refused), match=match):
                attempt(several(*questions))
        assert service.budgets.ledger.chain.head() == before


def test_several_are_held_to_the_cost_and_the_work_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with service_of(tmp_path, queries={"most_epsilon": "0.5"}) as service:
        with pytest.raises(Refused, match=r"may cost 0\.5"):
            service.price(several(ALL, OLD))
        one, other, both = (
            service.prepare(several(*each, epsilon="0.1")).steps for each in ((MEAN,), (MEANS,), (MEAN, MEANS))
        )
        assert both == one + other
        monkeypatch.setattr(
            "incrowd.queries.work.MOST_STEPS", max(one, other) // declared_units(service.planner.policies[0])
        )
        service.planner.batches.clear()
        service.price(several(MEANS, epsilon="0.1"))
        with pytest.raises(QueryRefused, match=r"^all queries together: the duration of this query"):
            service.price(several(MEAN, MEANS, epsilon="0.1"))


def test_what_fails_after_the_charge_stays_paid_and_is_concluded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise SourceUnreadable("the rows could not be read.")

    with service_of(tmp_path) as service:
        monkeypatch.setattr(Warehouse, "collect_together", fail)
        with pytest.raises(SourceUnreadable, match="the charge is not refunded"):
            service.ask(several(ALL, OLD))
        (lost,) = service.budgets.ledger.unfinished()
        assert lost.concluded
        assert not service.charges.names
