from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import pytest

from incrowd.accounting.accountant import Spend
from incrowd.accounting.budget import Allowance, Amount, AnalystSpending, Budget
from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.status import Entry
from incrowd.core.loss import (
    THE_ROWS,
    Approximate,
    Crowd,
    Gaussian,
    Grouped,
    Loss,
    LossRule,
    Pure,
    RobustlySampled,
    Sampled,
    Sequence,
    ZeroConcentrated,
)
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import (
    BudgetExceeded,
    DoesNotCompose,
    InvalidParameter,
    LedgerUnavailable,
    MixedUnits,
    Refused,
    SampleReused,
    UnknownLoss,
)
from tests.ledgers import Prices, anonymous, approximate, create, crowd, guarantee, pure, reopen, sampled_crowd

OWNER = ("the owner", "the board agreed")


@pytest.fixture
def ledger(sqlite: str) -> Ledger:
    return create(sqlite)


def births(ledger: Ledger, budget: Budget | None, **more: object) -> None:
    ledger.register(Declaration("births", Unit(), budget, **more))  # type: ignore[arg-type]


# --- charging


def test_a_charge_is_on_disk_before_it_returns(address: str) -> None:
    ledger = create(address)
    births(ledger, Budget.of(3, "1e-7"))
    entry = ledger.charge(approximate("0.5", "1e-8"), "births", release="table 1")
    again = reopen(address)
    assert [found.kind for found in again.entries()] == ["created", "register", "charge"]
    assert list(again.entries())[-1].anchor == entry.anchor == again.show().head
    assert again.standing("births") == entry.standings[0]
    assert entry.charged[0].guarantee == approximate("0.5", "1e-8")
    assert (entry.charged[0].epsilon, entry.charged[0].rule) == (Decimal("0.5"), (LossRule.STATED,))
    assert again.check().ok


def test_a_budget_is_used_to_its_last_digit_and_no_further(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    for _ in range(10):
        ledger.charge(pure("0.1"), "births", release="r")
    assert ledger.standing("births").left == Amount()
    with pytest.raises(BudgetExceeded):
        ledger.charge(pure("1e-40"), "births", release="r")


def test_a_refusal_says_what_is_left(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    ledger.charge(pure("0.6"), "births", release="r")
    with pytest.raises(BudgetExceeded) as caught:
        ledger.charge(pure("1.2"), "births", release="r")
    assert str(caught.value).startswith("this costs epsilon 1.2; 0.4 of the budget of 1 remains.")
    assert "incrowd ledger grant" in str(caught.value)


def test_a_refusal_speaks_about_delta_too(ledger: Ledger) -> None:
    births(ledger, Budget.of(1, "1e-7"))
    ledger.charge(approximate("0.1", "6e-8"), "births", release="r")
    with pytest.raises(BudgetExceeded) as caught:
        ledger.charge(approximate("0.1", "5e-8"), "births", release="r")
    assert str(caught.value).startswith("this costs delta 5e-8; 4e-8 of the budget of 1e-7 remains.")


def test_a_refused_charge_is_written_down_and_costs_nothing(address: str) -> None:
    ledger = create(address)
    births(ledger, Budget.of(1))
    before = ledger.standing("births")
    with pytest.raises(BudgetExceeded):
        ledger.charge(pure(2), "births", release="too much", analyst="ann")
    *_, entry = ledger.entries()
    assert entry.kind == "refused"
    assert (entry.body["asked"], entry.body["error"]) == ("charge", "BudgetExceeded")
    assert entry.body["request"]["release"] == "too much"
    assert ledger.standing("births") == before
    assert ledger.check().ok


@pytest.mark.parametrize(
    ("dataset", "release", "analyst"),
    [("unheard of", "r", None), ("births", "", None), ("births", "r", " ann"), ("births", "r" * 121, None)],
)
def test_bad_input_is_an_error_and_nothing_is_written(
    ledger: Ledger, dataset: str, release: str, analyst: str | None
) -> None:
    births(ledger, Budget.of(1))
    before = ledger.show().head
    with pytest.raises(InvalidParameter):
        ledger.charge(pure(1), dataset, release=release, analyst=analyst)
    assert ledger.show().head == before


def test_a_loss_nobody_understands_is_an_error_and_nothing_is_written(sqlite: str) -> None:
    class Dear(Prices):
        def spend(self, loss: Loss, delta: Fraction, adjacency: Adjacency) -> Spend:
            raise UnknownLoss("no accountant here understands this.")

    ledger = replace(create(sqlite), price=Dear())
    births(ledger, Budget.of(1))
    before = ledger.show().head
    with pytest.raises(UnknownLoss):
        ledger.charge(pure(1), "births", release="r")
    assert ledger.show().head == before


def test_a_price_that_refuses_is_written_down(sqlite: str) -> None:
    class Strict(Prices):
        def spend(self, loss: Loss, delta: Fraction, adjacency: Adjacency) -> Spend:
            raise DoesNotCompose("blocks of a partition need added or removed rows.")

    ledger = replace(create(sqlite), price=Strict())
    births(ledger, Budget.of(1))
    with pytest.raises(DoesNotCompose):
        ledger.charge(pure(1), "births", release="r")
    *_, entry = ledger.entries()
    assert (entry.kind, entry.body["error"]) == ("refused", "DoesNotCompose")


def test_a_guarantee_to_another_unit_is_refused(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    before = ledger.show().head
    for unit in (Unit(adjacency=Adjacency.REPLACE), Unit(Kind.PERSON, column="mother_id")):
        with pytest.raises(MixedUnits, match="dataset births protects one row, added or removed"):
            ledger.charge(guarantee(Pure(Fraction(1)), unit), "births", release="r")
    assert ledger.show().head == before


# --- several datasets at once


def test_a_charge_on_several_datasets_is_all_or_nothing(address: str) -> None:
    ledger = create(address)
    births(ledger, Budget.of(3))
    ledger.register(Declaration("visits", Unit(), Budget.of(1)))
    entry = ledger.charge_together({"births": pure(1), "visits": pure("0.6")}, release="join", analyst="ann")
    assert [(part.dataset, part.epsilon) for part in entry.charged] == [
        ("births", Decimal(1)),
        ("visits", Decimal("0.6")),
    ]
    assert [standing.epsilon for standing in entry.standings] == [Decimal(1), Decimal("0.6")]
    with pytest.raises(BudgetExceeded, match="dataset visits"):
        ledger.charge_together({"births": pure(1), "visits": pure("0.6")}, release="join", analyst="ann")
    assert ledger.standing("births").epsilon == 1
    assert ledger.check().ok


def test_two_names_for_the_same_people_pay_twice_from_one_budget(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    ledger.register(Declaration("mothers", Unit(), same_people_as="births"))
    with pytest.raises(BudgetExceeded):
        ledger.charge_together({"births": pure("0.6"), "mothers": pure("0.6")}, release="join")
    entry = ledger.charge_together({"births": pure("0.5"), "mothers": pure("0.5")}, release="join")
    assert [(standing.dataset, standing.epsilon) for standing in entry.standings] == [("births", Decimal(1))]


def test_a_charge_on_no_dataset_is_an_error(ledger: Ledger) -> None:
    with pytest.raises(InvalidParameter, match="at least one dataset"):
        ledger.charge_together({}, release="r")


# --- budgets


def test_without_a_budget_the_first_release_is_the_whole_budget(address: str) -> None:
    ledger = create(address)
    births(ledger, None)
    assert ledger.standing("births").left is None
    entry = ledger.charge(approximate(2, "1e-9"), "births", release="first")
    assert entry.standings[0].terms.budget == Budget.of(2, "1e-9")
    with pytest.raises(BudgetExceeded, match=r"; 0 of "):
        ledger.charge(pure("0.001"), "births", release="second")
    ledger.grant("births", Budget.of("0.5"), *OWNER)
    ledger.charge(pure("0.5"), "births", release="second")
    assert ledger.check().ok


def test_a_grant_adds_to_the_budget_and_is_signed(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    entry = ledger.grant("births", Budget.of("0.5", "1e-9"), *OWNER)
    assert entry.standings[0].terms.budget == Budget.of("1.5", "1e-9")
    assert (entry.body["who"], entry.body["why"]) == OWNER
    with pytest.raises(InvalidParameter, match="write why"):
        ledger.grant("births", Budget.of(1), "the owner", " ")


def test_a_policy_whose_budget_differs_is_refused_with_the_way_out(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    for other in (Budget.of(2), Budget.of("0.5"), Budget.of(1, "1e-9"), Budget.of(1, unbounded="why not")):
        with pytest.raises(Refused, match="incrowd ledger grant"):
            births(ledger, other)
    assert ledger.standing("births").terms.budget == Budget.of(1)


def test_telling_the_same_again_changes_nothing(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    before = ledger.show().head
    births(ledger, Budget.of(1))
    births(ledger, None)
    assert ledger.show().head == before


def test_after_a_grant_the_old_policy_and_the_new_total_are_both_right(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    ledger.grant("births", Budget.of(1), *OWNER)
    births(ledger, Budget.of(1))
    births(ledger, Budget.of(2))
    with pytest.raises(Refused):
        births(ledger, Budget.of(3))


def test_a_dataset_has_one_unit_of_privacy(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    with pytest.raises(MixedUnits, match="declared once"):
        ledger.register(Declaration("births", Unit(adjacency=Adjacency.REPLACE), Budget.of(1)))


# --- the same rows under another name


def test_the_same_people_share_one_budget(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    ledger.register(Declaration("mothers", Unit(), None, same_people_as="births"))
    ledger.charge(pure("0.6"), "mothers", release="r")
    with pytest.raises(BudgetExceeded):
        ledger.charge(pure("0.6"), "births", release="r")
    assert ledger.standing("mothers") == ledger.standing("births")
    assert ledger.show().shared == {"mothers": "births"}


def test_sharing_goes_through_to_the_first(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    ledger.register(Declaration("mothers", Unit(), same_people_as="births"))
    ledger.register(Declaration("parents", Unit(), same_people_as="mothers"))
    assert ledger.standing("parents").dataset == "births"


def test_a_separate_dataset_needs_the_owners_reason(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    ledger.register(Declaration("deaths", Unit(), Budget.of(1), separate="another table of that database"))
    ledger.charge(pure(1), "births", release="r")
    ledger.charge(pure(1), "deaths", release="r")
    births(ledger, Budget.of(1))
    with pytest.raises(InvalidParameter, match="write why"):
        Declaration("x", Unit(), separate="")
    with pytest.raises(InvalidParameter, match="not both"):
        Declaration("x", Unit(), separate="y", same_people_as="z")


def test_a_dataset_with_its_own_budget_cannot_join_another_later(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    ledger.register(Declaration("deaths", Unit(), Budget.of(1)))
    with pytest.raises(Refused, match="budget of its own"):
        ledger.register(Declaration("deaths", Unit(), same_people_as="births"))


def test_a_dataset_becomes_known_by_its_first_charge_and_in_its_transaction(address: str) -> None:
    ledger, declared = create(address), Declaration("births", Unit(), Budget.of(1))
    before = ledger.chain.head()
    assert ledger.standing(declared).left == Amount.up(1, 0)
    assert ledger.analyst(declared, "ann") == (Amount(), None)
    assert not ledger.knows("births")
    assert ledger.chain.head() == before
    for release in ("r", "s"):
        ledger.charge_together({"births": pure("0.4")}, release, None, [declared])
    with pytest.raises(BudgetExceeded):
        ledger.charge_together({"births": pure("0.4")}, "t", None, [declared])
    assert [entry.kind for entry in ledger.entries(1)] == ["register", "charge", "charge", "refused"]
    assert ledger.standing(declared) == ledger.standing("births")
    assert ledger.check().ok


def test_a_declaration_that_does_not_fit_is_refused_with_its_charge(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    with pytest.raises(Refused, match="differs from the one in the ledger"):
        ledger.charge_together({"births": pure("0.4")}, "r", None, [Declaration("births", Unit(), Budget.of(9))])
    assert ledger.standing("births").totals.charges == 0


# --- releases without an epsilon


def test_a_release_without_an_epsilon_needs_the_owners_reason(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    for release in (anonymous(), crowd()):
        with pytest.raises(BudgetExceeded, match="unbounded"):
            ledger.charge(release, "births", release="r")


def test_without_a_budget_a_first_release_without_an_epsilon_is_refused(ledger: Ledger) -> None:
    births(ledger, None)
    with pytest.raises(BudgetExceeded, match="unbounded"):
        ledger.charge(anonymous(), "births", release="r")
    ledger.grant("births", Budget.of(0, unbounded="public register"), *OWNER)
    ledger.charge(anonymous(), "births", release="r")


def test_once_a_release_had_no_epsilon_the_total_has_none(address: str) -> None:
    ledger = create(address)
    births(ledger, Budget.of(1, unbounded="public register"))
    ledger.charge(pure("0.5"), "births", release="finite")
    entry = ledger.charge(anonymous(), "births", release="table")
    standing = entry.standings[0]
    assert standing.epsilon == Decimal("Infinity")
    assert (standing.totals.unbounded, standing.totals.spent.epsilon) == (1, Decimal("0.5"))
    assert entry.charged[0].epsilon == Decimal("Infinity")
    assert standing.to_json()["epsilon"] == "Infinity"
    assert ledger.check().ok


def test_finite_charges_are_summed_under_an_unbounded_budget_too(ledger: Ledger) -> None:
    births(ledger, Budget.of(1, unbounded="public register"))
    ledger.charge(anonymous(), "births", release="table")
    ledger.charge(pure("0.6"), "births", release="count")
    with pytest.raises(BudgetExceeded, match=r"; 0.4 of "):
        ledger.charge(pure("0.6"), "births", release="count")


def test_several_syntactic_releases_pass_under_an_unbounded_budget(ledger: Ledger) -> None:
    births(ledger, Budget.of(1, unbounded="public register"))
    for _ in range(2):
        ledger.charge(anonymous(), "births", release="table")
    assert ledger.standing("births").totals.unbounded == 2


def test_a_guarantee_that_states_too_small_a_delta_is_not_let_through_as_unbounded(ledger: Ledger) -> None:
    births(ledger, Budget.of(1, unbounded="public register"))
    with pytest.raises(BudgetExceeded, match="State a larger delta"):
        ledger.charge(guarantee(ZeroConcentrated(Fraction(1, 10))), "births", release="r")


def test_an_allowance_is_finite(ledger: Ledger) -> None:
    births(ledger, Budget.of(1, unbounded="public register"))
    ledger.allow("births", Allowance.of("ann", 1), *OWNER)
    with pytest.raises(BudgetExceeded, match="the allowance of ann is finite"):
        ledger.charge(anonymous(), "births", release="r", analyst="ann")


# --- composition


def test_a_second_crowd_without_a_sample_is_refused_under_any_budget(address: str) -> None:
    ledger = create(address)
    births(ledger, Budget.of(9, "1e-6", unbounded="public register"))
    ledger.charge(crowd(20), "births", release="histogram")
    for second in (crowd(20), crowd(1000), anonymous(), guarantee(Sequence((Crowd(5), Pure(Fraction(1)))))):
        with pytest.raises(DoesNotCompose, match="whatever its columns"):
            ledger.charge(second, "births", release="another")
    ledger.charge(pure(1), "births", release="count")
    ledger.charge(sampled_crowd(), "births", release="sampled")
    assert ledger.check().ok


def test_a_crowd_after_a_syntactic_release_is_refused(ledger: Ledger) -> None:
    births(ledger, Budget.of(9, unbounded="public register"))
    ledger.charge(anonymous(), "births", release="table")
    with pytest.raises(DoesNotCompose):
        ledger.charge(crowd(), "births", release="histogram")


def test_two_releases_from_one_named_sample_are_refused(address: str) -> None:
    ledger = create(address)
    births(ledger, Budget.of(9, "1e-6"))
    ledger.charge(sampled_crowd("2025"), "births", release="one")
    with pytest.raises(SampleReused, match="fresh sample"):
        ledger.charge(sampled_crowd("2025"), "births", release="two")
    ledger.charge(sampled_crowd("2026"), "births", release="two")
    ledger.charge(sampled_crowd(), "births", release="three")
    ledger.charge(sampled_crowd(), "births", release="four")
    assert ledger.check().ok


def test_rows_that_were_themselves_a_sample_have_one_release_ever(address: str) -> None:
    ledger = create(address)
    births(ledger, Budget.of(9, "1e-6"))
    rows = RobustlySampled(Fraction(1, 10), Fraction(1, 5), 0, Fraction(1, 5), Crowd(20), THE_ROWS)
    ledger.charge(guarantee(rows, delta="1e-9"), "births", release="one")
    with pytest.raises(SampleReused, match="the only one"):
        ledger.charge(pure(1), "births", release="two")


def test_a_sample_belongs_to_its_people(ledger: Ledger) -> None:
    births(ledger, Budget.of(9, "1e-6"))
    ledger.register(Declaration("mothers", Unit(), same_people_as="births"))
    ledger.register(Declaration("trees", Unit(), Budget.of(9, "1e-6")))
    ledger.charge(sampled_crowd("2025"), "births", release="one")
    ledger.charge(sampled_crowd("2025"), "trees", release="one")
    with pytest.raises(SampleReused):
        ledger.charge(sampled_crowd("2025"), "mothers", release="two")


def test_one_sample_twice_in_one_guarantee_is_refused(ledger: Ledger) -> None:
    births(ledger, Budget.of(9, "1e-6", unbounded="public register"))
    twice = Sequence(tuple(Sampled(Fraction(1, 10), Crowd(20), "2025") for _ in range(2)))
    with pytest.raises(SampleReused):
        ledger.charge(guarantee(twice, delta="1e-9"), "births", release="r")


def test_a_refused_charge_uses_up_no_sample(ledger: Ledger) -> None:
    births(ledger, Budget.of("0.5", "1e-6"))
    ledger.charge(pure("0.1"), "births", release="r")
    with pytest.raises(BudgetExceeded):
        ledger.charge(sampled_crowd("2025"), "births", release="r")
    ledger.grant("births", Budget.of("0.1"), *OWNER)
    ledger.charge(sampled_crowd("2025"), "births", release="r")


# --- analysts


def test_analysts_are_assumed_to_collude(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    ledger.charge(pure("0.6"), "births", release="r", analyst="ann")
    with pytest.raises(BudgetExceeded, match=r"; 0.4 of "):
        ledger.charge(pure("0.6"), "births", release="r", analyst="bob")


def test_allowance_and_budget_must_both_hold(address: str) -> None:
    ledger = create(address)
    births(ledger, Budget.of(1))
    ledger.allow("births", Allowance.of("ann", "0.5"), *OWNER)
    ledger.charge(pure("0.3"), "births", release="r", analyst="ann")
    with pytest.raises(BudgetExceeded, match=r"; 0.2 of ann's allowance of 0.5 remains"):
        ledger.charge(pure("0.3"), "births", release="r", analyst="ann")
    ledger.charge(pure("0.6"), "births", release="r", analyst="bob")
    with pytest.raises(BudgetExceeded, match=r"; 0.1 of the budget of 1 remains"):
        ledger.charge(pure("0.2"), "births", release="r", analyst="ann")
    assert ledger.check().ok


def test_a_new_allowance_replaces_the_old_one(ledger: Ledger) -> None:
    births(ledger, Budget.of(1))
    ledger.allow("births", Allowance.of("ann", "0.1"), *OWNER)
    ledger.allow("births", Allowance.of("ann", "0.5"), *OWNER)
    ledger.charge(pure("0.5"), "births", release="r", analyst="ann")
    ledger.allow("births", Allowance.of("ann", "0.2"), *OWNER)
    with pytest.raises(BudgetExceeded, match=r"; 0."):
        ledger.charge(pure("0.1"), "births", release="r", analyst="ann")


def test_an_allowance_ends_after_its_last_day(sqlite: str) -> None:
    days = iter([datetime(2126, 1, day, 23, 59, tzinfo=UTC) for day in (1, 2, 30, 31)] * 1)
    ledger = create(sqlite)
    births(ledger, Budget.of(1))
    ledger = replace(ledger, chain=replace(ledger.chain, clock=lambda: next(days)))
    ledger.allow("births", Allowance.of("ann", 1, until=date(2126, 1, 30)), *OWNER)
    for _ in range(2):
        ledger.charge(pure("0.1"), "births", release="r", analyst="ann")
    with pytest.raises(BudgetExceeded, match="expired on 2126-01-30"):
        ledger.charge(pure("0.1"), "births", release="r", analyst="ann")
    assert ledger.check().ok


def test_an_allowance_for_a_month_paces_an_analyst_inside_the_total(sqlite: str) -> None:
    days = [datetime(2126, month, day, 23, 59, tzinfo=UTC) for month, day in ((1, 2), (1, 31), (2, 1), (3, 1), (4, 1))]
    ledger = create(sqlite)
    births(ledger, Budget.of(3))
    ledger = replace(ledger, chain=replace(ledger.chain, clock=lambda: days[0]))
    ledger.allow("births", Allowance.of("ann", "1.2", month="0.4"), *OWNER)

    def spend(epsilon: str) -> None:
        ledger.charge(pure(epsilon), "births", release="r", analyst="ann")

    spend("0.3")
    days.pop(0)
    with pytest.raises(BudgetExceeded, match=r"costs epsilon 0.2; 0.1 of ann's allowance for 2126-01 remains"):
        spend("0.2")
    with pytest.raises(BudgetExceeded, match=r"allowance for 2126-01"):
        ledger.preview({"births": pure("0.2")}, analyst="ann")
    spend("0.1")
    assert ledger.share("births", "ann").spending == AnalystSpending(Amount.up("0.4", 0), "2126-01", Decimal("0.4"))
    days.pop(0)
    assert ledger.share("births", "ann").spending == AnalystSpending(Amount.up("0.4", 0), "2126-02")
    spend("0.4")
    other = ledger.charge(pure("0.3"), "births", release="of bob", analyst="bob")
    with pytest.raises(BudgetExceeded, match=r"0 of ann's allowance for 2126-02"):
        ledger.repeat(other.sequence, "ann")
    days.pop(0)
    ledger.repeat(other.sequence, "ann")
    spend("0.1")
    days.pop(0)
    with pytest.raises(BudgetExceeded, match=r"costs epsilon 0.1; 0 of ann's allowance of 1.2 remains"):
        spend("0.1")
    ledger.allow("births", Allowance.of("ann", 2), *OWNER)
    spend("0.6")
    assert ledger.check().ok
    with pytest.raises(InvalidParameter, match="at most the whole allowance"):
        Allowance.of("ann", "0.5", month=1)


def test_an_allowance_that_ended_stays_ended_when_the_clock_goes_back(sqlite: str) -> None:
    days = [datetime(2126, 1, day, tzinfo=UTC) for day in (1, 31, 2, 2)]
    ledger = create(sqlite)
    births(ledger, Budget.of(1))
    ledger = replace(ledger, chain=replace(ledger.chain, clock=lambda: days[0]))
    ledger.allow("births", Allowance.of("ann", 1, until=date(2126, 1, 30)), *OWNER)
    for _ in range(2):
        days.pop(0)
        with pytest.raises(BudgetExceeded, match="expired on 2126-01-30"):
            ledger.charge(pure("0.1"), "births", release="r", analyst="ann")
        with pytest.raises(BudgetExceeded, match="expired on 2126-01-30"):
            ledger.preview({"births": pure("0.1")}, analyst="ann")
    assert [entry.at[:10] for entry in ledger.entries()][-2:] == ["2126-01-31", "2126-01-31"]
    assert ledger.check().ok


def test_separate_analysts_have_the_budget_each_but_what_is_public_counts_for_all(address: str) -> None:
    ledger = create(address)
    births(ledger, Budget.of(1, separate_analysts="each signed a contract"))
    ledger.charge(pure("0.6"), "births", release="r", analyst="ann")
    ledger.charge(pure("0.5"), "births", release="r", analyst="bob")
    assert ledger.standing("births").left == Amount.down("0.4", 0)
    with pytest.raises(BudgetExceeded, match=r"; 0.4 of "):
        ledger.charge(pure("0.45"), "births", release="for everyone")
    ledger.charge(pure("0.3"), "births", release="for everyone")
    with pytest.raises(BudgetExceeded, match=r"; 0.1 of "):
        ledger.charge(pure("0.2"), "births", release="r", analyst="ann")
    ledger.charge(pure("0.2"), "births", release="r", analyst="bob")
    assert ledger.standing("births").epsilon == Decimal("1.6")
    assert ledger.check().ok


# --- accounts carved out in advance


def test_a_carved_account_is_paid_at_once_and_then_counts_only_rho(address: str) -> None:
    ledger = create(address)
    births(ledger, Budget.of(3, "1e-6"))
    entry = ledger.carve("births", "means", "0.1", "1e-6")
    paid = entry.standings[0]
    assert Decimal("2.14") < paid.epsilon < Decimal("2.15")
    noise = guarantee(Gaussian(Fraction(10), 2))
    for analyst in ("ann", "bob", "ann", "cem", "ann"):
        ledger.charge(noise, "births", release="mean", analyst=analyst, account="means")
    with pytest.raises(BudgetExceeded, match=r"this costs rho 0.02; 0 of the account of 0.1 remains"):
        ledger.charge(noise, "births", release="mean", account="means")
    assert ledger.standing("births").totals.spent == paid.totals.spent
    assert ledger.standing("births").totals.charges == 6
    account = ledger.show().accounts[0]
    assert (account.rho, account.spent, account.left) == (Decimal("0.1"), Decimal("0.1"), Decimal(0))
    assert ledger.check().ok


def test_a_pure_loss_costs_an_account_half_its_square(ledger: Ledger) -> None:
    births(ledger, Budget.of(3, "1e-6"))
    ledger.carve("births", "means", "0.1", "1e-6")
    entry = ledger.charge(pure("0.2"), "births", release="r", account="means")
    assert entry.charged[0].rho == Decimal("0.02")


def test_a_loss_without_rho_cannot_use_an_account(ledger: Ledger) -> None:
    births(ledger, Budget.of(3, "1e-6"))
    ledger.carve("births", "means", "0.1", "1e-6")
    for loss in (Approximate(Fraction(1), Fraction(1, 10**9)), Sampled(Fraction(1, 10), Crowd(20))):
        with pytest.raises(Refused, match="no finite rho"):
            ledger.charge(guarantee(loss, delta="1e-9"), "births", release="r", account="means")


def test_replaced_people_with_several_rows_cannot_use_an_account(ledger: Ledger) -> None:
    unit = Unit(Kind.PERSON, Adjacency.REPLACE, "id", 3)
    ledger.register(Declaration("visits", unit, Budget.of(3, "1e-6")))
    ledger.carve("visits", "means", "0.1", "1e-6")
    noise = guarantee(Grouped(3, Gaussian(Fraction(100))), unit, delta="1e-9")
    with pytest.raises(Refused, match="no finite rho"):
        ledger.charge(noise, "visits", release="mean", account="means")


def test_an_account_is_closed_to_an_analyst_whose_allowance_has_ended(ledger: Ledger) -> None:
    births(ledger, Budget.of(3, "1e-6"))
    ledger.carve("births", "means", "0.1", "1e-6")
    ledger.allow("births", Allowance.of("ann", 1, until=date(2020, 1, 1)), *OWNER)
    with pytest.raises(BudgetExceeded, match="expired on 2020-01-01"):
        ledger.charge(pure("0.1"), "births", release="r", analyst="ann", account="means")
    ledger.charge(pure("0.1"), "births", release="r", analyst="bob", account="means")
    ledger.allow("births", Allowance.of("ann", 1), *OWNER)
    ledger.charge(pure("0.1"), "births", release="r", analyst="ann", account="means")


def test_an_account_that_does_not_fit_is_refused(ledger: Ledger) -> None:
    births(ledger, Budget.of(2, "1e-6"))
    with pytest.raises(BudgetExceeded, match=r"this costs epsilon 2.14"):
        ledger.carve("births", "means", "0.1", "1e-6")
    assert ledger.show().accounts == ()


def test_accounts_have_names_of_their_own(ledger: Ledger) -> None:
    births(ledger, Budget.of(9, "1e-5"))
    ledger.carve("births", "means", "0.1", "1e-6")
    with pytest.raises(InvalidParameter, match="already has an account"):
        ledger.carve("births", "means", "0.1", "1e-6")
    with pytest.raises(InvalidParameter, match="carve it out first"):
        ledger.charge(pure(1), "births", release="r", account="medians")


@pytest.mark.parametrize(("rho", "delta"), [(0, "1e-6"), (-1, "1e-6"), ("0.1", 0), ("0.1", 1), ("x", "1e-6")])
def test_an_account_with_senseless_parameters_is_an_error(ledger: Ledger, rho: str, delta: str) -> None:
    births(ledger, Budget.of(3, "1e-6"))
    with pytest.raises(InvalidParameter):
        ledger.carve("births", "means", rho, delta)


# --- closing, looking, previewing, showing


def test_a_closed_dataset_releases_nothing_more(address: str) -> None:
    ledger = create(address)
    births(ledger, Budget.of(3, "1e-6"))
    ledger.carve("births", "means", "0.01", "1e-6")
    ledger.close("births", *OWNER)
    attempts: list[Callable[[], Entry]] = [
        lambda: ledger.charge(pure("0.1"), "births", release="r"),
        lambda: ledger.charge(pure("0.1"), "births", release="r", account="means"),
        lambda: ledger.carve("births", "more", "0.01", "1e-6"),
        lambda: ledger.grant("births", Budget.of(1), *OWNER),
    ]
    for refused in attempts:
        with pytest.raises(Refused, match="births is closed"):
            refused()
    with pytest.raises(InvalidParameter, match="already closed"):
        ledger.close("births", *OWNER)
    ledger.retire("births", *OWNER)
    assert ledger.standing("births").terms.closed == "retired"
    for again in (ledger.close, ledger.retire):
        with pytest.raises(InvalidParameter, match="already retired"):
            again("births", *OWNER)
    assert ledger.check().ok


def test_looks_are_counted_also_before_a_dataset_is_registered(address: str) -> None:
    ledger = create(address)
    ledger.look("births", "profile")
    births(ledger, Budget.of(1))
    ledger.look("births", "profile")
    ledger.look("births", "plan")
    assert ledger.show().looks == {"births": {"profile": 2, "plan": 1}}
    assert ledger.check().ok


def test_a_preview_tells_the_future_and_writes_nothing(address: str) -> None:
    ledger = create(address)
    births(ledger, Budget.of(1))
    before = ledger.show().head
    (foreseen,) = ledger.preview({"births": pure("0.7")})
    assert foreseen.left == Amount.down("0.3", 0)
    with pytest.raises(BudgetExceeded):
        ledger.preview({"births": pure("1.1")})
    assert ledger.show().head == before
    assert ledger.charge(pure("0.7"), "births", release="r").standings == (foreseen,)


def test_the_overview_tells_everything_as_plain_json(ledger: Ledger) -> None:
    births(ledger, Budget.of(3, "1e-6"))
    ledger.register(Declaration("mothers", Unit(), same_people_as="births"))
    ledger.allow("births", Allowance.of("ann", 1), *OWNER)
    ledger.charge(pure("0.25"), "births", release="r", analyst="ann")
    ledger.charge(pure("0.5"), "births", release="r", analyst="bob")
    ledger.carve("births", "means", "0.001", "1e-6")
    plain = ledger.show().to_json()
    assert [(row["dataset"], row["charges"], row["closed"]) for row in plain["datasets"]] == [("births", 3, None)]
    assert [(row["analyst"], row["spent"]["epsilon"]) for row in plain["analysts"]] == [("ann", "0.25"), ("bob", "0.5")]
    assert plain["analysts"][0]["allowance"]["epsilon"] == "1"
    assert plain["accounts"] == [
        {"dataset": "births", "account": "means", "rho": "0.001", "spent": "0", "left": "0.001"}
    ]
    assert plain["shared"] == {"mothers": "births"}
    assert plain["head"] == ledger.show().head.to_json()


def test_a_ledger_that_is_not_there_is_an_error(address: str) -> None:
    with pytest.raises(LedgerUnavailable):
        Ledger.open(address)


def test_the_ledger_is_known_without_loading_a_database() -> None:
    code = "import sys, incrowd.accounting.ledger; sys.exit('sqlalchemy' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
