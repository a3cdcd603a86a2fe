"""Reaches of noise against sums of 60 digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from incrowd.noise.tails import gaussian_reach, laplace_reach

CASES = [
    (scale, chance)
    for scale in (Fraction(1, 10), Fraction(1), Fraction(7, 3), Fraction(50))
    for chance in (Fraction(1, 10), Fraction(1, 10**6), Fraction(1, 10**12), Fraction(1, 10**40))
]


@pytest.mark.parametrize(("scale", "chance"), CASES)
def test_the_reach_of_laplace_noise_is_the_least(scale: Fraction, chance: Fraction) -> None:
    reach = laplace_reach(scale, chance)
    with mpmath.workdps(60):
        assert _laplace_tail(scale, reach) <= _real(chance)
        assert reach == 1 or _laplace_tail(scale, reach - 1) > _real(chance)


@pytest.mark.parametrize(("scale", "chance"), CASES)
def test_the_reach_of_gaussian_noise_is_far_enough_and_nearly_the_least(scale: Fraction, chance: Fraction) -> None:
    reach = gaussian_reach(scale, chance)
    with mpmath.workdps(60):
        assert _gaussian_tail(scale, reach) <= _real(chance)
        nearer = int(reach * (0.99 if chance < 0.01 else 0.85)) - 1
        if nearer >= 1:
            assert _gaussian_tail(scale, nearer) > _real(chance)


def test_a_chance_that_one_already_meets_gives_one() -> None:
    assert laplace_reach(Fraction(1, 100), Fraction(1, 10**9)) == 1
    assert gaussian_reach(Fraction(1, 1000), Fraction(1, 10**9)) == 1


def _laplace_tail(scale: Fraction, m: int) -> mpmath.mpf:
    a = mpmath.exp(-1 / _real(scale))
    return a**m / (1 + a)


def _gaussian_tail(scale: Fraction, m: int) -> mpmath.mpf:
    variance = 2 * _real(scale) ** 2
    reach = m + int(30 * scale) + 30
    total = mpmath.fsum(mpmath.exp(-(mpmath.mpf(z) ** 2) / variance) for z in range(-reach, reach + 1))
    return mpmath.fsum(mpmath.exp(-(mpmath.mpf(z) ** 2) / variance) for z in range(m, reach + 1)) / total


def _real(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator
