from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.accounting.budget import Allowance, Amount, Budget, plain, read
from incrowd.core.words import short_down, short_up
from incrowd.errors import InvalidParameter

AMOUNTS = st.fractions(min_value=0, max_value=10**6)


def test_a_million_charges_of_1e_20_add_up_exactly() -> None:
    total, one = Amount(), Amount.up("1e-20", "1e-20")
    for _ in range(1_000_000):
        total = total.plus(one)
    assert total == Amount(Decimal("1E-14"), Decimal("1E-14"))


def test_the_smallest_amount_still_counts_beside_a_large_one() -> None:
    total = Amount.up(10**12, 0).plus(Amount.up("1e-40", 0))
    assert Fraction(total.epsilon) == 10**12 + Fraction(1, 10**40)


@given(AMOUNTS, AMOUNTS)
def test_costs_round_up_and_limits_round_down(epsilon: Fraction, delta: Fraction) -> None:
    cost, limit = Amount.up(epsilon, delta), Amount.down(epsilon, delta)
    assert Fraction(limit.epsilon) <= epsilon <= Fraction(cost.epsilon)
    assert Fraction(limit.delta) <= delta <= Fraction(cost.delta)
    assert Fraction(cost.epsilon) - Fraction(limit.epsilon) <= Fraction(1, 10**40)


@given(AMOUNTS, AMOUNTS)
def test_sums_and_remainders_are_exact(one: Fraction, other: Fraction) -> None:
    a, b = Amount.up(one, other), Amount.up(other, one)
    assert Fraction(a.plus(b).epsilon) == Fraction(a.epsilon) + Fraction(b.epsilon)
    assert Fraction(a.minus(b).epsilon) == max(Fraction(0), Fraction(a.epsilon) - Fraction(b.epsilon))
    assert a.plus(b).minus(b) == a


@given(AMOUNTS)
def test_an_amount_survives_its_text(number: Fraction) -> None:
    amount = Amount.up(number, 0)
    assert read(plain(amount.epsilon)) == amount.epsilon
    assert Amount.from_json(amount.to_json()) == amount


@given(AMOUNTS)
def test_what_people_read_errs_on_the_safe_side(number: Fraction) -> None:
    amount = Amount.up(number, 0).epsilon
    assert Fraction(short_down(amount, 6)) <= Fraction(amount) <= Fraction(short_up(amount, 6))


@pytest.mark.parametrize(
    ("amount", "text"),
    [("0", "0"), ("0.4", "0.4"), ("12", "12"), ("1e-7", "1e-7"), ("2.5e-9", "2.5e-9"), ("300", "300")],
)
def test_short_amounts_are_shown_as_people_write_them(amount: str, text: str) -> None:
    assert short_up(Decimal(amount), 6) == short_down(Decimal(amount), 6) == text


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-1"])
def test_a_stored_amount_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter):
        read(text)


@pytest.mark.parametrize(("epsilon", "delta"), [(-1, 0), (0, -1), ("nan", 0), (0, 1), ("x", 0), (float("inf"), 0)])
def test_a_budget_outside_its_range_is_refused(epsilon: float | str, delta: float) -> None:
    with pytest.raises(InvalidParameter):
        Budget.of(epsilon, delta)


def test_a_reason_cannot_be_empty() -> None:
    with pytest.raises(InvalidParameter, match="reason cannot be empty"):
        Budget.of(1, unbounded="  ")


def test_budgets_and_allowances_survive_json() -> None:
    budget = Budget.of("1/3", "1e-9", unbounded="open since 1990", separate_analysts="under contract")
    allowance = Allowance.of("ann", 1, "1e-9", date(2026, 12, 31))
    assert Budget.from_json(budget.to_json()) == budget
    assert Allowance.from_json(allowance.to_json()) == allowance


def test_a_grant_cannot_bring_delta_to_one() -> None:
    with pytest.raises(InvalidParameter, match="below 1"):
        Budget.of(1, "0.5").extended(Budget.of(0, "0.5"))
