"""Digits of chances against 100-digit arithmetic."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.noise.chance import VANISHING, digits_of, exp_enclosure, exponential, logistic, rational

exponents = st.fractions(min_value=Fraction(1, 10**12), max_value=300, max_denominator=10**15)


@given(exponents, st.sampled_from([1, 7, 64, 128, 192]))
def test_digits_of_an_exponential_are_right(x: Fraction, bits: int) -> None:
    with mpmath.workdps(300):
        assert exponential(x)(bits) == int(mpmath.floor(mpmath.exp(-_real(x)) * 2**bits))


@given(exponents, st.sampled_from([1, 7, 64, 128, 192]))
def test_digits_of_a_logistic_are_right(x: Fraction, bits: int) -> None:
    with mpmath.workdps(300):
        assert logistic(x)(bits) == int(mpmath.floor(2**bits / (1 + mpmath.exp(_real(x)))))


@given(st.fractions(min_value=0, max_value=1), st.integers(1, 200))
def test_digits_of_a_fraction_are_right(probability: Fraction, bits: int) -> None:
    digits = rational(probability)(bits)
    assert Fraction(digits, 2**bits) <= probability < Fraction(digits + 1, 2**bits)


@given(exponents, st.integers(5, 60))
def test_an_enclosure_holds_the_truth_and_is_narrow(x: Fraction, digits: int) -> None:
    low, high = exp_enclosure(x, digits)
    with mpmath.workdps(300):
        truth = mpmath.exp(-_real(x))
        assert _real(low) < truth < _real(high)
    assert high - low <= high * x * Fraction(4, 10 ** (digits - 1)) + high * Fraction(4, 10 ** (digits - 1))


def test_an_enclosure_of_nearly_nothing_still_holds_the_truth() -> None:
    low, high = exp_enclosure(Fraction(VANISHING + 1), 20)
    assert low == 0
    with mpmath.workdps(50):
        assert 0 < mpmath.exp(-(VANISHING + 1)) < _real(high)


def test_certainty_has_a_one_before_the_point() -> None:
    assert exponential(Fraction(0))(64) == 2**64


def test_precision_doubles_until_both_ends_agree() -> None:
    asked: list[int] = []

    def enclose(digits: int) -> tuple[Fraction, Fraction]:
        asked.append(digits)
        error = Fraction(1, 10**digits)
        return Fraction(1, 2) + Fraction(1, 10**60) - error, Fraction(1, 2) + Fraction(1, 10**60) + error

    assert digits_of(enclose, 1) == 1
    assert asked == [10, 20, 40, 80]


@pytest.mark.parametrize("x", [Fraction(64), Fraction(10**30)])
def test_a_chance_below_the_last_digit_shows_no_digit(x: Fraction) -> None:
    assert exponential(x)(64) == 0
    assert logistic(x)(64) == 0


@pytest.mark.parametrize(
    ("epsilon", "at_zero", "at_three", "beyond_four"),
    [
        ("0.1", "0.04995837495787997219838637", "0.03701007444444673274611275", "0.6368319458340074681681048"),
        ("0.5", "0.2449186624037091292778011", "0.05464874036547883777236687", "0.1021891466902743926270854"),
        ("1", "0.4621171572600097585023185", "0.02300745850246703911529055", "0.009851667912071456723384177"),
        ("2", "0.7615941559557648881194583", "0.001887803171811730256933603", "0.00007997625095039551153121339"),
    ],
)
def test_the_chances_of_integer_laplace_noise_agree_with_reference_figures(
    epsilon: str, at_zero: str, at_three: str, beyond_four: str
) -> None:
    x, one = Fraction(epsilon), 2**200
    positive = Fraction(logistic(x)(200), one)  # P[z ≥ 1]
    zero = 1 - 2 * positive
    assert float(zero) == pytest.approx(float(at_zero), rel=1e-15)
    assert float(zero * exponential(3 * x)(200) / one) == pytest.approx(float(at_three), rel=1e-15)
    assert float(2 * positive * exponential(4 * x)(200) / one) == pytest.approx(float(beyond_four), rel=1e-15)


def _real(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator
