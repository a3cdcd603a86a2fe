"""The exact law of the samplers: their coins come up in every possible way."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.noise import integers as integers_module
from incrowd.noise import toss as toss_module
from incrowd.noise.chance import Chance
from incrowd.noise.integers import LARGEST, gaussian, geometric, laplace, outliers
from incrowd.noise.toss import Words
from tests.coins import Abandoned, Branching, law, seeded_words

SCALES = [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(4), Fraction(11)]


def no_words(size: int) -> NDArray[np.uint64]:
    raise AssertionError("these samplers are driven by branching coins")


def every_way(patch: pytest.MonkeyPatch, branching: Branching, most: int = 40) -> None:
    """Let coins and uniform integers of the samplers branch, and abandon runs of more than `most` of them."""
    tossed = 0

    def toss(words: Words, chance: Chance, size: int) -> NDArray[np.bool_]:
        nonlocal tossed
        tossed += size
        if tossed > most:
            raise Abandoned
        p = chance(300) / 2**300
        return np.array([branching.choose([1 - p, p]) for _ in range(size)], dtype=np.bool_)

    def below(words: Words, bound: int, size: int) -> NDArray[np.int64]:
        return np.array([branching.choose([1 / bound] * bound) for _ in range(size)], dtype=np.int64)

    for module in (toss_module, integers_module):
        patch.setattr(module, "toss", toss)
    patch.setattr(integers_module, "below", below)


@pytest.mark.parametrize("scale", SCALES)
def test_geometric_numbers_have_exactly_their_law(scale: Fraction) -> None:
    def run(branching: Branching) -> int:
        with pytest.MonkeyPatch.context() as patch:
            every_way(patch, branching, most=10)
            return int(geometric(no_words, scale, 1)[0])

    a = math.exp(-1 / scale)
    chances = law(run)
    assert len(chances) > 3
    for g, chance in chances.items():
        assert math.isclose(chance, (1 - a) * a**g, rel_tol=1e-12)


@pytest.mark.parametrize("scale", SCALES)
def test_integer_laplace_noise_has_exactly_its_law(scale: Fraction) -> None:
    def run(branching: Branching) -> int:
        with pytest.MonkeyPatch.context() as patch:
            every_way(patch, branching, most=10)
            return int(laplace(no_words, scale, 1)[0])

    a = math.exp(-1 / scale)
    chances = law(run)
    assert {z for z in chances if abs(z) <= 3} == set(range(-3, 4))
    for z, chance in chances.items():
        if z:
            assert math.isclose(chance, (1 - a) / (1 + a) * a ** abs(z), rel_tol=1e-12)
        else:  # the magnitude that is thrown away was abandoned now and then
            assert 0.99 < chance / ((1 - a) / (1 + a)) <= 1 + 1e-12


@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(2, 3), Fraction(1), Fraction(5, 3), Fraction(3)])
def test_integer_gaussian_noise_has_exactly_its_law(scale: Fraction) -> None:
    def run(branching: Branching) -> tuple[int, ...]:
        with pytest.MonkeyPatch.context() as patch:
            every_way(patch, branching, most=12)
            return tuple(integers_module._accepted(no_words, scale, 1).tolist())

    chances = law(run)
    assert len(chances) > 4
    for outcome, chance in chances.items():
        if outcome:
            expected = chances[(0,)] * math.exp(-(outcome[0] ** 2) / (2 * float(scale) ** 2))
            assert math.isclose(chance, expected, rel_tol=1e-11)


@pytest.mark.parametrize(("scale", "least"), [(Fraction(1), 1), (Fraction(3), 4), (Fraction(1, 2), 3)])
def test_gaps_between_outliers_have_exactly_their_law(scale: Fraction, least: int) -> None:
    a = math.exp(-1 / scale)
    stays = 1 - a**least / (1 + a)
    for j in range(12):
        power = stays ** (2**j)
        assert math.isclose(integers_module._gap_power(scale, least, j)(1000) / 2**1000, power, rel_tol=1e-11)
        assert math.isclose(
            integers_module._gap_digit(scale, least, j)(1000) / 2**1000, power / (1 + power), rel_tol=1e-11
        )


@pytest.mark.parametrize("size", [0, 1, 2, 7, 1000])
def test_outliers_lie_in_range_in_order_and_reach_the_least(size: int) -> None:
    for seed in range(20):
        where, values = outliers(seeded_words(seed), Fraction(2), 2, size)
        assert where.shape == values.shape
        assert (np.diff(where) > 0).all()
        assert ((where >= 0) & (where < size)).all()
        assert (values >= 2).all()


def test_outliers_of_a_huge_number_of_draws_take_no_time() -> None:
    where, _ = outliers(seeded_words(3), Fraction(1), 30, 2**46)
    assert 0 < where.size < 20
    assert outliers(seeded_words(3), Fraction(1, 100), 200, 2**46)[0].size == 0


@pytest.mark.parametrize("size", [0, 1, 2**15 - 1, 2**15 + 1, 100_000])
def test_as_many_numbers_come_as_were_asked_for(size: int) -> None:
    assert laplace(seeded_words(4), Fraction(2), size).shape == (size,)
    assert gaussian(seeded_words(4), Fraction(2), size).shape == (size,)


def test_noise_ends_where_it_is_said_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    heads = 0

    def always(words: Words, chance: Chance, size: int) -> NDArray[np.bool_]:
        nonlocal heads
        heads += size
        return np.ones(size, dtype=np.bool_)

    monkeypatch.setattr(integers_module, "toss", always)
    assert laplace(no_words, Fraction(2**48), 1).tolist() == [LARGEST]
    assert heads < 20_000


def test_an_ugly_fraction_is_as_good_a_scale_as_any() -> None:
    scale = Fraction(10**40 + 7, 3 * 10**39 + 1)
    assert abs(float(laplace(seeded_words(5), scale, 1000).mean())) < 1
    assert abs(float(gaussian(seeded_words(5), scale, 1000).mean())) < 1
