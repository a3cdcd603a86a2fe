"""Closed bounds lie above what they bound, and fall no further than they may."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.accounting.suppression.theorems import SmoothPromise, theorem1_delta, theorem6_delta
from incrowd.accounting.suppression.tight_delta import delta
from incrowd.errors import InvalidParameter
from tests.theorems.li_2010 import divergence_delta

RATES = st.fractions(Fraction(1, 1000), Fraction(99, 100), max_denominator=1000)


def reached(rate: Fraction, more: Fraction) -> Fraction:
    return Fraction(-math.log1p(-float(rate))) + more + Fraction(1, 10**9)


@given(st.integers(1, 100), RATES, st.fractions(0, 8, max_denominator=100))
def test_theorem_1_lies_below_the_divergence_bound_and_that_below_theorem_6(
    k: int, rate: Fraction, more: Fraction
) -> None:
    epsilon = reached(rate, more)
    exact, sharp, loose = (bound(k, rate, epsilon) for bound in (theorem1_delta, divergence_delta, theorem6_delta))
    assert exact <= sharp * (1 + 1e-10)
    assert sharp <= loose * (1 + 1e-10)


@given(st.integers(1, 100), RATES)
def test_the_divergence_bound_tends_to_the_floor_and_theorem_6_does_not(k: int, rate: Fraction) -> None:
    assert divergence_delta(k, rate, 600) == pytest.approx(float(rate) ** k, rel=1e-9)
    assert theorem6_delta(k, rate, 600) == pytest.approx(float(rate) ** k * math.exp(k * float(1 - rate)), rel=1e-9)


@given(st.integers(1, 60), RATES, st.fractions(0, 3, max_denominator=20), st.fractions(1, 20, max_denominator=4))
def test_a_smooth_promise_bounds_the_tight_delta_at_every_multiple(
    k: int, rate: Fraction, more: Fraction, z: Fraction
) -> None:
    epsilon = reached(rate, more)
    promise = SmoothPromise.of(k, rate, epsilon)
    assert delta(k, rate, z * epsilon) <= promise.f(z) * promise.delta * (1 + 1e-9)
    assert promise.f_limit() <= promise.f(z) * (1 + 1e-9)
    assert promise.f(z) <= 1.0


def test_together_epsilons_and_deltas_add_up_and_the_slowest_f_counts() -> None:
    one, other = SmoothPromise.of(20, "0.2", "0.25"), SmoothPromise.of(10, "0.1", "0.5")
    both = one.together(other)
    assert both.epsilon == Fraction(3, 4)
    assert both.delta == pytest.approx(one.delta + other.delta, rel=1e-12)
    assert both.f(2) == max(one.f(2), other.f(2))
    assert both.f_limit() == max(one.f_limit(), other.f_limit())


def test_many_loose_promises_never_add_up_to_more_than_one() -> None:
    promise = SmoothPromise.of(1, "0.5", "0.7")
    assert promise.together(promise).together(promise).delta == 1.0


def test_a_multiple_below_one_is_no_promise() -> None:
    with pytest.raises(InvalidParameter, match="z"):
        SmoothPromise.of(20, "0.2", "0.25").f("0.9")


@pytest.mark.parametrize("bound", [theorem6_delta, divergence_delta, SmoothPromise.of])
def test_below_the_limit_of_theorem_1_nothing_is_promised(bound: Callable[[int, str, str], object]) -> None:
    with pytest.raises(InvalidParameter, match="Theorem 1 says nothing"):
        bound(20, "0.5", "0.5")
