"""Polynomial noise: drawn exactly, decided by as many bits as are needed, and refused where it costs more."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.errors import InvalidParameter
from incrowd.mechanisms.polynomial import PolynomialNoise
from tests.coins import ScriptedCoins, SeededCoins
from tests.statistics.alarm import FALSE_ALARM, p_value

NOISE = PolynomialNoise.of(Fraction(1), 4)


@pytest.mark.parametrize("sensitivity", [Fraction(1, 7), Fraction(3), Fraction(100)])
def test_the_outcome_of_a_uniform_number_is_where_it_lies_among_the_tails(sensitivity: Fraction) -> None:
    for size in (1, 2, 5, 40):
        edge = NOISE.tail(sensitivity, size)
        assert NOISE.size(sensitivity, edge) == size - 1
        assert NOISE.size(sensitivity, edge - Fraction(1, 10**9)) >= size


def test_bits_are_unrolled_until_one_outcome_is_left() -> None:
    edge = NOISE.tail(Fraction(3), 1)
    first = math.floor(edge * 2**32)
    second = math.floor((edge * 2**32 - first) * 2**32)
    for step, size in ((-1, 1), (1, 0)):
        script = {"below": [first, second + step], **({"bernoulli": [1]} if size else {})}
        coins = ScriptedCoins(**script)
        assert NOISE.draw(Fraction(3), coins) == size
        assert coins.used_up


def test_a_uniform_number_near_zero_is_unrolled_further() -> None:
    coins = ScriptedCoins(below=[0, 0, 12345, *range(9)], bernoulli=[0])
    assert NOISE.draw(Fraction(1), coins) < -(10**4)


def test_no_noise_falls_where_nothing_can_move() -> None:
    assert NOISE.draw(Fraction(0), ScriptedCoins(below=[5])) == 0


def test_draws_have_the_law_that_is_stated() -> None:
    """Seeded words, so that it passes always or never; a fresh seed would fail with a chance of 10^-6 at most."""
    coins = SeededCoins(11)
    draws = np.array([NOISE.draw(Fraction(2), coins) for _ in range(4000)], np.int64)
    masses = {z: float(NOISE.mass(Fraction(2), z)) for z in range(-400, 401)}
    assert p_value(draws, masses) >= FALSE_ALARM


def test_noise_that_costs_more_than_it_says_is_refused() -> None:
    for wrong in (
        {"kappa": NOISE.kappa + Fraction(2, 10**12)},
        {"ratio": NOISE.ratio - Fraction(2, 10**12)},
        {"power": 5},
        {"epsilon": Fraction(99, 100)},
        {"ratio": Fraction(1)},
    ):
        fields = {"epsilon": NOISE.epsilon, "power": NOISE.power, "ratio": NOISE.ratio, "kappa": NOISE.kappa}
        with pytest.raises(InvalidParameter):
            PolynomialNoise(**{**fields, **wrong})  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        PolynomialNoise.of(Fraction(1), 1)
