"""The exact curves of integer noise, against sums over all outcomes."""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.additive import gaussian_delta, gaussian_epsilon, laplace_delta, laplace_epsilon
from incrowd.accounting.concentrated import delta_of_rho
from incrowd.core.loss import Gaussian, Laplace

scales = st.fractions(min_value=Fraction(1, 4), max_value=20, max_denominator=20)
sensitivities = st.integers(1, 6)
epsilons = st.floats(min_value=0.0, max_value=4.0)


def hockey_stick(weight: "mpmath.mpf", shift: int, epsilon: float, reach: int) -> "mpmath.mpf":
    """δ by definition: the sum of max(0, P[z] − e^ε·P[z − shift]) over all z within reach."""
    total = sum(weight(z) for z in range(-2 * reach, 2 * reach + 1))
    factor = mpmath.exp(mpmath.mpf(epsilon))
    over = (max(mpmath.mpf(0), weight(z) - factor * weight(z - shift)) for z in range(-reach, reach + 1))
    return sum(over) / total


@settings(max_examples=40, deadline=None)
@given(scales, sensitivities, epsilons)
def test_laplace_noise_never_claims_less_than_the_sum_over_all_outcomes(
    scale: Fraction, sensitivity: int, epsilon: float
) -> None:
    inverse = mpmath.mpf(scale.denominator) / scale.numerator
    truth = hockey_stick(lambda z: mpmath.exp(-abs(z) * inverse), sensitivity, epsilon, 60 * math.ceil(scale) + 20)
    claimed = laplace_delta(Laplace(scale, sensitivity), epsilon)
    assert truth * (1 - mpmath.mpf(10) ** -12) <= claimed <= truth * (1 + mpmath.mpf(10) ** -7) + 1e-14


@settings(max_examples=40, deadline=None)
@given(scales, sensitivities, epsilons)
def test_gaussian_noise_never_claims_less_than_the_sum_over_all_outcomes(
    scale: Fraction, sensitivity: int, epsilon: float
) -> None:
    sigma = mpmath.mpf(scale.numerator) / scale.denominator
    reach = 14 * math.ceil(scale) + 20
    truth = hockey_stick(lambda z: mpmath.exp(-z * z / (2 * sigma**2)), sensitivity, epsilon, reach)
    claimed = gaussian_delta(Gaussian(scale, sensitivity), epsilon)
    assert truth * (1 - mpmath.mpf(10) ** -12) <= claimed
    if truth > 1e-40:
        assert claimed <= truth * (1 + mpmath.mpf(10) ** -6)


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_laplace_noise_is_pure_from_its_epsilon_on(sensitivity: int) -> None:
    noise = Laplace(Fraction(2), sensitivity)
    assert laplace_delta(noise, sensitivity / 2) == 0.0
    assert laplace_delta(noise, sensitivity / 2 - 1e-9) > 0.0


@given(scales, sensitivities, st.floats(min_value=1e-12, max_value=0.3))
@settings(max_examples=30, deadline=None)
def test_epsilon_and_delta_are_inverse(scale: Fraction, sensitivity: int, delta: float) -> None:
    laplace, gaussian = Laplace(scale, sensitivity), Gaussian(scale, sensitivity)
    assert laplace_delta(laplace, laplace_epsilon(laplace, delta)) <= delta
    assert gaussian_delta(gaussian, gaussian_epsilon(gaussian, delta)) <= delta


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_the_exact_gaussian_curve_is_below_the_concentrated_one(epsilon: float) -> None:
    noise = Gaussian(Fraction(5), 2)
    assert gaussian_delta(noise, epsilon) <= delta_of_rho(Fraction(4, 50), epsilon)


def test_very_wide_noise_falls_back_to_concentration() -> None:
    noise = Gaussian(Fraction(10**7), 10**6)
    assert gaussian_delta(noise, 0.5) == delta_of_rho(Fraction(1, 200), 0.5)


def test_a_huge_sensitivity_is_bounded_without_summing_forever() -> None:
    assert 0.0 < laplace_delta(Laplace(Fraction(10**9), 10**9), 0.5) <= 1.0
