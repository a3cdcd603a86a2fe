"""Crowd-blending after sampling: the shape of δ, its inverses and its refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.amplification import amplify
from incrowd.accounting.blending import sampled_crowd
from incrowd.accounting.blending.sampled_crowd import (
    delta,
    divergence,
    histogram_delta,
    largest_rate,
    log_delta,
    smallest_epsilon,
    smallest_k,
    theorem1_delta,
    theorem1_simple_delta,
    zero_knowledge_epsilon,
)
from incrowd.accounting.blending.worst_crowd import SuppressedCount, WorstCrowd, highest
from incrowd.accounting.suppression import tight_delta
from incrowd.errors import Infeasible, InvalidParameter
from tests.theorems.exact_laws import binomial, e_to_the
from tests.theorems.gehrke_2012 import (
    chernoff_delta,
    lemma1_delta,
    lemma1_simple_delta,
    lemma2_delta,
    lemma2_simple_delta,
)

sizes = st.integers(1, 60)
rates = st.decimals("0.01", "0.95", places=2).map(Fraction)
crowds = st.decimals("0", "2", places=2).map(Fraction)
epsilons = st.decimals("0", "4", places=2).map(Fraction)
ROUNDING = 3e-11
closed_rates = st.decimals("0.01", "0.95", places=2).map(Fraction)
closed_crowds = st.decimals("0", "3", places=2).map(Fraction)


def slow_log_delta(k: int, crowd: Fraction, rate: Fraction, epsilon: Fraction) -> float:
    """δ at every crowd size up to well beyond the peaks, without a clever search."""
    tilt, growth, p = math.exp(float(crowd)), math.expm1(float(epsilon)), float(rate)
    count, alpha, chance = SuppressedCount(k, p, float(1 - rate)), 1 + growth / p, p - growth * float(1 - rate)
    best = -math.inf
    for others in range(count.peak(alpha / tilt) + 3):
        parts = [float(crowd) + count.log_excess(others, alpha / tilt), count.log_excess(others, alpha * tilt)]
        best = max(best, math.log(p) + math.log(sum(map(math.exp, parts)) or 1e-320) - math.log1p(tilt))
    if chance > 1e-9:
        rho = (1 + growth) * p / chance
        for others in range(min(count.peak(1 / (rho * tilt)) + 3, 5000)):
            parts = [float(crowd) + count.log_shortfall(others, rho / tilt), count.log_shortfall(others, rho * tilt)]
            best = max(best, math.log(chance) + math.log(sum(map(math.exp, parts)) or 1e-320) - math.log1p(tilt))
    return best


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 15), crowds, st.decimals("0.05", "0.95", places=2).map(Fraction), epsilons)
def test_the_certified_search_finds_what_trying_every_size_finds(
    k: int, crowd: Fraction, rate: Fraction, epsilon: Fraction
) -> None:
    truth = slow_log_delta(k, crowd, rate, epsilon)
    assert truth - 1e-12 <= log_delta(k, crowd, rate, epsilon) <= truth + ROUNDING


@settings(max_examples=100, deadline=None)
@given(sizes, crowds, rates, epsilons, st.sampled_from(["k", "crowd", "rate", "epsilon"]))
def test_delta_falls_with_k_and_epsilon_and_rises_with_the_rate_and_the_crowds_epsilon(
    k: int, crowd: Fraction, rate: Fraction, epsilon: Fraction, name: str
) -> None:
    here = log_delta(k, crowd, rate, epsilon)
    lower, higher = {
        "k": lambda: (log_delta(k + 1, crowd, rate, epsilon), here),
        "epsilon": lambda: (log_delta(k, crowd, rate, epsilon + Fraction(1, 20)), here),
        "rate": lambda: (here, log_delta(k, crowd, rate + Fraction(1, 25), epsilon)),
        "crowd": lambda: (here, log_delta(k, crowd + Fraction(1, 20), rate, epsilon)),
    }[name]()
    assert lower <= higher + ROUNDING


@settings(max_examples=60, deadline=None)
@given(sizes, rates, epsilons)
def test_without_crowd_noise_the_worst_mechanism_is_suppression(k: int, rate: Fraction, epsilon: Fraction) -> None:
    plain = tight_delta.log_delta(k, rate, epsilon)
    assert log_delta(k, 0, rate, epsilon) == pytest.approx(plain, abs=ROUNDING + 1e-11 + 1e-14 * (k + abs(plain)))


@settings(max_examples=60, deadline=None)
@given(sizes, crowds, rates, epsilons)
def test_delta_lies_between_the_floor_and_the_rate_and_below_the_closed_form(
    k: int, crowd: Fraction, rate: Fraction, epsilon: Fraction
) -> None:
    found = log_delta(k, crowd, rate, epsilon)
    assert k * math.log(rate) <= found <= math.log(rate) + 2e-11
    limit = max(-math.log1p(-float(rate)), amplify(crowd, 0, rate)[0])
    if float(epsilon) > limit * (1 + 1e-12):
        assert delta(k, crowd, rate, epsilon) <= chernoff_delta(k, crowd, rate, epsilon)


def test_a_huge_crowd_epsilon_leaves_only_the_sampling() -> None:
    assert delta(20, 10**6, "0.1", 1) == pytest.approx(0.1, rel=1e-9)
    assert delta(20, 200, "0.1", 1) == pytest.approx(0.1, rel=1e-9)


def test_a_huge_epsilon_leaves_only_the_floor() -> None:
    assert delta(4, "0.3", "0.1", 10**6) == pytest.approx(1e-4, rel=1e-9)


def test_a_delta_below_all_floats_is_reported_as_the_smallest_float() -> None:
    assert delta(5000, "0.1", "0.01", 1) == math.ulp(0.0)
    assert -25_000 < log_delta(5000, "0.1", "0.01", 1) < -10_000


def test_noise_on_small_counts_costs_no_delta_once_epsilon_covers_it() -> None:
    limit = amplify(1, 0, "0.1")[0]
    assert histogram_delta(20, "0.1", limit + 1e-6, 1) < delta(20, 1, "0.1", limit + 1e-6) / 2
    assert histogram_delta(20, "0.1", limit - 1e-6, 1) == delta(20, 1, "0.1", limit - 1e-6)
    assert histogram_delta(20, "0.1", 0, 1000) == pytest.approx(0.1, rel=1e-9)


def test_noise_on_small_counts_never_costs_less_than_none() -> None:
    for epsilon in ("0", "0.05", "0.1", "0.3", "2"):
        assert tight_delta.delta(10, "0.2", epsilon) * (1 - 1e-9) <= histogram_delta(10, "0.2", epsilon, "0.2")


@settings(max_examples=25, deadline=None)
@given(st.integers(5, 40), crowds, st.decimals("0.02", "0.5", places=2).map(Fraction))
def test_the_smallest_epsilon_keeps_its_delta_and_hardly_a_smaller_one_does(
    k: int, crowd: Fraction, rate: Fraction
) -> None:
    target = Fraction(1, 10**4)
    if rate**k > target:
        with pytest.raises(Infeasible, match="Raise k"):
            smallest_epsilon(target, k, crowd, rate)
        return
    found = smallest_epsilon(target, k, crowd, rate)
    assert delta(k, crowd, rate, found) <= target
    assert found == 0.0 or delta(k, crowd, rate, found * (1 - 1e-8)) > float(target) * (1 - 1e-6)


@pytest.mark.parametrize(
    ("epsilon", "target", "crowd", "rate"), [("0.5", "1e-6", "0.1", "0.1"), ("1", "1e-12", "0.5", "0.3")]
)
def test_the_smallest_k_is_enough_and_one_less_is_not(epsilon: str, target: str, crowd: str, rate: str) -> None:
    k = smallest_k(epsilon, target, crowd, rate)
    assert delta(k, crowd, rate, epsilon) <= float(target) < delta(k - 1, crowd, rate, epsilon)


def test_no_k_makes_up_for_a_crowd_epsilon_that_sampling_does_not_hide() -> None:
    with pytest.raises(Infeasible, match="for every k"):
        smallest_k("0.1", "1e-6", 2, "0.1")
    assert smallest_k("0.1", "0.07", 2, "0.1") > 1


@pytest.mark.parametrize(("epsilon", "target", "k", "crowd"), [("0.5", "1e-6", 20, "0.1"), ("3", "1e-9", 5, "0")])
def test_the_largest_rate_is_low_enough_and_the_next_one_is_not(epsilon: str, target: str, k: int, crowd: str) -> None:
    rate = largest_rate(epsilon, target, k, crowd)
    assert delta(k, crowd, rate, epsilon) <= float(target)
    assert delta(k, crowd, rate * Fraction(1_000_011, 1_000_000), epsilon) > float(target)


def test_suppression_and_crowd_blending_without_noise_have_the_same_inverses() -> None:
    assert largest_rate(2, "1e-9", 5, 0) == Fraction("0.0158489")
    assert smallest_k("0.5", "1e-6", 0, "0.1") == 10
    assert smallest_epsilon("1e-6", 20, 0, "0.1") == pytest.approx(0.18299, abs=1e-5)


def test_the_search_halves_its_way_to_a_maximum_between_two_slopes() -> None:
    seen: list[int] = []

    def rising(n: int) -> float:
        seen.append(n)
        return math.log(1 + n)

    found = highest(rising, lambda n: math.log(10**6 - n * n / 100), 0, 9_000)
    assert math.exp(found) == pytest.approx(max(1 + n + 10**6 - n * n / 100 for n in range(9_001)), rel=2e-12)
    assert len(seen) < 1000


def test_a_member_drawn_for_sure_is_never_lost_in_the_sample() -> None:
    worst = WorstCrowd(5, Fraction(0), Fraction(1, 10), Fraction(1))
    assert worst.log_delta(Fraction(1)) > replace(worst, member_rate=Fraction(1, 10)).log_delta(Fraction(1))
    assert math.exp(worst.log_removed(Fraction(50))) == pytest.approx(1e-4, rel=1e-9)


def test_an_exact_count_costs_the_rate_at_every_epsilon() -> None:
    for epsilon in ("0.1", "3"):
        assert delta(1, 0, "0.25", epsilon) == pytest.approx(0.25, rel=1e-10)


@pytest.mark.parametrize(
    ("k", "crowd", "rate", "epsilon"),
    [(0, "0", "0.1", "1"), (5, "-1", "0.1", "1"), (5, "0", "1", "1"), (5, "0", "0", "1"), (5, "0", "0.1", "-1")],
)
def test_parameters_outside_their_range_are_refused(k: int, crowd: str, rate: str, epsilon: str) -> None:
    for function in (delta, log_delta):
        with pytest.raises(InvalidParameter):
            function(k, crowd, rate, epsilon)
    with pytest.raises(InvalidParameter):
        sampled_crowd.log_target(1)


@settings(deadline=None)
@given(closed_crowds, closed_rates)
def test_the_published_epsilon_is_rounded_up_and_covers_the_sampling(crowd: Fraction, rate: Fraction) -> None:
    found = Fraction(zero_knowledge_epsilon(crowd, rate))
    truth = rate * (2 - rate) / (1 - rate) * e_to_the(crowd) + 1 - rate
    assert truth <= e_to_the(found) < truth * (1 + Fraction(1, 10**10))
    assert e_to_the(found) * (1 - rate) >= 1  # ε ≥ −ln(1 − rate): adding a person costs no δ


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 80), closed_crowds, closed_rates)
def test_exact_is_below_divergence_is_below_simple(k: int, crowd: Fraction, rate: Fraction) -> None:
    exact = sampled_crowd.delta(k, crowd, rate, zero_knowledge_epsilon(crowd, rate))
    assert exact <= theorem1_delta(k, rate) <= theorem1_simple_delta(k, rate) * (1 + 1e-11)


@pytest.mark.parametrize("rate", ["0.1", "0.4"])
@pytest.mark.parametrize("k", [2, 6])
def test_lemma_2_bounds_the_crowd_that_is_too_small_to_be_ignored(k: int, rate: str) -> None:
    share = Fraction(rate)
    for others in range(math.floor((k - 1) / (share * (2 - share))) + 1):
        truth = share * sum((binomial(others, m, share) for m in range(k - 1, others + 1)), Fraction(0))
        assert truth <= lemma2_delta(k, rate) <= lemma2_simple_delta(k, rate)


@pytest.mark.parametrize("rate", ["0.1", "0.4"])
def test_lemma_1_bounds_the_large_crowd(rate: str) -> None:
    share = Fraction(rate)
    share_needed = share * (2 - share)
    for others in (1, 5, 30):
        truth = sum(
            (binomial(others + 1, j, share) for j in range(others + 2) if j > share_needed * (others + 1)), Fraction(0)
        )
        assert truth <= lemma1_delta(others, rate) <= lemma1_simple_delta(others, rate)


def test_a_closed_form_is_refused_where_it_does_not_hold() -> None:
    with pytest.raises(InvalidParameter, match="exact delta"):
        chernoff_delta(20, 0, "0.1", "0.1")  # below −ln(1 − rate)
    with pytest.raises(InvalidParameter, match="exact delta"):
        chernoff_delta(20, 3, "0.1", "0.5")  # below ln(1 + rate·(e³ − 1))
    assert chernoff_delta(20, 3, "0.1", "1.1") <= 1.0


def test_the_divergence_of_equal_coins_is_nothing() -> None:
    assert divergence(0.3, 0.3) == 0.0
    assert divergence(1.0, 0.5) == pytest.approx(math.log(2))


@pytest.mark.parametrize(("crowd", "rate"), [("-1", "0.1"), ("301", "0.1"), ("1", "0"), ("1", "1")])
def test_closed_forms_refuse_parameters_outside_their_range(crowd: str, rate: str) -> None:
    with pytest.raises(InvalidParameter):
        zero_knowledge_epsilon(crowd, rate)
