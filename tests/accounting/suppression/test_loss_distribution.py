"""Loss distributions: pessimistic everywhere, exact at the knots, and right in relative terms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.accounting.suppression.loss_distribution import (
    LossDistribution,
    ProfilePair,
    connect_the_dots,
    randomized_response,
)
from incrowd.errors import Infeasible, InvalidParameter


def responses_together(epsilon: float, times: int, at: float) -> float:
    """Randomized response repeated: the binomial sum, term by term."""
    p = 1 / (1 + math.exp(-epsilon))
    return math.fsum(
        math.comb(times, j) * p**j * (1 - p) ** (times - j) * -math.expm1(at - (2 * j - times) * epsilon)
        for j in range(times + 1)
        if (2 * j - times) * epsilon > at
    )


def gaussian(sigma: float) -> ProfilePair:
    def profile(epsilon: float) -> float:
        def upper(x: float) -> float:
            return math.erfc(x / math.sqrt(2)) / 2

        shift = 1 / (2 * sigma)
        return upper(epsilon * sigma - shift) - math.exp(epsilon) * upper(epsilon * sigma + shift)

    return ProfilePair(profile, profile, 8 / sigma, 8 / sigma)


@given(st.integers(1, 12), st.floats(0.0, 3.0), st.sampled_from([0.1, 0.25, 0.5]))
def test_repeated_randomized_response_is_the_binomial_sum(times: int, at: float, epsilon: float) -> None:
    found = LossDistribution.of(randomized_response(epsilon), 0.05).repeated(times).delta(at)
    truth = responses_together(epsilon, times, at)
    assert truth <= found <= truth * (1 + 1e-8) + 1e-9


@given(st.floats(0.0, 3.0), st.sampled_from([1.0, 2.0, 5.0]))
def test_one_discretized_profile_lies_above_the_profile_and_meets_it_at_the_knots(at: float, sigma: float) -> None:
    profile = gaussian(sigma)
    found = LossDistribution.of(profile, 0.1)
    assert profile.forward(at) <= found.delta(at)
    knot = round(at / 0.1) * 0.1
    assert found.delta(knot) == pytest.approx(profile.forward(knot), rel=1e-8, abs=1e-14)


@given(st.integers(2, 40), st.floats(0.0, 3.0))
def test_composed_gaussian_noise_is_the_gaussian_of_the_smaller_scale(times: int, at: float) -> None:
    found = LossDistribution.of(gaussian(8.0), 0.01).repeated(times).delta(at)
    truth = gaussian(8.0 / math.sqrt(times)).forward(at)
    assert truth <= found <= truth * 1.05 + 1e-9


def test_composition_does_not_depend_on_the_order() -> None:
    left, right = (LossDistribution.of(profile, 0.05) for profile in (gaussian(2.0), randomized_response(0.3)))
    one, other = left.composed(right), right.composed(left)
    assert one.delta(0.7) == pytest.approx(other.delta(0.7), rel=1e-13)
    assert left.repeated(5).delta(1.0) == pytest.approx(
        left.composed(left).composed(left).composed(left).composed(left).delta(1.0), rel=1e-10
    )


def test_deltas_far_below_the_noise_of_a_fourier_transform_are_right() -> None:
    found = LossDistribution.of(randomized_response(5.0), 0.5).repeated(30)
    truth = responses_together(5.0, 30, 149.0)
    assert found.delta(149.0) == pytest.approx(truth, rel=1e-8)
    tiny = LossDistribution.of(ProfilePair(lambda x: 1e-60, lambda x: 1e-60, 1.0, 1.0), 0.5).repeated(3)
    assert tiny.delta(1.0) == pytest.approx(3e-60, rel=1e-8)


def test_masses_too_small_to_multiply_are_accounted_for_above_not_lost() -> None:
    faint = LossDistribution.of(ProfilePair(lambda x: 1e-200 * max(0.0, 1 - x), lambda x: 1e-200, 1.0, 1.0), 0.25)
    assert 0.0 < faint.composed(faint).delta(1.5) <= 1e-280


def test_cutting_the_ends_moves_mass_only_upwards() -> None:
    whole = LossDistribution(0.1, -5, np.array([1e-14, 0.3, 0.4, 0.3, 1e-30, 1e-31]), 1e-12)
    cut = whole.trimmed()
    assert (cut.lowest, len(cut.masses)) == (-4, 3)
    assert cut.masses.sum() + cut.infinite == pytest.approx(whole.masses.sum() + whole.infinite, rel=1e-15)
    assert all(cut.delta(x) >= whole.delta(x) for x in (-1.0, -0.35, 0.0, 0.05, 2.0))
    assert cut.delta(0.0) == pytest.approx(whole.delta(0.0), rel=1e-10)


def test_a_distribution_that_is_all_top_becomes_infinite() -> None:
    nothing = LossDistribution(0.1, 0, np.array([1e-20, 1e-20]), 1.0).trimmed()
    assert nothing.delta(5.0) == 1.0


@given(st.floats(1e-12, 0.3), st.integers(1, 6))
def test_epsilon_inverts_delta(delta: float, times: int) -> None:
    found = LossDistribution.of(randomized_response(0.4, 1e-13), 0.05).repeated(times)
    epsilon = found.epsilon(delta)
    assert found.delta(epsilon) <= delta
    assert epsilon == 0.0 or found.delta(epsilon * (1 - 1e-9)) >= delta * (1 - 1e-6)


def test_a_delta_below_the_infinite_mass_has_no_epsilon() -> None:
    with pytest.raises(Infeasible, match="no epsilon"):
        LossDistribution.of(randomized_response(1.0, 1e-3), 0.1).epsilon(1e-4)


def test_a_profile_without_any_reach_is_total_variation_alone() -> None:
    flat = LossDistribution.of(ProfilePair(lambda x: 0.2, lambda x: 0.2, 0.0, 0.0), 0.1)
    assert flat.delta(0.0) == flat.delta(9.0) == pytest.approx(0.2, rel=1e-9)
    assert flat.masses.sum() == pytest.approx(0.8, rel=1e-9)


def test_a_dent_that_rounding_made_in_a_profile_is_lifted_not_believed() -> None:
    steps = np.array([0.0, 0.5, 1.0])
    dots = connect_the_dots((steps, np.array([0.2, 0.15, 0.0])), (steps, np.array([0.2, 0.15, 0.0])))
    assert dots.masses.min() >= 0.0
    straight = dots.masses[dots.losses > 0] @ (1 - np.exp(-dots.losses[dots.losses > 0]))
    assert straight + dots.infinite >= 0.2


def test_grids_do_not_mix() -> None:
    with pytest.raises(InvalidParameter, match="same step"):
        LossDistribution.of(gaussian(1.0), 0.1).composed(LossDistribution.of(gaussian(1.0), 0.2))


@pytest.mark.parametrize("step", [0.0, -1.0, math.inf, math.nan])
def test_a_step_is_positive(step: float) -> None:
    with pytest.raises(InvalidParameter, match="step"):
        LossDistribution.of(gaussian(1.0), step)


@pytest.mark.parametrize(("epsilon", "delta"), [(-1.0, 0.0), (math.inf, 0.0), (1.0, 2.0), (1.0, -0.1)])
def test_a_response_needs_a_guarantee_that_means_something(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidParameter):
        randomized_response(epsilon, delta)


def test_nothing_is_repeated_less_than_once() -> None:
    with pytest.raises(InvalidParameter, match="at least once"):
        LossDistribution.of(gaussian(1.0), 0.1).repeated(0)
