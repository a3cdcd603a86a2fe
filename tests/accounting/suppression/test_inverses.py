"""The inverses are true inverses: the answer keeps the guarantee, its neighbor does not."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.suppression.inverses import largest_rate, smallest_epsilon, smallest_k
from incrowd.accounting.suppression.theorems import theorem1_delta
from incrowd.accounting.suppression.tight_delta import delta, log_delta
from incrowd.core.rounding import Number, float_up
from incrowd.core.unit import Adjacency
from incrowd.errors import Infeasible, InvalidParameter
from tests.theorems.li_2010 import theorem1_smallest_epsilon, theorem1_smallest_k

RATES = st.fractions(Fraction(1, 1000), Fraction(9, 10), max_denominator=1000)
EPSILONS = st.fractions(Fraction(1, 20), 4, max_denominator=100)
EXPONENTS = st.integers(2, 30)


@given(EPSILONS, EXPONENTS, RATES)
def test_the_smallest_k_keeps_the_guarantee_and_the_one_before_does_not(
    epsilon: Fraction, exponent: int, rate: Fraction
) -> None:
    wanted = Fraction(1, 10**exponent)
    k = smallest_k(epsilon, wanted, rate)
    assert delta(k, rate, epsilon) <= float_up(wanted)
    assert k == 1 or delta(k - 1, rate, epsilon) > float(wanted)


@given(EXPONENTS, st.integers(1, 200), RATES)
def test_the_smallest_epsilon_keeps_the_guarantee_and_a_little_less_does_not(
    exponent: int, k: int, rate: Fraction
) -> None:
    wanted = Fraction(1, 10**exponent)
    if rate**k > wanted:
        with pytest.raises(Infeasible):
            smallest_epsilon(wanted, k, rate)
        return
    epsilon = smallest_epsilon(wanted, k, rate)
    assert delta(k, rate, epsilon) <= float_up(wanted)
    assert epsilon == 0.0 or log_delta(k, rate, epsilon * (1 - 1e-9)) > math.log(wanted) - 1e-10


@given(EPSILONS, EXPONENTS, st.integers(1, 200))
def test_the_largest_rate_keeps_the_guarantee_and_the_next_decimal_does_not(
    epsilon: Fraction, exponent: int, k: int
) -> None:
    wanted = Fraction(1, 10**exponent)
    rate = largest_rate(epsilon, wanted, k)
    unit = Fraction(10) ** (math.floor(math.log10(rate) + 1e-12) - 5)
    assert (rate / unit).denominator == 1
    assert delta(k, rate, epsilon) <= float_up(wanted)
    assert rate + unit >= 1 or log_delta(k, rate + unit, epsilon) > math.log(wanted) - 1e-10


@settings(max_examples=10, deadline=None)
@given(st.fractions(Fraction(3, 10), 3, max_denominator=10), st.integers(2, 9), st.sampled_from([0.05, 0.2]))
def test_the_inverses_hold_for_replaced_records(epsilon: Fraction, exponent: int, rate: float) -> None:
    wanted = Fraction(1, 10**exponent)
    replaced = Adjacency.REPLACE
    k = smallest_k(epsilon, wanted, rate, replaced)
    assert smallest_k(epsilon, wanted, rate) <= k
    assert delta(k, rate, epsilon, replaced) <= float_up(wanted) < delta(k - 1, rate, epsilon, replaced)
    least = smallest_epsilon(wanted, k, rate, replaced)
    assert least <= epsilon * (1 + Fraction(1, 10**11))
    assert delta(k, rate, least, replaced) <= float_up(wanted)
    most = largest_rate(epsilon, wanted, k, replaced)
    assert most >= Fraction(str(rate))
    assert delta(k, most, epsilon, replaced) <= float_up(wanted)


@given(st.integers(1, 12), st.sampled_from(["0.1", "0.01", "0.5", "1/3"]))
def test_a_delta_that_equals_the_floor_exactly_is_feasible(k: int, rate: str) -> None:
    floor = Fraction(rate) ** k
    assert delta(k, rate, smallest_epsilon(floor, k, rate)) == float_up(floor)
    assert smallest_k(60, floor, rate) == k
    with pytest.raises(Infeasible):
        smallest_epsilon(floor * Fraction(999_999, 10**6), k, rate)


def test_an_infeasible_delta_is_answered_with_what_would_be_feasible() -> None:
    with pytest.raises(Infeasible, match=r"Raise k or lower the rate: k = 9 at this rate, .* at most 0\.0158489 "):
        smallest_epsilon("1e-9", 5, "0.1")
    assert smallest_epsilon("1e-9", 9, "0.1") > 0
    assert smallest_epsilon("1e-9", 5, "0.0158489") > 0
    with pytest.raises(Infeasible):
        smallest_epsilon("1e-9", 8, "0.1")
    with pytest.raises(Infeasible):
        smallest_epsilon("1e-9", 5, "0.015849")


def test_a_delta_that_is_kept_without_any_loss_needs_no_epsilon() -> None:
    assert smallest_epsilon(0.5, 20, 0.1) == 0.0


def test_a_hopeless_k_is_refused_instead_of_searched_for_ever() -> None:
    with pytest.raises(Infeasible, match="billion"):
        smallest_k(0, "1e-12", 0.5)


def test_deltas_below_every_float_are_served() -> None:
    k = smallest_k(1, "1e-1000", "0.05")
    bar = -1000 * math.log(10)
    assert log_delta(k, "0.05", 1) <= bar < log_delta(k - 1, "0.05", 1)
    assert smallest_epsilon("1e-400", 5, "1e-80") == pytest.approx(math.log(5), rel=1e-9)
    assert largest_rate(2, "1e-400", 5) == Fraction(1, 10**80)


@given(st.fractions(Fraction(1, 4), 3, max_denominator=100), EXPONENTS, st.sampled_from([0.01, 0.05, 0.2]))
def test_the_inverses_of_theorem_1_are_inverses_too(epsilon: Fraction, exponent: int, rate: float) -> None:
    wanted = Fraction(1, 10**exponent)
    k = theorem1_smallest_k(epsilon, wanted, rate)
    assert theorem1_delta(k, rate, epsilon) <= float(wanted) * (1 + 1e-10)
    assert k == 1 or theorem1_delta(k - 1, rate, epsilon) > float(wanted)
    least = theorem1_smallest_epsilon(wanted, k, rate)
    assert least <= epsilon * (1 + Fraction(1, 10**10))
    assert theorem1_delta(k, rate, least) <= float(wanted) * (1 + 1e-10)
    assert smallest_k(epsilon, wanted, rate) <= k
    assert smallest_epsilon(wanted, k, rate) <= least


@pytest.mark.parametrize("wanted", [0, 1, -0.5, 2, math.nan])
def test_a_delta_lies_strictly_between_zero_and_one(wanted: Number) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        smallest_k(1, wanted, 0.1)
    with pytest.raises(InvalidParameter, match="delta"):
        smallest_epsilon(wanted, 5, 0.1)
    with pytest.raises(InvalidParameter, match="delta"):
        largest_rate(1, wanted, 5)


def test_without_sampling_no_k_is_enough() -> None:
    with pytest.raises(InvalidParameter, match="without sampling"):
        smallest_k(1, 1e-6, 1)
    with pytest.raises(InvalidParameter, match="without sampling"):
        theorem1_smallest_k(1, 1e-6, 1)
