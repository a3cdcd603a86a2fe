"""The overlap guard: crowds do not compose, whatever the columns, the policy or the process."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from incrowd.accounting.budget import Budget
from incrowd.accounting.ledger.composition import footprint
from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import THE_ROWS, Crowd, Loss, NoisyWhenSmall, Pure, RobustlySampled, Sampled, Sequence, Syntactic
from incrowd.core.terms import Assumption, Theorem
from incrowd.core.unit import Unit
from incrowd.errors import DoesNotCompose, SampleReused

TENTH = Fraction(1, 10)
ROBUST = RobustlySampled(TENTH, TENTH, 0, TENTH, Crowd(30), THE_ROWS)
DRAWN_HERE = RobustlySampled(TENTH, TENTH, 0, TENTH, Crowd(30))
PRIVATE = Pure(Fraction(1, 2))
BUDGET = Budget.of(10, "1e-3", "tables by an old rule")


def guarantee(loss: Loss) -> Guarantee:
    delta = Fraction(0) if isinstance(loss, (Pure, Crowd, Syntactic)) else Fraction(1, 10**6)
    return Guarantee(
        loss,
        Unit(),
        (Theorem("a-theorem", "a theorem"),),
        frozenset({Assumption("an-assumption", "an assumption")}),
        delta,
    )


@pytest.fixture
def address(tmp_path: Path) -> str:
    place = f"sqlite:///{tmp_path}/ledger.sqlite"
    Ledger.create(place).register(Declaration("survey", Unit(), BUDGET))
    return place


@pytest.mark.parametrize("first", [Crowd(5), NoisyWhenSmall(5, Fraction(1)), Syntactic("k-anonymity")])
@pytest.mark.parametrize("second", [Crowd(7), NoisyWhenSmall(9, Fraction(1))])
def test_a_second_crowd_is_refused_with_the_counterexample_and_the_way_out(
    address: str, first: Loss, second: Loss
) -> None:
    Ledger.open(address).charge(guarantee(first), "survey", "one")
    with pytest.raises(DoesNotCompose) as refused:
        Ledger.open(address).charge(guarantee(second), "survey", "two")  # another process, the same ledger
    assert "a table by {v, w} together says k + 1, a table by v says k" in str(refused.value)
    assert "incrowd coarsen" in str(refused.value)


def test_a_preview_refuses_what_a_charge_would(address: str) -> None:
    Ledger.open(address).charge(guarantee(Crowd(5)), "survey", "one")
    with pytest.raises(DoesNotCompose, match="k \\+ 1"):
        Ledger.open(address).preview({"survey": guarantee(Crowd(5))})


def test_the_same_people_under_another_name_are_no_way_around(address: str) -> None:
    ledger = Ledger.open(address)
    ledger.charge(guarantee(Crowd(5)), "survey", "one")
    ledger.register(Declaration("other", Unit(), None, same_people_as="survey"))
    with pytest.raises(DoesNotCompose):
        ledger.charge(guarantee(Crowd(5)), "other", "two")


@pytest.mark.parametrize("second", [ROBUST, PRIVATE, Sampled(TENTH, Crowd(30)), Crowd(5), DRAWN_HERE])
def test_rows_that_are_their_own_sample_have_one_release_ever(address: str, second: Loss) -> None:
    Ledger.open(address).charge(guarantee(ROBUST), "survey", "one")
    with pytest.raises(SampleReused, match="only one they have"):
        Ledger.open(address).charge(guarantee(second), "survey", "two")


def test_no_account_is_carved_out_of_rows_that_are_their_own_sample(address: str) -> None:
    ledger = Ledger.open(address)
    ledger.charge(guarantee(ROBUST), "survey", "one")
    with pytest.raises(SampleReused):
        ledger.carve("survey", "answers", Fraction(1, 100), Fraction(1, 10**9))


@pytest.mark.parametrize("first", [PRIVATE, Sampled(TENTH, Crowd(30)), Crowd(5), DRAWN_HERE])
def test_rows_from_which_something_was_released_are_no_longer_a_sample(address: str, first: Loss) -> None:
    ledger = Ledger.open(address)
    ledger.charge(guarantee(first), "survey", "one")
    with pytest.raises(SampleReused, match="share one drawing"):
        ledger.charge(guarantee(ROBUST), "survey", "two")


def test_a_biased_sample_that_was_drawn_here_composes(address: str) -> None:
    ledger = Ledger.open(address)
    ledger.charge(guarantee(DRAWN_HERE), "survey", "one")
    ledger.charge(guarantee(DRAWN_HERE), "survey", "two")
    assert ledger.standing("survey").totals.charges == 2


def test_one_guarantee_cannot_join_rows_that_are_a_sample_with_anything_else() -> None:
    assert footprint(ROBUST).whole
    for joined in (Sequence((ROBUST, PRIVATE)), Sequence((ROBUST, DRAWN_HERE))):
        with pytest.raises(SampleReused, match="one release, ever"):
            footprint(joined)
