"""Losses are rounded up: each margin is enough, also where digits cancel; 60 digits and more say what is true."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from incrowd.accounting.additive import continuous_delta, gaussian_delta, laplace_delta
from incrowd.accounting.amplification import _clone_excess, before_sampling
from incrowd.accounting.blending import robust, sampled_crowd
from incrowd.accounting.bound import epsilon_at
from incrowd.accounting.concentrated import epsilon_of_rho
from incrowd.core.loss import Approximate, Gaussian, Laplace
from incrowd.core.rounding import probability_up

CASES = 25
"""Each case is fixed by its seed: a test fails always, or never."""


@pytest.fixture(autouse=True)
def many_digits():  # type: ignore[no-untyped-def]
    with mpmath.workdps(220):
        yield


def real(number: Fraction | float) -> mpmath.mpf:
    return mpmath.mpf(number.numerator) / number.denominator if isinstance(number, Fraction) else mpmath.mpf(number)


def decimal(number: float) -> Fraction:
    return Fraction(str(number))


@pytest.mark.parametrize("seed", range(CASES))
def test_epsilon_of_a_delta_near_one_is_not_below_the_truth(seed: int) -> None:
    coins = random.Random(seed)
    base, small = decimal(round(10 ** coins.uniform(-2, 2.2), 4)), coins.choice((Fraction(0), Fraction(1, 100)))
    power, near = mpmath.exp(real(base)), mpmath.mpf(float(base) * 10 ** coins.uniform(-8, 0))
    slack = Fraction(str((power - mpmath.exp(near)) / (1 + power)))
    truth = mpmath.log(power * (1 - real(slack)) - real(slack))
    claimed = epsilon_at(Approximate(base, small), small + (1 - small) * slack)
    assert truth <= claimed <= truth + 3e-15 * (1 + float(base))


def laplace_truth(scale: Fraction, shift: int, epsilon: float) -> mpmath.mpf:
    step = mpmath.exp(-1 / real(scale))
    masses = [(1 / (1 + step), shift)]
    masses += [((1 - step) / (1 + step) * step**z, shift - 2 * z) for z in range(1, shift)]
    losses = [(mass, real(units) / real(scale)) for mass, units in masses]
    return sum(mass * (1 - mpmath.exp(real(epsilon) - loss)) for mass, loss in losses if loss > epsilon)


@pytest.mark.parametrize("seed", range(CASES))
def test_laplace_noise_just_below_its_largest_loss_keeps_its_digits(seed: int) -> None:
    coins = random.Random(seed)
    scale, shift = decimal(round(10 ** coins.uniform(-1, 2), 5)), coins.choice((1, 2, 3, 7, 50))
    top = Fraction(shift - 2 * coins.randrange((shift + 1) // 2)) / scale
    epsilon = float(top) * (1 - 10 ** coins.uniform(-15, -6))
    truth, claimed = laplace_truth(scale, shift, epsilon), laplace_delta(Laplace(scale, shift), epsilon)
    assert truth <= claimed <= truth * (1 + 3e-9)


@pytest.mark.parametrize("seed", range(CASES))
def test_gaussian_noise_just_below_one_of_its_losses_is_not_below_the_truth(seed: int) -> None:
    coins = random.Random(seed)
    scale, shift = decimal(round(10 ** coins.uniform(-1, 0.5), 4)), coins.choice((1, 2, 3))
    sigma, place = real(scale), coins.randrange(-3, 1)
    epsilon = float((Fraction(shift * shift) - 2 * shift * place) / (2 * scale**2)) * (1 - 10 ** coins.uniform(-15, -6))
    reach = 40 * math.ceil(scale) + 5
    masses = {z: mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * sigma**2)) for z in range(-reach, reach + 1)}
    losses = {z: (mpmath.mpf(shift) ** 2 - 2 * shift * z) / (2 * sigma**2) for z in masses}
    over = (masses[z] * (1 - mpmath.exp(epsilon - loss)) for z, loss in losses.items() if loss > epsilon)
    assert sum(over) / sum(masses.values()) <= gaussian_delta(Gaussian(scale, shift), epsilon)


@pytest.mark.parametrize("seed", range(CASES))
def test_continuous_noise_is_not_below_the_truth_far_out_or_at_large_moves(seed: int) -> None:
    coins = random.Random(seed)
    move = 10 ** coins.uniform(-6, 8)
    epsilon = move * move / 2 + coins.choice((coins.uniform(-7, 37), 37.01)) * move
    low, high = real(move) / 2 - real(epsilon) / real(move), -real(move) / 2 - real(epsilon) / real(move)
    truth = mpmath.erfc(-low / mpmath.sqrt(2)) / 2 - mpmath.exp(epsilon) * mpmath.erfc(-high / mpmath.sqrt(2)) / 2
    assert truth <= continuous_delta(move, epsilon)


def test_a_rate_near_zero_does_not_allow_an_infinite_loss() -> None:
    inner, _ = before_sampling(590, 0, Fraction(1, 10**60))
    assert mpmath.log1p(mpmath.expm1(590) * mpmath.mpf(10) ** 60) >= inner >= 590


@pytest.mark.parametrize("seed", range(CASES))
def test_published_bounds_hold_at_rates_near_one_and_for_huge_crowds(seed: int) -> None:
    coins = random.Random(seed)
    rate, crowd = 1 - decimal(10 ** coins.uniform(-9, -0.5)), decimal(round(10 ** coins.uniform(-6, 2), 9))
    k, p = int(10 ** coins.uniform(0, 8)), real(rate)
    odds = p * (2 - p) / (1 - p)
    assert mpmath.log(odds * mpmath.exp(real(crowd)) + 1 - p) <= sampled_crowd.zero_knowledge_epsilon(crowd, rate)
    g = p * (2 - p)
    exponent = mpmath.log(g / p) + (1 - g) / g * mpmath.log((1 - g) / (1 - p))
    assert mpmath.exp(-k * exponent) <= sampled_crowd.theorem1_delta(k, rate)
    simple = (2 * mpmath.log(2) - 1) * (1 - p) ** 2 / (2 - p)
    assert mpmath.exp(-k * simple) <= sampled_crowd.theorem1_simple_delta(k, rate)
    bias = robust.Bias(rate, rate, 0, rate)
    added = -(1 - mpmath.log(2)) * (k - 1) + mpmath.log(p / (1 - p))
    truth = mpmath.exp(max(-k * simple, added))
    assert min(mpmath.mpf(1), truth) <= robust.theorem2_simple_delta(k, bias)
    a, b = coins.random(), 10 ** coins.uniform(-9, -0.1)
    information = real(a) * mpmath.log(real(a) / b) + (1 - real(a)) * mpmath.log((1 - real(a)) / (1 - real(b)))
    assert sampled_crowd.divergence(a, b) <= information


@pytest.mark.parametrize("logarithm", [-0.1, -700.0, -708.0, -709.5, -720.25, -730.3, -740.123, -744.4, -745.0])
def test_a_probability_is_not_below_its_logarithm_even_among_the_smallest_floats(logarithm: float) -> None:
    assert mpmath.exp(mpmath.mpf(logarithm)) <= mpmath.mpf(probability_up(logarithm))


def tail(trials: int, least: int, chance: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Return P[Bin = least] and P[Bin ≥ least], above the mean."""
    ways = mpmath.loggamma(trials + 1) - mpmath.loggamma(least + 1) - mpmath.loggamma(trials - least + 1)
    mass = mpmath.exp(ways + least * mpmath.log(chance) + (trials - least) * mpmath.log1p(-chance))
    term, total = mass, mass
    for number in range(least, trials):
        term = term * (trials - number) / (number + 1) * chance / (1 - chance)
        total += term
        if term < total * mpmath.mpf(10) ** -25:
            break
    return mass, total


@pytest.mark.parametrize("trials", [100, 10_000, 300_000])
@pytest.mark.parametrize("values", [3, 5, 10_000])
def test_binomial_masses_and_tails_are_ten_times_more_precise_than_counted_on(trials: int, values: int) -> None:
    from scipy.special import betaincc
    from scipy.stats import binom

    chance, allowed = 1.0 / (values - 1), 1e-14 * math.sqrt(trials)
    with mpmath.workdps(30):
        exact_chance = mpmath.mpf(1) / (values - 1)
        for deviations in (0.5, 3.0, 6.0, 10.0):
            most = int(trials * chance - deviations * math.sqrt(trials * chance * (1 - chance)))
            if most < 0:
                continue
            mass, total = tail(trials, trials - most, 1 - exact_chance)
            assert abs(float(binom.pmf(most, trials, chance) / mass) - 1) < allowed
            assert abs(float(betaincc(most + 1, trials - most, chance) / total) - 1) < allowed


@pytest.mark.parametrize("clones", [1000, 300_000])
@pytest.mark.parametrize("deviations", [0.1, 4.0, 9.0])
def test_the_excess_of_a_huge_crowd_of_clones_keeps_its_digits(clones: int, deviations: float) -> None:
    p, share = 4.0, 0.5 + deviations / (2 * math.sqrt(clones))
    alpha = (1 + share * (p - 1)) / (p - share * (p - 1))
    with mpmath.workdps(40):
        high = mpmath.mpf(alpha)
        least = int(mpmath.floor(clones * (high * p - 1) / ((p - 1) * (high + 1)))) + 1
        (_, upper), (_, more) = (
            tail(clones - 1, least, mpmath.mpf(1) / 2),
            tail(clones - 1, least - 1, mpmath.mpf(1) / 2),
        )
        truth = ((p - high) * more - (high * p - 1) * upper) / (p + 1)
        claimed = float(_clone_excess(p, alpha, np.array([clones]))[0])
        assert truth <= claimed <= truth * (1 + mpmath.mpf(10) ** -7)


@pytest.mark.parametrize(
    ("rho", "delta"),
    [
        ("39.37710917205234", "0.9999999739492678"),
        ("112.76939481199457", "0.9999999967235504"),
        ("0.0065322211074718755", "0.06925090929661337213474325835704803466797"),
        ("4.3451273166394264e-07", "0.0005654165863447970821198396151885390281677"),
    ],
)
def test_epsilon_of_rho_is_not_below_the_truth_where_its_terms_cancel(rho: str, delta: str) -> None:
    with mpmath.workdps(60):
        assert least_over_orders(mpmath.mpf(rho), mpmath.mpf(delta)) <= epsilon_of_rho(rho, delta)


def least_over_orders(rho: mpmath.mpf, delta: mpmath.mpf) -> mpmath.mpf:
    """Return the least ε that Corollary 13 gives, over orders on a fine grid and between them."""

    def at(exponent: mpmath.mpf) -> mpmath.mpf:
        excess = mpmath.exp(exponent)
        return (1 + excess) * rho - (mpmath.log1p(excess) + mpmath.log(delta)) / excess - mpmath.log1p(1 / excess)

    center = min((mpmath.mpf(step) / 4 for step in range(-100, 161, 2)), key=at)
    low, high = center - 0.5, center + 0.5
    for _ in range(60):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if at(left) <= at(right) else (left, high)
    return max(mpmath.mpf(0), at((low + high) / 2))
