"""What a secret sample saves: rounding, inverses, refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.amplification import Sampling, amplify, before_sampling
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter
from tests.theorems.exact_laws import e_to_the

epsilons = st.decimals("0.0001", "20", places=4).map(Fraction)
rates = st.decimals("0.0001", "0.9999", places=4).map(Fraction)
deltas = st.decimals("0", "1", places=6).map(Fraction)


@settings(deadline=None)
@given(epsilons, deltas, rates)
def test_the_amplified_loss_is_never_below_the_truth_and_hardly_above(
    epsilon: Fraction, delta: Fraction, rate: Fraction
) -> None:
    amplified, failing = amplify(epsilon, delta, rate)
    truth = 1 + rate * (e_to_the(epsilon) - 1)
    assert e_to_the(Fraction(amplified)) >= truth
    assert e_to_the(Fraction(amplified) * (1 - Fraction(1, 10**12))) < truth
    assert rate * delta <= failing <= float(rate * delta) * (1 + 1e-12)


@settings(deadline=None)
@given(epsilons, deltas, rates)
def test_what_may_be_spent_on_the_sample_keeps_the_guarantee_for_everyone(
    epsilon: Fraction, delta: Fraction, rate: Fraction
) -> None:
    inner, allowed = before_sampling(epsilon, delta, rate)
    assert 1 + rate * (e_to_the(Fraction(inner)) - 1) <= e_to_the(epsilon)
    assert rate * Fraction(allowed) <= delta
    assert inner >= float(epsilon)


@settings(deadline=None)
@given(epsilons, rates, rates)
def test_sampling_less_never_costs_more(epsilon: Fraction, one: Fraction, other: Fraction) -> None:
    low, high = sorted((one, other))
    assert amplify(epsilon, 0, low)[0] <= amplify(epsilon, 0, high)[0] * (1 + 1e-12)


@settings(deadline=None)
@given(epsilons, rates, rates)
def test_a_sample_of_a_sample_is_amplified_twice(epsilon: Fraction, one: Fraction, other: Fraction) -> None:
    twice = amplify(Fraction(amplify(epsilon, 0, one)[0]), 0, other)[0]
    assert twice == pytest.approx(amplify(epsilon, 0, one * other)[0], rel=1e-11)


def test_sampling_nobody_out_saves_nothing() -> None:
    assert amplify("0.5", "1e-5", 1)[0] == 0.5


def test_huge_losses_stay_finite_and_tiny_deltas_stay_positive() -> None:
    assert amplify(10_000, 0, "0.5")[0] >= 10_000 + math.log(0.5)
    assert before_sampling(10_000, 0, "0.5")[0] == 10_000.0
    assert amplify(1, Fraction(1, 10**400), "0.5")[1] > 0.0


@pytest.mark.parametrize("change", [amplify, before_sampling])
def test_only_poisson_samples_of_added_or_removed_people_are_amplified(change: object) -> None:
    assert callable(change)
    with pytest.raises(InvalidParameter, match="independently"):
        change(1, 0, "0.1", sampling=Sampling.FIXED_SIZE)
    with pytest.raises(InvalidParameter, match="added or removed"):
        change(1, 0, "0.1", adjacency=Adjacency.REPLACE)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate"),
    [("-1", "0", "0.1"), ("1", "-0.1", "0.1"), ("1", "2", "0.1"), ("1", "0", "0"), ("1", "0", "1.1")],
)
def test_parameters_outside_their_range_are_refused(epsilon: str, delta: str, rate: str) -> None:
    with pytest.raises(InvalidParameter):
        amplify(epsilon, delta, rate)
