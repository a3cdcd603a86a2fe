"""One record replaced by another: every rule is sound against all pairs of sizes."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.accounting.suppression.tight_delta import SHIFTED, TWO_STEPS, delta, log_delta
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter
from tests.theorems.exact_laws import e_to_the, excess, pair, published_count
from tests.theorems.li_2010 import PRODUCT, replace_bounds


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
    assert all(float(truth) <= math.exp(bound.value) for bound in bounds)
    assert delta(k, rate, epsilon, Adjacency.REPLACE) == pytest.approx(math.exp(bounds[0].value), rel=1e-12)


@given(st.integers(1, 60), st.sampled_from([0.01, 0.1, 0.3, 0.7, 0.95]), st.fractions(0, 4, max_denominator=100))
def test_a_replacement_costs_at_least_a_removal(k: int, rate: float, epsilon: Fraction) -> None:
    assert log_delta(k, rate, epsilon) <= log_delta(k, rate, epsilon, Adjacency.REPLACE) + 1e-9


@given(st.integers(1, 60), st.sampled_from([0.01, 0.1, 0.3, 0.7, 0.95]), st.fractions(0, 4, max_denominator=100))
def test_the_bound_falls_when_epsilon_grows(k: int, rate: float, epsilon: Fraction) -> None:
    more = epsilon + Fraction(1, 10)
    replaced = Adjacency.REPLACE
    assert log_delta(k, rate, more, replaced) <= log_delta(k, rate, epsilon, replaced) + 1e-9


def test_the_product_of_the_worst_cases_is_much_sharper_than_the_closed_rules() -> None:
    bounds = {bound.rule: math.exp(bound.value) for bound in replace_bounds(20, "0.1", "0.5")}
    assert bounds[PRODUCT] == pytest.approx(3.17e-11, rel=0.01)
    assert bounds[SHIFTED] == pytest.approx(4.729e-10, rel=0.001)
    assert bounds[TWO_STEPS] == pytest.approx(1.441e-7, rel=0.001)


def test_below_the_largest_loss_of_an_addition_the_shifted_rule_is_silent() -> None:
    assert SHIFTED not in {bound.rule for bound in replace_bounds(20, "0.5", "0.5")}


def test_a_bounded_population_never_costs_more() -> None:
    assert delta(5, 0.1, 0.5, Adjacency.REPLACE, population=10) < delta(
        5, 0.1, 0.5, Adjacency.REPLACE, population=10**6
    )


def test_a_negative_epsilon_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        replace_bounds(5, 0.1, -1)
