from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from incrowd.accounting import accountant
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.shared.sampling import Parameters, Target, loss_of, solve

ROW = Unit()
REPLACED = Unit(adjacency=Adjacency.REPLACE)
SEVERAL = Unit(Kind.PERSON, column="id", max_rows=3)
SEVERAL_REPLACED = Unit(Kind.PERSON, Adjacency.REPLACE, "id", 2)
UNITS = [ROW, REPLACED, SEVERAL, SEVERAL_REPLACED]
DELTA = Fraction(1, 10**6)


def holds(found: Parameters, unit: Unit) -> bool:
    """Whether the accountant, asked anew, vouches for these parameters."""
    spend = accountant.charge_of(loss_of(found.k, found.rate, unit), found.delta, unit.adjacency)
    return spend.epsilon <= found.epsilon


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_k_is_the_smallest_that_keeps_epsilon(unit: Unit) -> None:
    found = solve(None, Fraction(1, 10), Target(DELTA, Fraction(2)), unit)
    assert found.solved == "k"
    assert holds(found, unit)
    assert found.epsilon <= 2
    loss = loss_of(found.k - 1, found.rate, unit)
    assert accountant.charge_of(loss, DELTA, unit.adjacency).epsilon > 2


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_rate_is_the_largest_that_keeps_epsilon(unit: Unit) -> None:
    found = solve(30, None, Target(DELTA, Fraction(2)), unit)
    assert found.solved == "rate"
    assert holds(found, unit)
    assert found.epsilon <= 2
    higher = found.rate + Fraction(2, 10**6)
    assert accountant.charge_of(loss_of(30, higher, unit), DELTA, unit.adjacency).epsilon > 2


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_epsilon_is_what_the_accountant_says(unit: Unit) -> None:
    found = solve(40, Fraction(1, 10), Target(DELTA), unit)
    assert found.solved == "epsilon"
    assert found.epsilon > 0
    assert holds(found, unit)


@pytest.mark.parametrize(("rate", "k"), [("1/10", 6), ("1/2", 20), ("1/3", 11)])
def test_a_delta_of_exactly_rate_to_the_k_is_feasible(rate: str, k: int) -> None:
    delta = Fraction(rate) ** k
    found = solve(None, Fraction(rate), Target(delta, Fraction(5)), ROW)
    assert found.k == k
    assert found.epsilon <= 5
    assert solve(k, Fraction(rate), Target(delta), ROW).epsilon == found.epsilon


def test_the_epsilon_is_the_least_that_holds_and_not_the_one_asked_for() -> None:
    found = solve(None, Fraction(1, 2), Target(DELTA, Fraction(1)), ROW)
    assert Decimal("0.98") < found.epsilon < 1


@pytest.mark.parametrize("unit", [ROW, REPLACED, SEVERAL], ids=str)
def test_a_delta_that_no_epsilon_reaches_is_infeasible(unit: Unit) -> None:
    with pytest.raises(Infeasible, match=r"[Rr]aise k"):
        solve(2, Fraction(1, 2), Target(DELTA), unit)


def test_people_with_many_rows_get_the_tiny_rate_that_keeps_their_guarantee() -> None:
    unit, target = Unit(Kind.PERSON, column="id", max_rows=50), Target(Fraction(1, 10**9), Fraction(1, 10))
    found = solve(1, None, target, unit)
    assert found.rate < Fraction(1, 50 * 10**9)
    assert found.epsilon <= Decimal("0.1")


@pytest.mark.parametrize("delta", ["0", "1", "-1/2", "2"])
def test_a_delta_that_is_no_probability_is_refused(delta: str) -> None:
    with pytest.raises(InvalidParameter, match="strictly between 0 and 1"):
        Target(Fraction(delta))
