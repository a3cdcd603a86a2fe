"""Each classical protection does what it says, and the attack that its label names breaks it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from incrowd.accounting.accountant import epsilon
from incrowd.core.loss import Syntactic
from incrowd.core.schema import Column, Schema
from incrowd.core.steps.step import fold
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.classical_answers import AnswerClassically, PerturbedCopy, RandomSample, SizeControl, protection_of
from incrowd.queries.query import AggregateKind, Catalog, Relation
from incrowd.queries.query_sets import QuerySet, plain_query

PAY = {place: Fraction(1000 + 37 * place) for place in range(20)}


def asked(places: range | list[int], kind: AggregateKind = AggregateKind.SUM, text: str = "q") -> QuerySet:
    values = {place: Fraction(1) if kind is AggregateKind.ROWS else PAY[place] for place in places}
    return QuerySet(text, kind, len(PAY), values, "pay")


def test_a_classical_answer_has_a_form_and_no_epsilon() -> None:
    step = AnswerClassically.of("SELECT COUNT(*) FROM t", SizeControl(5))
    guarantee = fold((step,), Unit())
    assert isinstance(guarantee.loss, Syntactic)
    assert dict(guarantee.loss.parameters) == {"k": "5"}
    assert epsilon(guarantee.loss, 1e-6).value == math.inf


def test_sets_of_allowed_size_are_answered_exactly() -> None:
    control = SizeControl(3)
    assert control.answer(asked(range(3))) == sum(PAY[place] for place in range(3))
    assert control.answer(asked(range(17), AggregateKind.MEAN)) == sum(PAY[place] for place in range(17)) / 17
    for places in (range(2), range(18), range(0)):
        with pytest.raises(QueryRefused, match="fewer than 3 rows"):
            control.answer(asked(places))


def test_a_copy_stays_the_same_and_stays_within_its_width() -> None:
    copy = PerturbedCopy(Fraction(50))
    moved = []
    for place, pay in PAY.items():
        value = copy.answer(asked([place]))
        assert value is not None
        assert value == copy.answer(asked([place], text="the same in other words"))
        assert 0 < abs(value - pay) <= 50
        moved.append(value - pay)
    assert min(moved) < 0 < max(moved)
    assert copy.answer(asked(range(20), AggregateKind.ROWS)) == 20
    assert copy.answer(replace(asked([3]), secret=b"another secret")) != copy.answer(asked([3]))


def test_a_copy_holds_nothing_that_is_computed_from_columns() -> None:
    with pytest.raises(QueryRefused, match="only columns of the table"):
        PerturbedCopy(Fraction(50)).answer(QuerySet("q", AggregateKind.SUM, 20, PAY, None))


def test_samples_of_differently_written_questions_average_to_the_truth() -> None:
    """The attack: each way to write the question is one more draw."""
    sample, truth = RandomSample(Fraction(3, 4)), PAY[7]
    answers = [sample.answer(asked([7], text=f"way {way}")) for way in range(2000)]
    assert set(answers) == {0, truth * Fraction(4, 3)}
    # The share of draws that hold the row is binomial: six standard deviations are 0.058.
    share = sum(1 for answer in answers if answer) / len(answers)
    assert abs(share - 0.75) < 0.058


def test_the_same_question_has_the_same_sample() -> None:
    sample = RandomSample(Fraction(1, 2))
    assert sample.answer(asked(range(20))) == sample.answer(asked(range(20)))
    assert sample.answer(asked([])) == 0
    assert sample.answer(asked([], AggregateKind.MEAN)) is None


@pytest.mark.parametrize(
    "written", ["", "audited=5", "size-control", "size-control=0", "size-control=1/2", "perturbed-copy=0",
                "random-sample=1", "random-sample=0", "noise=1"]
)  # fmt: skip
def test_what_is_no_protection_is_bad_input(written: str) -> None:
    with pytest.raises(InvalidParameter):
        protection_of(written)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sex, COUNT(*) FROM staff GROUP BY sex",
        "SELECT COUNT(*), COUNT(*) + 1 FROM staff",
        "SELECT COUNT(*) + 1 FROM staff",
        "SELECT MODE(sex) FROM staff",
        "SELECT COUNT(*) FROM (SELECT sex FROM staff)",
        "SELECT COUNT(*) FROM staff LIMIT 1",
        "SELECT COUNT(*) FROM staff HAVING COUNT(*) > 5",
        "SELECT sex FROM staff",
    ],
)
def test_only_one_number_about_one_table_is_answered(sql: str) -> None:
    staff = Relation("staff", Schema((Column("sex"),)), "staff")
    with pytest.raises(QueryRefused):
        plain_query(sql, Catalog((staff,)))
