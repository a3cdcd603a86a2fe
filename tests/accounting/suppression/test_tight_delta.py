"""The tight delta of sampled suppression: rounded up, by little; and what it refuses."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from incrowd.accounting.suppression.theorems import theorem1_delta
from incrowd.accounting.suppression.tight_delta import (
    SHIFTED,
    TWO_STEPS,
    delta,
    log_delta,
    worst_size_add,
    worst_size_remove,
)
from incrowd.core.rounding import Number
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter
from tests.theorems.exact_laws import e_to_the, excess, pair, published_count
from tests.theorems.li_2010 import PRODUCT, log_delta_add, log_delta_remove, replace_bounds

RATES = st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000)
EPSILONS = st.fractions(0, 6, max_denominator=1000)
KS = st.integers(1, 400)


def brute_force(k: int, rate: Fraction, ratio: Fraction, sizes: range) -> tuple[Fraction, Fraction]:
    laws = {n: published_count(n, k, rate) for n in range(sizes.start - 1, sizes.stop)}
    removed = max(excess(laws[n], laws[n - 1], ratio) for n in sizes)
    added = max(excess(laws[n - 1], laws[n], ratio) for n in sizes)
    return removed, added


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(9, 10), Fraction(3, 20)])
@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 20), Fraction(3, 10), Fraction(3)])
@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_each_direction_equals_the_largest_excess_over_all_sizes(k: int, epsilon: Fraction, rate: Fraction) -> None:
    sizes = range(1, max(worst_size_remove(k, rate, epsilon), worst_size_add(k, rate, epsilon) or 1) + 4)
    removed, added = brute_force(k, rate, e_to_the(epsilon), sizes)
    assert float(removed) <= math.exp(log_delta_remove(k, rate, epsilon)) <= float(removed) * (1 + 1e-12)
    claimed = math.exp(log_delta_add(k, rate, epsilon))
    assert float(added) <= claimed <= float(added) * (1 + 1e-12)


@given(st.integers(1, 6), RATES, EPSILONS, st.integers(1, 14))
@example(3, Fraction(1, 5), Fraction(1, 10), 5)
@example(6, Fraction(9, 10), Fraction(1, 100), 6)
def test_a_public_population_gives_the_largest_excess_up_to_that_size(
    k: int, rate: Fraction, epsilon: Fraction, population: int
) -> None:
    removed, added = brute_force(k, rate, e_to_the(epsilon), range(1, population + 1))
    found = delta(k, rate, epsilon, population=population)
    truth = float(max(removed, added))
    assert truth <= found <= truth * (1 + 1e-11) + 1e-300
    assert float(added) <= math.exp(log_delta_add(k, rate, epsilon, population)) <= float(added) + 1e-12


def test_a_population_below_k_publishes_nothing_and_betrays_nothing() -> None:
    assert delta(5, 0.3, 0.1, population=4) == 0.0
    assert delta(5, 0.3, 0.1, Adjacency.REPLACE, population=4) == 0.0


@given(KS, RATES, EPSILONS)
def test_delta_falls_when_k_grows(k: int, rate: Fraction, epsilon: Fraction) -> None:
    assert log_delta(k + 1, rate, epsilon) <= log_delta(k, rate, epsilon) + 1e-11


@given(KS, RATES, EPSILONS, st.fractions(Fraction(1, 10**6), Fraction(1, 2)))
def test_delta_grows_with_the_rate(k: int, rate: Fraction, epsilon: Fraction, share: Fraction) -> None:
    more = rate + (1 - rate) * share
    assert log_delta(k, rate, epsilon) <= log_delta(k, more, epsilon) + 1e-10


@given(KS, RATES, EPSILONS, st.fractions(0, 1))
def test_delta_falls_when_epsilon_grows(k: int, rate: Fraction, epsilon: Fraction, more: Fraction) -> None:
    assert log_delta(k, rate, epsilon + more) <= log_delta(k, rate, epsilon) + 1e-11


@given(KS, RATES, st.fractions(0, 3, max_denominator=1000))
def test_the_tight_delta_never_exceeds_theorem_1(k: int, rate: Fraction, more: Fraction) -> None:
    epsilon = Fraction(-math.log1p(-float(rate))) + more + Fraction(1, 10**6)
    assert delta(k, rate, epsilon) <= theorem1_delta(k, rate, epsilon) * (1 + 1e-10)


@given(KS, RATES, EPSILONS)
def test_no_epsilon_brings_delta_below_the_rate_to_the_k(k: int, rate: Fraction, epsilon: Fraction) -> None:
    assert log_delta(k, rate, epsilon) >= k * math.log(rate) - 1e-9
    assert log_delta(k, rate, epsilon + 50) == pytest.approx(k * math.log(rate), rel=1e-12, abs=1e-11)


@given(st.integers(1, 60), RATES, EPSILONS)
def test_delta_is_continuous_where_the_worst_size_jumps(k: int, rate: Fraction, epsilon: Fraction) -> None:
    near = log_delta(k, rate, epsilon + Fraction(1, 10**13))
    assert near == pytest.approx(log_delta(k, rate, epsilon), rel=1e-9, abs=1e-9)


@given(RATES, EPSILONS)
def test_a_bare_count_has_delta_equal_to_the_rate(rate: Fraction, epsilon: Fraction) -> None:
    assert Fraction(delta(1, rate, epsilon)) >= rate
    assert delta(1, rate, epsilon) == pytest.approx(float(rate), rel=1e-15)


def test_a_delta_below_every_float_is_rounded_up_and_its_logarithm_is_right() -> None:
    assert delta(1000, "0.01", "0.5") == math.ulp(0.0)
    assert log_delta(1000, "0.01", "0.5") / math.log(10) == pytest.approx(-1280.683227819, abs=1e-8)
    assert delta(10_000, "0.01", 50) == math.ulp(0.0)


def test_numbers_are_taken_as_they_are_written() -> None:
    written: list[Number] = [0.1, "0.1", "1/10", Fraction(1, 10)]
    assert len({delta(20, rate, 0.5) for rate in written}) == 1


@given(st.integers(2, 300), RATES)
def test_close_to_the_last_epsilon_of_an_addition_its_delta_vanishes(k: int, rate: Fraction) -> None:
    limit = -math.log1p(-float(rate))
    assert log_delta_add(k, rate, limit * (1 + 1e-9)) == -math.inf
    assert log_delta_add(k, rate, limit * (1 - 1e-9)) < log_delta_add(k, rate, limit * 0.99)


@pytest.mark.parametrize("k", [0, -3, 2.5, True, "5"])
def test_k_must_be_a_whole_number_from_one_on(k: int) -> None:
    with pytest.raises(InvalidParameter, match="whole number"):
        delta(k, 0.1, 1)


@pytest.mark.parametrize("rate", [0, -0.1, 1.5, math.nan, "1e-400", "a tenth"])
def test_a_rate_lies_between_zero_and_one(rate: Number) -> None:
    with pytest.raises(InvalidParameter, match="rate"):
        delta(5, rate, 1)


def test_without_sampling_there_is_no_differential_privacy() -> None:
    with pytest.raises(InvalidParameter, match="without sampling there is no differential privacy"):
        delta(5, 1, 1)


@pytest.mark.parametrize("epsilon", [-0.1, math.nan, math.inf])
def test_epsilon_is_finite_and_not_negative(epsilon: float) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        delta(5, 0.1, epsilon)


@pytest.mark.parametrize("population", [0, 2.5])
def test_a_population_is_a_positive_whole_number(population: int) -> None:
    with pytest.raises(InvalidParameter, match="population"):
        delta(5, 0.1, 1, population=population)


@pytest.mark.parametrize("epsilon", [0, "1e-30", 700, 10**9, 10**30])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_extreme_epsilons_are_answered(epsilon: Number, adjacency: Adjacency) -> None:
    assert 0.0001 <= delta(4, 0.1, epsilon, adjacency) < 0.04


def worst_replacement(k: int, rate: Fraction, ratio: Fraction, largest: int) -> Fraction:
    laws = [published_count(n, k, rate) for n in range(largest + 1)]
    sizes = range(1, largest + 1)
    return max(excess(pair(laws[n], laws[m - 1]), pair(laws[n - 1], laws[m]), ratio) for n in sizes for m in sizes)


@pytest.mark.parametrize(
    ("k", "rate", "epsilon"),
    [(2, "1/4", "0.1"), (3, "1/4", "0.4"), (3, "0.6", "0.5"), (2, "0.9", "0.3"), (4, "0.2", "1")],
)
def test_every_rule_bounds_every_pair_of_sizes(k: int, rate: str, epsilon: str) -> None:
    truth = worst_replacement(k, Fraction(rate), e_to_the(Fraction(epsilon)), 9)
    bounds = replace_bounds(k, rate, epsilon)
    assert all(float(truth) <= math.exp(bound) for bound in bounds.values())
    assert delta(k, rate, epsilon, Adjacency.REPLACE) == pytest.approx(math.exp(min(bounds.values())), rel=1e-12)


@given(st.integers(1, 60), st.sampled_from([0.01, 0.1, 0.3, 0.7, 0.95]), st.fractions(0, 4, max_denominator=100))
def test_a_replacement_costs_at_least_a_removal(k: int, rate: float, epsilon: Fraction) -> None:
    assert log_delta(k, rate, epsilon) <= log_delta(k, rate, epsilon, Adjacency.REPLACE) + 1e-9


@given(st.integers(1, 60), st.sampled_from([0.01, 0.1, 0.3, 0.7, 0.95]), st.fractions(0, 4, max_denominator=100))
def test_the_bound_falls_when_epsilon_grows(k: int, rate: float, epsilon: Fraction) -> None:
    more = epsilon + Fraction(1, 10)
    replaced = Adjacency.REPLACE
    assert log_delta(k, rate, more, replaced) <= log_delta(k, rate, epsilon, replaced) + 1e-9


def test_the_product_of_the_worst_cases_is_much_sharper_than_the_closed_rules() -> None:
    bounds = {rule: math.exp(bound) for rule, bound in replace_bounds(20, "0.1", "0.5").items()}
    assert bounds[PRODUCT] == pytest.approx(3.17e-11, rel=0.01)
    assert bounds[SHIFTED] == pytest.approx(4.729e-10, rel=0.001)
    assert bounds[TWO_STEPS] == pytest.approx(1.441e-7, rel=0.001)


def test_below_the_largest_loss_of_an_addition_the_shifted_rule_is_silent() -> None:
    assert SHIFTED not in replace_bounds(20, "0.5", "0.5")


def test_a_bounded_population_never_costs_more() -> None:
    assert delta(5, 0.1, 0.5, Adjacency.REPLACE, population=10) < delta(
        5, 0.1, 0.5, Adjacency.REPLACE, population=10**6
    )


def test_a_negative_epsilon_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        replace_bounds(5, 0.1, -1)
