"""Composed releases against the exact joint laws of small cells."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.suppression.loss_distribution import (
    composed_delta,
    composed_epsilon,
    distributions,
    envelope,
    randomized_response,
)
from incrowd.accounting.suppression.tight_delta import delta
from incrowd.core.unit import Adjacency
from incrowd.errors import Infeasible, InvalidParameter
from tests.theorems.exact_laws import e_to_the, excess, pair, published_count
from tests.theorems.li_2010 import log_delta_add, log_delta_remove


@pytest.mark.parametrize(
    ("first", "second", "epsilon"),
    [
        ((2, "1/4"), (2, "1/4"), "0.2"),
        ((3, "0.3"), (2, "0.6"), "0.5"),
        ((1, "0.2"), (4, "0.5"), "0"),
        ((3, "0.9"), (3, "0.9"), "1"),
    ],
)
def test_two_releases_together_stay_below_the_composed_delta(
    first: tuple[int, str], second: tuple[int, str], epsilon: str
) -> None:
    ratio = e_to_the(Fraction(epsilon))
    claimed = composed_delta([first, second], epsilon)
    one = [published_count(n, first[0], Fraction(first[1])) for n in range(9)]
    other = [published_count(n, second[0], Fraction(second[1])) for n in range(9)]
    for n, m in product(range(1, 9), repeat=2):
        with_it, without_it = pair(one[n], other[m]), pair(one[n - 1], other[m - 1])
        assert float(excess(with_it, without_it, ratio)) <= claimed
        assert float(excess(without_it, with_it, ratio)) <= claimed


def test_two_replacements_stay_below_the_composed_delta() -> None:
    rate, ratio = Fraction(1, 4), e_to_the(Fraction(2, 5))
    claimed = composed_delta([(2, rate)] * 2, Fraction(2, 5), Adjacency.REPLACE)
    laws = [published_count(n, 2, rate) for n in range(5)]
    for n, m in product(range(1, 5), repeat=2):
        before, after = pair(laws[n], laws[m - 1]), pair(laws[n - 1], laws[m])
        assert float(excess(pair(before, before), pair(after, after), ratio)) <= claimed


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.sampled_from(["0.01", "0.1", "0.5", "0.9", "0.97"]), st.integers(0, 400))
def test_a_single_release_composed_is_the_tight_delta_at_the_knots(k: int, rate: str, steps: int) -> None:
    epsilon = Fraction(steps, 200)
    assert composed_delta([(k, rate)], epsilon, step=0.005) == pytest.approx(
        delta(k, rate, epsilon), rel=1e-6, abs=1e-288
    )


@pytest.mark.parametrize(
    ("k", "rate", "epsilon"), [(32, "0.02", "0.6875"), (100, "0.3", "0.123"), (1000, "0.1", "0.1999")]
)
def test_between_the_knots_little_is_lost_whatever_k_is(k: int, rate: str, epsilon: str) -> None:
    truth = delta(k, rate, epsilon)
    assert truth <= composed_delta([(k, rate)], epsilon) <= 1.2 * truth


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 40), st.sampled_from(["0.02", "0.1", "0.4"]), st.integers(2, 6), st.floats(0.1, 2.0))
def test_composition_is_never_worse_than_adding_up(k: int, rate: str, times: int, epsilon: float) -> None:
    added_up = times * delta(k, rate, Fraction(epsilon) / times)
    assert composed_delta([(k, rate)] * times, epsilon) <= added_up * (1 + 1e-3)


def test_both_directions_are_composed_and_the_larger_counts() -> None:
    # Removed .344, added .346: whoever composes removals only reports too little.
    claimed = composed_delta([(35, "0.97")], "0.05")
    assert claimed >= math.exp(log_delta_add(35, "0.97", "0.05")) * (1 - 1e-9)
    assert claimed > math.exp(log_delta_remove(35, "0.97", "0.05")) + 0.002


def test_the_order_of_different_releases_does_not_matter() -> None:
    parts = [(20, "0.1"), (10, "0.05"), (20, "0.1")]
    assert composed_delta(parts, 1) == pytest.approx(composed_delta(parts[::-1], 1), rel=1e-12)


def test_a_finer_step_is_never_less_pessimistic_than_the_truth_but_sharper() -> None:
    coarse, fine, finest = (composed_delta([(20, "0.1")] * 4, "0.5", step=step) for step in (0.05, 0.01, 0.002))
    assert coarse > fine > finest


@given(st.integers(3, 12))
@settings(max_examples=10, deadline=None)
def test_composed_epsilon_inverts_composed_delta(exponent: int) -> None:
    parts = [(20, "0.1")] * 3
    epsilon = composed_epsilon(parts, Fraction(1, 10**exponent))
    assert composed_delta(parts, epsilon) <= 10.0**-exponent * (1 + 1e-9)
    assert composed_delta(parts, epsilon * 0.999) > 10.0**-exponent


def test_a_hundred_releases_are_composed_by_squaring() -> None:
    removed, added = distributions([(20, "0.1")] * 100, Adjacency.ADD_REMOVE)
    assert removed.infinite == pytest.approx(1e-18, rel=1e-6)
    assert removed.masses.sum() == pytest.approx(1.0, rel=1e-6)
    assert added.infinite < 1e-280
    assert len(removed.masses) < 5000


def test_what_is_not_a_table_is_composed_as_given_when_records_are_replaced() -> None:
    response = randomized_response(0.2)
    mixed = composed_delta([(20, "0.1"), response], 1, Adjacency.REPLACE)
    assert composed_delta([(20, "0.1")], 1, Adjacency.REPLACE) < mixed
    assert mixed < composed_delta([(20, "0.1")], "0.8", Adjacency.REPLACE)
    assert composed_delta([response], "0.1", Adjacency.REPLACE) == pytest.approx(response.forward(0.1), rel=1e-6)


def test_the_envelope_is_flat_from_its_reaches_on() -> None:
    profile = envelope(20, "0.1")
    assert profile.forward(profile.forward_reach + 1e-9) == profile.forward(50.0)
    assert profile.backward(profile.backward_reach + 1e-9) == 0.0


def test_a_delta_below_the_floor_of_all_together_is_infeasible() -> None:
    with pytest.raises(Infeasible):
        composed_epsilon([(4, "0.1")] * 2, "1.9e-4")
    assert composed_epsilon([(4, "0.1")] * 2, "2.01e-4") > 0


def test_nothing_cannot_be_composed() -> None:
    with pytest.raises(InvalidParameter, match="nothing to compose"):
        composed_delta([], 1)


@pytest.mark.parametrize("wanted", [0, 1, -1])
def test_a_wanted_delta_lies_between_zero_and_one(wanted: int) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        composed_epsilon([(5, 0.1)], wanted)
