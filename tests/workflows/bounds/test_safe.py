from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.suppression import tight_delta
from incrowd.core.unit import Adjacency
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.workflows.bounds.safe import SafeQuestion, solve

ks = st.integers(2, 60)
rates = st.fractions(Fraction(1, 100), Fraction(9, 10), max_denominator=1000)
epsilons = st.fractions(Fraction(1, 20), Fraction(3), max_denominator=1000)
rows = st.integers(1, 4)


@settings(max_examples=40, deadline=None)
@given(k=ks, rate=rates, epsilon=epsilons, rows=rows)
def test_what_is_solved_keeps_the_guarantee_that_was_asked_for(
    k: int, rate: Fraction, epsilon: Fraction, rows: int
) -> None:
    delta = solve(SafeQuestion(k, rate, epsilon, rows_per_person=rows)).delta
    if not 1e-300 < delta < 0.75:
        return
    asked = Fraction(delta) * Fraction(1_000_001, 1_000_000)
    by_k = solve(SafeQuestion(None, rate, epsilon, asked, rows_per_person=rows))
    assert by_k.k <= k
    assert by_k.delta_tight <= asked
    by_rate = solve(SafeQuestion(k, None, epsilon, asked, rows_per_person=rows))
    assert by_rate.rate >= rate * (1 - 1e-5)
    assert by_rate.delta_tight <= asked
    by_epsilon = solve(
        SafeQuestion(k, rate, None, asked if rows == 1 else asked * Fraction(5, 4), rows_per_person=rows)
    )
    assert by_epsilon.epsilon <= epsilon
    assert by_epsilon.delta_tight <= by_epsilon.delta


@settings(max_examples=40, deadline=None)
@given(k=ks, rate=rates, epsilon=epsilons)
def test_theorem_1_is_never_below_the_tight_delta(k: int, rate: Fraction, epsilon: Fraction) -> None:
    found = solve(SafeQuestion(k, rate, epsilon))
    assert (found.delta_theorem1 is None) == (float(epsilon) < -math.log1p(-float(rate)))
    assert found.delta_theorem1 is None or found.delta_theorem1 >= found.delta * (1 - 1e-9)


@given(epsilon=epsilons, rows=st.integers(2, 5))
def test_a_person_with_more_rows_is_worth_less(epsilon: Fraction, rows: int) -> None:
    few = solve(SafeQuestion(10, "0.1", epsilon, rows_per_person=rows - 1)).delta
    assert solve(SafeQuestion(10, "0.1", epsilon, rows_per_person=rows)).delta >= few


def test_the_price_for_people_is_the_sum_of_the_steps() -> None:
    step = Fraction(1, 3)
    row = tight_delta.delta(10, "0.1", step)
    steps = 1 + math.exp(step) + math.exp(2 * step)
    assert solve(SafeQuestion(10, "0.1", 1, rows_per_person=3)).delta == pytest.approx(row * steps, rel=1e-9)


def test_an_infeasible_delta_names_the_nearest_k_and_rate() -> None:
    with pytest.raises(Infeasible, match=r"k = 30 at this rate, or a rate of at most 0\.0316227"):
        solve(SafeQuestion(20, "0.1", None, "1e-30"))


def test_a_person_cannot_be_replaced_here() -> None:
    with pytest.raises(InvalidParameter, match="replacing a person"):
        solve(SafeQuestion(20, "0.1", 1, adjacency=Adjacency.REPLACE, rows_per_person=2))


def test_a_large_epsilon_is_read_at_a_smaller_one_where_that_is_easier_for_rows() -> None:
    found = solve(SafeQuestion(None, "0.1", 5000, "1e-6", rows_per_person=3))
    assert found.k == solve(SafeQuestion(None, "0.1", 6, "1e-6", rows_per_person=3)).k
    assert found.delta_tight <= 1e-6


def test_an_epsilon_beyond_all_measure_is_worth_no_more_than_a_sensible_one() -> None:
    found = solve(SafeQuestion(None, "0.1", 10**6, "1e-6", rows_per_person=100))
    assert found.k == solve(SafeQuestion(None, "0.1", 400, "1e-6", rows_per_person=100)).k
