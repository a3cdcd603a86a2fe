"""Is the noise the guaranteed noise?"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.noise.system import SystemCoins
from tests.statistics.alarm import FALSE_ALARM, binomial_p_value, continuous_p_value, escape, p_value

DRAWS = 200_000
COINS = SystemCoins()
SCALES = [Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(3), Fraction(10), Fraction(123, 4)]


def laplace_masses(scale: float) -> dict[int, float]:
    a = math.exp(-1 / scale)
    reach = int(20 * scale) + 5
    return {z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-reach, reach + 1)}


def gaussian_masses(scale: float) -> dict[int, float]:
    reach = int(12 * scale) + 5
    weights = {z: math.exp(-(z**2) / (2 * scale**2)) for z in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


@pytest.mark.parametrize("scale", SCALES)
def test_integer_laplace_noise_has_its_law(scale: Fraction) -> None:
    assert p_value(COINS.laplace(scale, DRAWS), laplace_masses(float(scale))) > FALSE_ALARM


@pytest.mark.parametrize("scale", SCALES)
def test_integer_gaussian_noise_has_its_law(scale: Fraction) -> None:
    assert p_value(COINS.gaussian(scale, DRAWS), gaussian_masses(float(scale))) > FALSE_ALARM


@pytest.mark.parametrize("wrong", [0.95, 1.05])
def test_noise_that_is_five_per_cent_off_is_caught(wrong: float) -> None:
    assert p_value(COINS.laplace(Fraction(10), DRAWS), laplace_masses(10 * wrong)) < FALSE_ALARM
    assert p_value(COINS.gaussian(Fraction(10), DRAWS), gaussian_masses(10 * wrong)) < FALSE_ALARM
    escapes = [escape(law(10.0), law(10 * wrong), DRAWS) for law in (laplace_masses, gaussian_masses)]
    assert sum(escapes) < FALSE_ALARM


def test_noise_that_draws_zero_twice_is_caught() -> None:
    a = math.exp(-1 / 2)
    twice = {z: (1 - a) / 2 * a ** abs(z) * (2 if z == 0 else 1) for z in range(-60, 61)}
    assert p_value(COINS.laplace(Fraction(2), DRAWS), twice) < FALSE_ALARM
    assert escape(laplace_masses(2.0), twice, DRAWS) < FALSE_ALARM


@pytest.mark.parametrize("scale", [Fraction(1000), Fraction(10**6) + Fraction(1, 3), Fraction(10**9), Fraction(2**45)])
def test_wide_noise_has_the_law_of_its_continuous_cousin_where_the_difference_is_too_small_to_see(
    scale: Fraction,
) -> None:
    from scipy.stats import laplace, norm

    for draw, law in ((COINS.laplace, laplace), (COINS.gaussian, norm)):
        drawn = _jittered(draw(scale, DRAWS)) / float(scale)
        assert continuous_p_value(drawn, law.cdf, off=float(1 / scale**2)) > FALSE_ALARM / 2


def test_tails_are_as_heavy_as_guaranteed() -> None:
    drawn, a = COINS.laplace(Fraction(5), 2_000_000), math.exp(-1 / 5)
    for reach in (20, 30, 40):
        for beyond in ((drawn >= reach).sum(), (drawn <= -reach).sum()):
            assert binomial_p_value(int(beyond), drawn.size, a**reach / (1 + a)) > FALSE_ALARM / 6


@pytest.mark.parametrize("draw", ["laplace", "gaussian"])
def test_neighboring_draws_are_independent(draw: str) -> None:
    drawn: NDArray[np.int64] = np.clip(getattr(COINS, draw)(Fraction(1), DRAWS), -2, 2) + 2
    law = {"laplace": laplace_masses, "gaussian": gaussian_masses}[draw](1.0)
    masses = [sum(mass for z, mass in law.items() if min(max(z, -2), 2) + 2 == place) for place in range(5)]
    pairs = 5 * drawn[0::2] + drawn[1::2]
    joint = {5 * i + j: masses[i] * masses[j] for i in range(5) for j in range(5)}
    assert p_value(pairs, joint) > FALSE_ALARM


@pytest.mark.parametrize("bound", [2, 3, 10, 257])
def test_uniform_integers_are_uniform(bound: int) -> None:
    assert p_value(COINS.below(bound, DRAWS), dict.fromkeys(range(bound), 1 / bound)) > FALSE_ALARM


@pytest.mark.parametrize("probability", [Fraction(1, 2), Fraction(1, 3), Fraction(1, 1000), Fraction(999, 1000)])
def test_coins_have_their_probability(probability: Fraction) -> None:
    heads = int(COINS.bernoulli(probability, DRAWS).sum())
    assert binomial_p_value(heads, DRAWS, float(probability)) > FALSE_ALARM


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 7, 20])
def test_a_decay_has_its_probability(steps: int) -> None:
    heads = int(COINS.decay(Fraction(13, 3), np.full(DRAWS, steps)).sum())
    assert binomial_p_value(heads, DRAWS, math.exp(-steps * 3 / 13)) > FALSE_ALARM


@pytest.mark.parametrize(
    ("scale", "least"), [(Fraction(1), 1), (Fraction(3), 2), (Fraction(1, 2), 1), (Fraction(2), 9)]
)
def test_outliers_are_as_many_as_far_and_where_they_would_be_among_all_draws(scale: Fraction, least: int) -> None:
    size = 400_000
    where, values = COINS.outliers(scale, least, size)
    a = math.exp(-1 / scale)
    chance = a**least / (1 + a)
    assert binomial_p_value(where.size, size, chance) > FALSE_ALARM / 3
    assert p_value(values, {least + g: (1 - a) * a**g for g in range(200)}) > FALSE_ALARM / 3
    block = math.ceil(0.1 / chance)
    stays = (1 - chance) ** block
    gaps = (np.diff(where) - 1) // block
    assert p_value(gaps, {g: (1 - stays) * stays**g for g in range(1000)}) > FALSE_ALARM / 3


@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 3), Fraction(9, 10)])
def test_a_secret_sample_has_its_rate_by_position_and_by_id(rate: Fraction) -> None:
    sample = COINS.sample(rate)
    ids = np.arange(DRAWS, dtype=np.uint64) * np.uint64(2**40 + 1)
    for coins in (sample.at(0, DRAWS), sample.of(ids)):
        assert binomial_p_value(int(coins.sum()), DRAWS, float(rate)) > FALSE_ALARM / 4
        both = int((coins[0::2] & coins[1::2]).sum())
        assert binomial_p_value(both, DRAWS // 2, float(rate) ** 2) > FALSE_ALARM / 4


def _jittered(drawn: NDArray[np.int64]) -> NDArray[np.float64]:
    return drawn + COINS.below(2**20, drawn.size) / 2.0**20 - 0.5
