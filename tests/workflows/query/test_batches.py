"""Several questions at once: one charge, answers in their order, the same again for nothing, and refusals by number."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from incrowd.accounting.budget import Allowance, Amount
from incrowd.engines.sql.duckdb import Warehouse
from incrowd.errors import InvalidParameter, QuestionRefused, Refused, SourceUnreadable
from incrowd.queries.batch import Batch
from incrowd.queries.question import QueryTerms
from incrowd.workflows.query import service as desk_module
from incrowd.workflows.query.batches import plan_together
from incrowd.workflows.query.request import AskingTogether
from incrowd.workflows.query.tables import declared_units
from tests.workflows.query.test_service import COUNT, asking, desk_of

ALL, OLD = "SELECT COUNT(*) AS n FROM people", "SELECT COUNT(*) AS n FROM people WHERE age > 64"
MEAN, MEANS = "SELECT AVG(age) AS a FROM people", "SELECT sex, AVG(age) AS a FROM people GROUP BY sex"


def several(*questions: str, analyst: str | None = None, epsilon: str = "1") -> AskingTogether:
    return AskingTogether(questions, QueryTerms(epsilon=Fraction(epsilon)), analyst)


def test_each_question_has_its_answer_in_its_place_and_the_same_again_is_free(tmp_path: Path) -> None:
    with desk_of(tmp_path) as desk:
        first = desk.ask_batch(several(ALL, COUNT, "select count(*) as n from PEOPLE", OLD))
        assert [len(answer.rows()) for answer in first.answers] == [1, 4, 1, 1]
        assert first.answers[0] is first.answers[2]
        assert desk.ledger.standing("people").totals.spent == Amount.up(1, 0)
        again = desk.ask_batch(several(ALL, COUNT, OLD))
        assert (again.repeated, again.cost, again.certificate) == (True, Amount(), first.certificate)
        assert again.answers == (first.answers[0], first.answers[1], first.answers[3])
        assert desk.price_batch(several(ALL, COUNT, OLD)).repeated
        assert desk.certificate(first.certificate.id) == first.certificate
        assert desk.ledger.standing("people").totals.charges == 1
        assert not desk.ask(asking(ALL)).repeated, "one of them alone is another question"


def test_the_price_of_several_tells_each_of_them_and_shows_others_as_if_new(tmp_path: Path) -> None:
    with desk_of(tmp_path) as desk:
        before = desk.price_batch(several(OLD, ALL, OLD, analyst="bob"))
        old, everyone, again = (each.question for each in before.each)
        assert old == again != everyone
        assert [len(each.expected) for each in before.each] == [1, 1, 1]
        desk.ask_batch(several(OLD, ALL, analyst="ann"))
        after = desk.price_batch(several(OLD, ALL, OLD, analyst="bob"))
        assert (after.repeated, after.cost) == (False, before.cost)
        assert desk.price_batch(several(OLD, ALL, analyst="ann")).repeated


def test_a_batch_is_planned_for_each_asker_so_that_nobody_sees_by_the_time_what_others_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[int] = []

    def counted(*given: Any) -> Batch:
        planned.append(len(given))
        return plan_together(*given)

    monkeypatch.setattr(desk_module, "plan_together", counted)
    with desk_of(tmp_path) as desk:
        for analyst, plans in (("ann", 1), ("ann", 1), ("bob", 2), (None, 3), ("ann", 3)):
            desk.price_batch(several(OLD, ALL, analyst=analyst))
            assert len(planned) == plans


def test_who_has_not_paid_for_the_answers_pays_from_the_own_allowance(tmp_path: Path) -> None:
    with desk_of(tmp_path, queries={}) as desk:
        desk.ledger.register(desk.bonds["people"].declaration)
        for analyst in ("ann", "bob"):
            desk.ledger.allow("people", Allowance.of(analyst, "1"), "owner", "a study")
        first = desk.ask_batch(several(ALL, OLD, analyst="ann"))
        assert desk.ask_batch(several(ALL, OLD, analyst="bob")).answers == first.answers
        assert [desk.budget(each)["people"]["spent"]["epsilon"] for each in ("ann", "bob")] == ["1", "1"]
        assert desk.ledger.standing("people").totals.spent == Amount.up(1, 0)
        with pytest.raises(Refused, match="cid has no allowance"):
            desk.ask_batch(several(ALL, OLD, analyst="cid"))


@pytest.mark.parametrize(
    ("questions", "match"),
    [
        ((ALL, "SELECT COUNT(*) FROM nothing"), "^question 2: "),
        ((ALL, ALL, "SELECT age FROM people"), "^question 3: "),
        ((ALL, "SELECT age, COUNT(*) AS n FROM people GROUP BY age", "SELECT 1"), "^question 3: "),
        ((ALL, "SHOW TABLES"), "^question 2: "),
        ((ALL, f"EXPLAIN PRIVACY {ALL}"), "^question 2: "),
        ((ALL, f"{ALL}; {OLD}"), "^question 2: "),
        ((), "at least one question"),
    ],
)
def test_the_question_that_is_refused_is_named_and_nothing_is_charged(
    tmp_path: Path, questions: tuple[str, ...], match: str
) -> None:
    with desk_of(tmp_path) as desk:
        before = desk.ledger.chain.head()
        for attempt in (desk.price_batch, desk.ask_batch):
            with pytest.raises((InvalidParameter, Refused), match=match):
                attempt(several(*questions))
        assert desk.ledger.chain.head() == before


def test_several_are_held_to_the_cost_and_the_work_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk_of(tmp_path, queries={"most_epsilon": "0.5"}) as desk:
        with pytest.raises(Refused, match=r"may cost 0\.5"):
            desk.price_batch(several(ALL, OLD))
        one, other, both = (
            desk.prepare_batch(several(*each, epsilon="0.1")).steps for each in ((MEAN,), (MEANS,), (MEAN, MEANS))
        )
        assert both == one + other
        monkeypatch.setattr("incrowd.queries.work.MOST_STEPS", max(one, other) // declared_units(desk.policies[0]))
        desk.batches.kept.clear()
        desk.price_batch(several(MEANS, epsilon="0.1"))
        with pytest.raises(QuestionRefused, match=r"^all questions together: the duration of this query"):
            desk.price_batch(several(MEAN, MEANS, epsilon="0.1"))


def test_what_fails_after_the_charge_stays_paid_and_is_concluded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise SourceUnreadable("the rows could not be read.")

    with desk_of(tmp_path) as desk:
        monkeypatch.setattr(Warehouse, "collect_together", fail)
        with pytest.raises(SourceUnreadable, match="the charge is not refunded"):
            desk.ask_batch(several(ALL, OLD))
        (lost,) = desk.ledger.unfinished()
        assert lost.concluded
        assert not desk.open.names
