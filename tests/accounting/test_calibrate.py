"""Noise from a budget or from a wanted error, checked against exact tails."""

import math
from fractions import Fraction

import pytest

from incrowd.accounting.additive import (
    gaussian_error,
    laplace_error,
    laplace_for_error,
)
from incrowd.core.loss import Gaussian, Laplace
from incrowd.errors import Infeasible


def laplace_miss(scale: Fraction, error: int) -> float:
    masses = [math.exp(-abs(z) / scale) for z in range(-4000, 4001)]
    return sum(mass for z, mass in zip(range(-4000, 4001), masses, strict=True) if abs(z) > error) / sum(masses)


@pytest.mark.parametrize("error", [0, 1, 5, 40])
@pytest.mark.parametrize("confidence", ["0.9", "0.95", "0.999"])
def test_the_widest_noise_for_an_error_keeps_it(error: int, confidence: str) -> None:
    found = laplace_for_error(error, confidence)
    miss = 1 - float(confidence)
    assert laplace_miss(found.noise.scale, error) <= miss * (1 + 1e-9)
    assert laplace_miss(found.noise.scale * Fraction(1001, 1000), error) > miss
    assert laplace_error(Laplace(found.noise.scale), confidence) == error


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7), Fraction(100)])
def test_the_stated_error_is_the_least_that_holds(scale: Fraction) -> None:
    error = laplace_error(Laplace(scale), "0.95")
    assert laplace_miss(scale, error) <= 0.05
    assert error == 0 or laplace_miss(scale, error - 1) > 0.05


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(30)])
def test_the_gaussian_error_holds(scale: Fraction) -> None:
    error = gaussian_error(Gaussian(scale), "0.95", answers=10)
    masses = {z: math.exp(-(z**2) / (2 * float(scale) ** 2)) for z in range(-2000, 2001)}
    miss = sum(mass for z, mass in masses.items() if abs(z) > error) / sum(masses.values())
    assert 10 * miss <= 0.05


def test_more_answers_need_a_wider_interval() -> None:
    assert laplace_error(Laplace(Fraction(5)), "0.95", 1000) > laplace_error(Laplace(Fraction(5)), "0.95", 1)


def test_an_accuracy_no_noise_can_give_is_infeasible() -> None:
    with pytest.raises(Infeasible):
        laplace_for_error(0, 1 - Fraction(1, 10 ** (10**6)))
