"""Is cube noise the guaranteed noise, and do intervals hold the truth as often as they say?"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.noise.system import SystemCoins
from tests.coins import cube_radius
from tests.statistics.alarm import FALSE_ALARM, binomial_p_value, continuous_p_value, escape, p_value

DRAWS = 100_000
COINS = SystemCoins()
SHAPES = [
    ((1, 1), 1, Fraction(1)),
    ((1, 1), 16, Fraction(16)),
    ((1, 3), 4, Fraction(2)),
    ((3, 2, 1), 2, Fraction(1)),
    ((1, 1), 64, Fraction(16)),
]


def coded(points: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.asarray(((points + 512) * 1024 ** np.arange(points.shape[1])).sum(axis=1))


def masses(widths: tuple[int, ...], fine: int, scale: Fraction) -> dict[int, float]:
    reach = {2: 30, 3: 12}[len(widths)]
    points = list(itertools.product(*(range(-reach * width, reach * width + 1) for width in widths)))
    weights = [math.exp(-cube_radius(point, widths, fine) / scale) for point in points]
    total = math.fsum(weights)
    codes = coded(np.array(points)).tolist()
    return {code: weight / total for code, weight in zip(codes, weights, strict=True)}


@pytest.mark.parametrize(("widths", "fine", "scale"), SHAPES)
def test_cube_noise_has_its_joint_law(widths: tuple[int, ...], fine: int, scale: Fraction) -> None:
    drawn = COINS.cube(widths, fine, scale, DRAWS)
    assert p_value(coded(drawn), masses(widths, fine, scale)) > FALSE_ALARM


def test_cube_noise_that_is_five_per_cent_off_is_caught() -> None:
    draws, wrong = 3 * DRAWS // 2, masses((1, 1), 16, Fraction(16) * Fraction(21, 20))
    assert p_value(coded(COINS.cube((1, 1), 16, Fraction(16), draws)), wrong) < FALSE_ALARM
    assert escape(masses((1, 1), 16, Fraction(16)), wrong, draws) < FALSE_ALARM


@pytest.mark.parametrize("scale", [Fraction(1000), Fraction(10**6) + Fraction(1, 3)])
def test_wide_cube_noise_has_the_law_of_its_continuous_cousin(scale: Fraction) -> None:
    from scipy.stats import gamma

    widths = (2**20, 2**25)
    drawn = COINS.cube(widths, 1, scale, 20_000)
    norm = np.abs(drawn / np.array(widths)).max(axis=1) / float(scale)
    off = 2 / float(scale)  # noise of whole steps; the norm of a d-dimensional law is Gamma(d)
    assert continuous_p_value(norm, gamma(len(widths)).cdf, off) > FALSE_ALARM / 2
    odd, even = (int((drawn[:, 0] * sign > 0).sum()) for sign in (1, -1))
    assert binomial_p_value(odd, odd + even, 0.5) > FALSE_ALARM / 2
