"""Crowds tried one by one: they agree with the accountant's closed forms, and no law that was tried is worse."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.blending import robust, sampled_crowd
from incrowd.accounting.suppression import theorems, tight_delta
from incrowd.core.loss import Crowd, RobustlySampled
from incrowd.core.unit import Adjacency
from incrowd.verifier.slow_accountant.crowds import (
    biased_delta,
    clamped,
    noisy_delta,
    replaced_delta,
    smooth_delta,
    suppression_delta,
    suppression_floor,
    theorem1_delta,
    theorem2,
)
from tests.audit.auditing import Claim, distance, published

TENTH = Fraction(1, 10)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(1, 19), st.floats(0.01, 3.0))
def test_suppression_is_the_tight_curve_and_its_floor_is_below(k: int, twentieths: int, epsilon: float) -> None:
    rate = Fraction(twentieths, 20)
    found = suppression_delta(k, rate, epsilon)
    assert found is not None
    assert found == pytest.approx(tight_delta.delta(k, rate, epsilon), rel=1e-8, abs=1e-300)
    assert suppression_floor(k, rate, epsilon) <= found * (1 + 1e-9)


def test_suppression_is_the_distance_of_laws_that_are_written_by_another_hand() -> None:
    k, rate, epsilon = 4, Fraction(1, 3), 0.6
    claim = Claim(k, rate, epsilon)
    laws = [published(claim, n) for n in range(60)]
    worst = max(
        max(distance(laws[n], laws[n - 1], epsilon), distance(laws[n - 1], laws[n], epsilon)) for n in range(1, 60)
    )
    assert suppression_delta(k, rate, epsilon) == pytest.approx(worst, rel=1e-9)


def test_the_floor_holds_where_the_crowds_are_too_many_to_try() -> None:
    k, rate, epsilon = 40, Fraction(1, 1000), 0.001
    assert suppression_delta(k, rate, epsilon) is None
    assert suppression_floor(k, rate, epsilon) == pytest.approx(tight_delta.delta(k, rate, epsilon), rel=1e-6)
    assert suppression_floor(10**7, rate, epsilon) == 0.0


@pytest.mark.parametrize(("k", "rate", "epsilon"), [(3, "1/4", 0.5), (5, "1/2", 1.0), (2, "1/10", 0.3)])
def test_replaced_rows_show_more_than_added_ones_and_no_more_than_is_proved(k: int, rate: str, epsilon: float) -> None:
    found, single = replaced_delta(k, Fraction(rate), epsilon), suppression_delta(k, Fraction(rate), epsilon)
    assert found is not None
    assert single is not None
    assert single < found <= tight_delta.delta(k, Fraction(rate), epsilon, Adjacency.REPLACE) * (1 + 1e-9)


def test_pairs_of_crowds_that_are_too_many_are_not_tried() -> None:
    assert replaced_delta(60, TENTH, 0.5) is None


@pytest.mark.parametrize("k", [1, 2, 5, 20])
@pytest.mark.parametrize("rate", [TENTH, Fraction(1, 2)])
@pytest.mark.parametrize("epsilon", [0.2, 0.75, 1.5])
def test_noisy_small_counts_never_exceed_the_bound_and_meet_it_where_noise_is_free(
    k: int, rate: Fraction, epsilon: float
) -> None:
    found = noisy_delta(k, rate, epsilon, 1.0)
    bound = sampled_crowd.histogram_delta(k, rate, epsilon, 1)
    assert found is not None
    assert found <= bound * (1 + 1e-9)
    if epsilon >= max(math.log1p(float(rate) * math.expm1(1.0)), -math.log1p(-float(rate))):
        assert math.isclose(found, bound, rel_tol=1e-6)


def test_too_many_people_to_try_are_left_undecided() -> None:
    assert noisy_delta(300, Fraction(1, 1000), 0.01, 1.0) is None
    assert noisy_delta(500, TENTH, 1.0, 1.0) is None


def test_clamped_laws_sum_to_one_and_neighbors_are_within_their_ratio() -> None:
    law = clamped(6, 0.5)
    assert abs(law.sum(axis=1) - 1).max() < 1e-12
    assert (law[1:] / law[:-1]).max() <= math.exp(0.5) * (1 + 1e-12)
    assert (law[:-1] / law[1:]).max() <= math.exp(0.5) * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 25), st.integers(1, 9), st.integers(0, 5), st.floats(0.01, 3.0))
def test_a_biased_sample_is_the_accountant_s(k: int, tenths: int, irregular: int, epsilon: float) -> None:
    high = Fraction(tenths, 10)
    if irregular and irregular >= k - 1:
        irregular = 0
    bias = robust.Bias(high / 2, high, irregular, Fraction(1) if irregular else high)
    loss = RobustlySampled(bias.low, bias.high, bias.irregular, bias.max_rate, Crowd(k))
    assert biased_delta(loss, epsilon) == pytest.approx(robust.delta(k, 0, bias, epsilon), rel=1e-8, abs=1e-14)


def test_irregular_people_who_fill_the_crowd_leave_nobody_to_hide_among() -> None:
    assert biased_delta(RobustlySampled(TENTH, TENTH, 4, Fraction(1), Crowd(5)), 1.0) == 1.0


def test_no_choice_of_unequal_rates_is_worse_than_what_is_derived() -> None:
    loss = RobustlySampled(Fraction(1, 10), Fraction(3, 10), 0, Fraction(3, 10), Crowd(3))
    derived = biased_delta(loss, 0.4)
    assert derived is not None
    worst = 0.0
    for size in range(2, 7):
        for rates in product((0.1, 0.2, 0.3), repeat=size):
            others = np.ones(1)
            for rate in rates[1:]:
                others = np.append(others * (1 - rate), 0.0) + np.append(0.0, others * rate)
            absent, present = np.append(others, 0.0), np.append(0.0, others)
            mixed = rates[0] * present + (1 - rates[0]) * absent
            for left, right in ((mixed, absent), (absent, mixed)):
                tail = left[3:] - math.exp(0.4) * right[3:]
                rare = left[:3].sum() - math.exp(0.4) * right[:3].sum()
                worst = max(worst, float(np.maximum(0, tail).sum() + max(0, rare)))
    assert 0.3 * derived < worst <= derived * (1 + 1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 60), st.integers(1, 9), st.floats(0.05, 2.0))
def test_theorems_1_and_6_are_the_accountant_s(k: int, tenths: int, above: float) -> None:
    rate = Fraction(tenths, 10)
    epsilon = above - math.log1p(-float(rate))
    assert theorem1_delta(k, rate, epsilon) == pytest.approx(
        theorems.theorem1_delta(k, rate, Fraction(epsilon)), rel=1e-7
    )
    assert smooth_delta(k, rate, epsilon) == pytest.approx(
        theorems.theorem6_delta(k, rate, Fraction(epsilon)), rel=1e-7
    )


def test_crowds_that_are_too_many_are_not_tried() -> None:
    assert theorem1_delta(20, Fraction(1, 1000), 0.001) is None


@pytest.mark.parametrize(("irregular", "largest"), [(5, "1"), (0, "3/25"), (2, "1/2")])
def test_theorem_2_is_the_accountant_s(irregular: int, largest: str) -> None:
    bias = robust.Bias(Fraction(1, 10), Fraction(3, 25), irregular, Fraction(largest))
    epsilon, delta = theorem2(RobustlySampled(bias.low, bias.high, irregular, bias.max_rate, Crowd(50)))
    assert epsilon == pytest.approx(robust.zero_knowledge_epsilon(0, bias), rel=1e-9)
    assert delta == pytest.approx(robust.theorem2_delta(50, bias), rel=1e-9)
