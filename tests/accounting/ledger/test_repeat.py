"""An answer that is given again: the dataset pays nothing, an analyst who has not paid pays his allowance, once."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from incrowd.accounting.budget import Allowance, Amount, Budget
from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Pure
from incrowd.core.terms import Theorem
from incrowd.core.unit import Unit
from incrowd.errors import BudgetExceeded, InvalidParameter

GUARANTEE = Guarantee(
    Pure(Fraction(1)), Unit(), (Theorem("dwork-et-al-2006-proposition-1", "Dwork et al. 2006, Proposition 1"),)
)


def opened(folder: Path, budget: Budget | None = None) -> Ledger:
    ledger = Ledger.create(f"sqlite:///{folder}/ledger.sqlite")
    ledger.register(Declaration("births", Unit(), budget or Budget.of(3)))
    return ledger


def own(ledger: Ledger, analyst: str) -> Amount:
    found = ledger.chain.read(lambda reader: reader.value(("analyst", "births", analyst)))
    return Amount.from_json(found) if found else Amount()


def test_the_dataset_pays_nothing_and_the_analyst_once(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    ledger.allow("births", Allowance.of("bob", "1.5"), "owner", "a study")
    entry = ledger.charge(GUARANTEE, "births", "answer 1", analyst="ann")
    for _ in range(3):
        ledger.repeat(entry.sequence, "bob")
    assert ledger.standing("births").totals.spent == Amount.up(1, 0)
    assert own(ledger, "bob") == Amount.up(1, 0)
    assert ledger.check().ok


def test_who_asked_first_and_what_everyone_has_cost_nothing_again(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    mine, ours = ledger.charge(GUARANTEE, "births", "mine", "ann"), ledger.charge(GUARANTEE, "births", "for everyone")
    before = ledger.chain.head()
    ledger.repeat(mine.sequence, "ann")
    ledger.repeat(ours.sequence, "bob")
    assert ledger.chain.head() == before


def test_an_allowance_that_is_used_up_refuses_a_repeated_answer(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    ledger.allow("births", Allowance.of("bob", "0.5"), "owner", "a study")
    entry = ledger.charge(GUARANTEE, "births", "answer 1", analyst="ann")
    with pytest.raises(BudgetExceeded, match="bob's allowance"):
        ledger.repeat(entry.sequence, "bob")
    assert own(ledger, "bob") == Amount()


def test_where_analysts_keep_apart_a_repeated_answer_counts_for_each(tmp_path: Path) -> None:
    ledger = opened(tmp_path, Budget.of("1.5", separate_analysts="two firms"))
    one = ledger.charge(GUARANTEE, "births", "answer 1", analyst="ann")
    ledger.charge(GUARANTEE, "births", "answer 2", analyst="bob")
    with pytest.raises(BudgetExceeded):
        ledger.repeat(one.sequence, "bob")
    with pytest.raises(BudgetExceeded):
        ledger.repeat(one.sequence, None)
    assert ledger.check().ok


def test_only_a_charge_can_be_repeated(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    with pytest.raises(InvalidParameter, match="no charge"):
        ledger.repeat(1, "bob")
    with pytest.raises(InvalidParameter, match="no charge"):
        ledger.repeat(99, "bob")
