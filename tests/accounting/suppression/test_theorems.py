"""Theorem 1's delta against every size, one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.accounting.suppression.theorems import SmoothGuarantee, log_theorem1_delta, theorem1_delta, theorem6_delta
from incrowd.accounting.suppression.tight_delta import delta
from incrowd.errors import Infeasible, InvalidParameter
from tests.theorems.exact_laws import bad_mass, binomial, e_to_the, published_count
from tests.theorems.li_2010 import divergence_delta, theorem1_smallest_epsilon

RATES = st.fractions(Fraction(1, 1000), Fraction(99, 100), max_denominator=1000)


def every_size(k: int, rate: Fraction, ratio: Fraction, sizes: range) -> Fraction:
    """The most that counts j >= k with j > gamma n can weigh, gamma = 1 - (1 - rate) / ratio."""
    gamma = 1 - (1 - rate) / ratio
    bad = ([j for j in range(k, n + 1) if j > gamma * n] for n in sizes)
    return max(sum((binomial(n, j, rate) for j in js), Fraction(0)) for n, js in zip(sizes, bad, strict=True))


@pytest.mark.parametrize(
    ("k", "rate", "epsilon"),
    [
        (1, "0.1", "0.2"),
        (3, "1/4", "0.4"),
        (5, "0.5", "0.7"),
        (8, "0.25", "0.3"),
        (20, "0.8", "1.7"),
        (6, "0.9", "2.5"),
    ],
)
def test_the_search_over_the_first_bad_count_finds_what_a_search_over_all_sizes_finds(
    k: int, rate: str, epsilon: str
) -> None:
    truth = float(every_size(k, Fraction(rate), e_to_the(Fraction(epsilon)), range(1, 120)))
    assert truth <= theorem1_delta(k, rate, epsilon) <= truth * (1 + 1e-12)


@pytest.mark.parametrize(("k", "rate", "epsilon"), [(3, "1/4", "0.4"), (2, "0.1", "0.2"), (5, "0.5", "0.7")])
def test_it_is_the_largest_bad_mass_of_the_mechanism_itself(k: int, rate: str, epsilon: str) -> None:
    ratio = e_to_the(Fraction(epsilon))
    laws = [published_count(n, k, Fraction(rate)) for n in range(60)]
    truth = float(max(bad_mass(laws[n], laws[n - 1], ratio) for n in range(1, 60)))
    assert truth <= theorem1_delta(k, rate, epsilon) <= truth * (1 + 1e-12)


def test_a_tie_counts_as_bad() -> None:
    # rate 1/2, ratio 2: gamma = 3/4 and gamma * 4 = 3; from the written ln 2 nobody can tell on which side it lies.
    assert theorem1_delta(3, "0.5", math.log(2)) >= float(sum(binomial(4, j, Fraction(1, 2)) for j in (3, 4)))


def test_the_limit_itself_is_accepted_and_below_it_the_tight_delta_is_named() -> None:
    assert theorem1_delta(20, "0.5", math.log(2)) > 0
    with pytest.raises(InvalidParameter, match="use the tight delta, which has no such limit"):
        theorem1_delta(20, "0.5", 0.69)


def test_a_huge_epsilon_leaves_the_floor() -> None:
    assert log_theorem1_delta(7, "0.1", 10**9) == pytest.approx(7 * math.log(0.1), rel=1e-12)


def test_tails_that_equal_the_wanted_delta_exactly_are_accepted() -> None:
    # P[Bin(11, 1/10) >= 10] is 1e-9 exactly.
    assert theorem1_smallest_epsilon("1e-9", 10, "0.1") == pytest.approx(1.686398953570229, rel=1e-11)
    assert theorem1_smallest_epsilon("0.99999e-9", 10, "0.1") == pytest.approx(math.log(0.9 * 11), rel=1e-9)
    with pytest.raises(Infeasible):
        theorem1_smallest_epsilon("1e-9", 8, "0.1")


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
def test_a_smooth_guarantee_bounds_the_tight_delta_at_every_multiple(
    k: int, rate: Fraction, more: Fraction, z: Fraction
) -> None:
    epsilon = reached(rate, more)
    guarantee = SmoothGuarantee.of(k, rate, epsilon)
    assert delta(k, rate, z * epsilon) <= guarantee.f(z) * guarantee.delta * (1 + 1e-9)
    assert guarantee.f(10**6) <= guarantee.f(z) * (1 + 1e-9)
    assert guarantee.f(z) <= 1.0


def test_together_epsilons_and_deltas_add_up_and_the_slowest_f_counts() -> None:
    one, other = SmoothGuarantee.of(20, "0.2", "0.25"), SmoothGuarantee.of(10, "0.1", "0.5")
    both = one.together(other)
    assert both.epsilon == Fraction(3, 4)
    assert both.delta == pytest.approx(one.delta + other.delta, rel=1e-12)
    assert both.f(2) == max(one.f(2), other.f(2))
    assert both.f(10**6) == max(one.f(10**6), other.f(10**6))


def test_many_loose_guarantees_never_add_up_to_more_than_one() -> None:
    guarantee = SmoothGuarantee.of(1, "0.5", "0.7")
    assert guarantee.together(guarantee).together(guarantee).delta == 1.0


def test_a_multiple_below_one_is_no_guarantee() -> None:
    with pytest.raises(InvalidParameter, match="z"):
        SmoothGuarantee.of(20, "0.2", "0.25").f("0.9")


@pytest.mark.parametrize("bound", [theorem6_delta, divergence_delta, SmoothGuarantee.of])
def test_below_the_limit_of_theorem_1_nothing_is_guaranteed(bound: Callable[[int, str, str], object]) -> None:
    with pytest.raises(InvalidParameter, match="Theorem 1 says nothing"):
        bound(20, "0.5", "0.5")
