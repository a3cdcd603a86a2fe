"""Binomial masses and tails against exact fractions and sixty digits."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.accounting.suppression.binomial import (
    log_lower_tail,
    log_lower_tail_bound,
    log_mass,
    log_upper_tail,
    tail_sums,
    upper_tails,
)
from tests.theorems.exact_laws import binomial

RATES = st.fractions(min_value=Fraction(1, 10**9), max_value=1 - Fraction(1, 10**9), max_denominator=10**9)


def logarithm(value: Fraction) -> mpmath.mpf:
    with mpmath.workdps(700):
        return mpmath.log(mpmath.mpf(value.numerator) / value.denominator)


def sixty_digit_upper_tail(m: int, n: int, rate: Fraction) -> mpmath.mpf:
    with mpmath.workdps(60):
        p = mpmath.mpf(rate.numerator) / rate.denominator
        term = total = mpmath.binomial(n, m) * p**m * (1 - p) ** (n - m)
        for j in range(m, n):
            term *= mpmath.mpf(n - j) / (j + 1) * p / (1 - p)
            total += term
            if term < total * mpmath.mpf(10) ** -50:
                break
        return mpmath.log(total)


def assert_close(found: float, truth: mpmath.mpf) -> None:
    assert abs(found - truth) <= 1e-12 * abs(float(truth)) + 1e-300


@given(st.integers(1, 60), RATES, st.data())
def test_masses_and_tails_of_small_counts_equal_exact_fractions(n: int, rate: Fraction, data: st.DataObject) -> None:
    j = data.draw(st.integers(0, n))
    p, q = float(rate), float(1 - rate)
    masses = [binomial(n, i, rate) for i in range(n + 1)]
    assert_close(log_mass(j, n, p, q), logarithm(masses[j]))
    assert_close(log_lower_tail(j, n, p, q), logarithm(sum(masses[: j + 1], Fraction(0))))
    assert_close(log_upper_tail(j, n, p, q), logarithm(sum(masses[j:], Fraction(0))))


@pytest.mark.parametrize(
    ("m", "n", "rate"),
    [
        (1000, 2502, "0.01"),  # 1e-1278
        (3000, 3100, "0.0001"),  # far below the smallest float
        (2000, 3768, "0.3"),
        (50, 4570, "0.001"),
        (500, 1000, "0.5"),
        (990, 1000, "0.99"),
        (600, 1000, "0.000001"),
        (10_000, 99_000, "0.1"),
    ],
)
def test_tails_far_out_have_twelve_digits_of_their_logarithm(m: int, n: int, rate: str) -> None:
    p, q = float(Fraction(rate)), float(1 - Fraction(rate))
    found, truth = log_upper_tail(m, n, p, q), sixty_digit_upper_tail(m, n, Fraction(rate))
    assert abs(found - truth) <= 1e-12 * max(1.0, abs(float(truth)))


@pytest.mark.parametrize(("m", "n", "rate"), [(1000, 2502, "0.01"), (300, 461, "0.05"), (20, 44, "0.1")])
def test_the_absolute_error_of_a_logarithm_stays_below_one_part_in_a_trillion(m: int, n: int, rate: str) -> None:
    p, q = float(Fraction(rate)), float(1 - Fraction(rate))
    assert abs(log_upper_tail(m, n, p, q) - sixty_digit_upper_tail(m, n, Fraction(rate))) <= 1e-12


@given(st.integers(1, 40), RATES, st.data())
def test_the_sums_of_a_tail_are_its_mass_and_its_mean_excess(n: int, rate: Fraction, data: st.DataObject) -> None:
    m = data.draw(st.integers(0, n))
    masses = [binomial(n, j, rate) / binomial(n, m, rate) for j in range(m, n + 1)]
    total, excess = tail_sums(m, n, float(rate) / float(1 - rate))
    assert total == pytest.approx(float(sum(masses)), rel=1e-13)
    assert excess == pytest.approx(float(sum(i * mass for i, mass in enumerate(masses))), rel=1e-13)


@pytest.mark.parametrize(("m", "n", "rate"), [(1000, 1979, 0.5), (5000, 9000, 0.5), (100_000, 950_000, 0.1)])
def test_long_sums_equal_the_plain_loop(m: int, n: int, rate: float) -> None:
    odds = rate / (1 - rate)
    term, total, excess = 1.0, [1.0], [0.0]
    for i in range(1, n - m + 1):
        term *= (n - m - i + 1) * odds / (m + i)
        total.append(term)
        excess.append(i * term)
    assert tail_sums(m, n, odds) == pytest.approx((math.fsum(total), math.fsum(excess)), rel=1e-11)


@given(st.integers(1, 200), RATES, st.data())
def test_chernoff_bounds_the_lower_tail(n: int, rate: Fraction, data: st.DataObject) -> None:
    m = data.draw(st.integers(-1, n))
    p, q = float(rate), float(1 - rate)
    assert log_lower_tail(m, n, p, q) <= log_lower_tail_bound(m, n, p, q) + 1e-12


def test_impossible_events_have_probability_zero_and_certain_ones_one() -> None:
    assert log_mass(-1, 3, 0.5, 0.5) == log_mass(4, 3, 0.5, 0.5) == -math.inf
    assert log_upper_tail(4, 3, 0.5, 0.5) == log_lower_tail(-1, 3, 0.5, 0.5) == -math.inf
    assert log_upper_tail(0, 3, 0.5, 0.5) == log_lower_tail(3, 3, 0.5, 0.5) == 0.0


def test_a_coin_that_never_or_always_falls_one_way_is_no_exception() -> None:
    assert log_mass(0, 3, 0.0, 1.0) == log_mass(3, 3, 1.0, 0.0) == 0.0
    assert log_mass(1, 3, 0.0, 1.0) == log_mass(1, 3, 1.0, 0.0) == -math.inf
    assert log_upper_tail(1, 3, 0.0, 1.0) == log_lower_tail(2, 3, 1.0, 0.0) == -math.inf
    assert log_upper_tail(3, 3, 1.0, 0.0) == log_lower_tail(0, 3, 0.0, 1.0) == 0.0


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 50), (49, 50), (19, 10**5), (97, 2 * 10**8), (5000, 7 * 10**9)])
def test_many_tails_at_once_are_the_tails_one_by_one(m: int, n: int) -> None:
    shares = np.linspace(-5.0, 5.0, 41) / math.sqrt(m)
    chances = np.clip(np.concatenate((m / n * (1.0 + shares), np.geomspace(1e-12, 1.0, 40), [0.0])), 0.0, 1.0)
    one_by_one = [math.exp(log_upper_tail(m, n, float(p), 1.0 - float(p))) for p in chances]
    assert upper_tails(m, n, chances) == pytest.approx(one_by_one, rel=0, abs=1e-10)
