"""Cube noise: the exact law of each step of the sampler, and the numbers told about the law."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from incrowd.errors import Infeasible, InvalidParameter
from incrowd.noise import cube as cube_module
from incrowd.noise.chance import Chance
from incrowd.noise.cube import cube
from incrowd.noise.system import SystemCoins
from incrowd.noise.tails import CubeLaw, laplace_reach
from incrowd.noise.toss import Words
from tests.coins import Abandoned, Branching, cube_radius, law, seeded_words

SHAPES = [((1, 1), 1, Fraction(2)), ((1, 3), 4, Fraction(5, 2)), ((2, 5, 1), 2, Fraction(1)), ((7,), 4, Fraction(3))]


def masses(widths: tuple[int, ...], fine: int, scale: Fraction, reach: int) -> dict[tuple[int, ...], float]:
    """Return the law, listed vector by vector up to J = reach · fine."""
    points = itertools.product(*(range(-reach * width, reach * width + 1) for width in widths))
    weights = {point: math.exp(-cube_radius(point, widths, fine) / scale) for point in points}
    total = math.fsum(weights.values())
    return {point: weight / total for point, weight in weights.items()}


@pytest.mark.parametrize(("widths", "fine", "scale"), SHAPES)
def test_boxes_mixed_by_their_weights_give_the_law(widths: tuple[int, ...], fine: int, scale: Fraction) -> None:
    reach, q = 2, math.exp(-1 / scale)
    ends = range(150)
    for point in itertools.product(*(range(-reach * width, reach * width + 1) for width in widths)):
        inside = [J for J in ends if all(abs(x) <= J * w // fine for x, w in zip(point, widths, strict=True))]
        mixed = math.fsum(q**J for J in inside)  # weight of a box times the uniform chance within it
        assert mixed == pytest.approx(q ** cube_radius(point, widths, fine) / (1 - q), rel=1e-9)


@pytest.mark.parametrize(("widths", "fine", "scale"), SHAPES)
def test_the_proposed_radius_has_the_weights_of_the_polynomial(
    widths: tuple[int, ...], fine: int, scale: Fraction
) -> None:
    q, d = math.exp(-1 / scale), len(widths)
    chances = [chance(200) / 2**200 for chance in cube_module._degree_chances(widths, fine, scale)]
    degree = [0.0] * (d + 1)
    left = 1.0
    for i in range(d, 0, -1):
        degree[i], left = left * chances[i - 1], left * (1 - chances[i - 1])
    degree[0] = left
    proposed = [
        math.fsum(degree[i] * math.comb(J, i) * q ** (J - i) * (1 - q) ** (i + 1) for i in range(min(d, J) + 1))
        for J in range(60)
    ]
    weights = [q**J * math.prod(1 + 2 * J * width / fine for width in widths) for J in range(3000)]
    assert proposed == pytest.approx([weight / math.fsum(weights) for weight in weights[:60]], rel=1e-9)


@pytest.mark.parametrize(("width", "fine", "scale"), [(3, 2, Fraction(2)), (1, 1, Fraction(1))])
def test_two_radii_are_drawn_each_by_its_weight(
    monkeypatch: pytest.MonkeyPatch, width: int, fine: int, scale: Fraction
) -> None:
    q = math.exp(-1 / scale)

    def run(branching: Branching) -> tuple[int, ...]:
        def toss(words: Words, chance: Chance, size: int) -> NDArray[np.bool_]:
            p = chance(200) / 2**200
            return np.array([branching.choose([1 - p, p]) for _ in range(size)], dtype=np.bool_)

        def geometric(words: Words, scale: Fraction, size: int) -> NDArray[np.int64]:
            drawn = [branching.choose([(1 - q) * q**g for g in range(3)] + [q**3]) for _ in range(size)]
            if 3 in drawn:
                raise Abandoned
            return np.array(drawn)

        monkeypatch.setattr(cube_module, "toss", toss)
        monkeypatch.setattr(cube_module, "geometric", geometric)
        return tuple(cube_module._radius(seeded_words(0), (width,), fine, scale, 2).tolist())

    found = law(run)
    weights = [q**J * (1 + 2 * J * width / fine) for J in range(3000)]
    for pair in itertools.product(range(3), repeat=2):
        assert found[pair] == pytest.approx(math.prod(weights[J] for J in pair) / math.fsum(weights) ** 2)


@pytest.mark.parametrize(("width", "fine", "radius"), [(1, 4, 7), (3, 4, 1), (5, 8, 3), (2, 1, 1), (1, 16, 5)])
def test_a_coordinate_is_uniform_and_kept_with_what_the_floor_left(
    monkeypatch: pytest.MonkeyPatch, width: int, fine: int, radius: int
) -> None:
    def run(branching: Branching) -> tuple[int, bool]:
        calls = 0

        def below(words: Words, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
            nonlocal calls
            calls += bounds.size
            if calls > 4:
                raise Abandoned
            return np.array([branching.choose([1 / bound] * int(bound)) for bound in bounds], dtype=np.int64)

        monkeypatch.setattr(cube_module, "_below", below)
        value, kept = cube_module._coordinate(seeded_words(0), width, fine, np.array([radius]))
        return (int(value[0]), True) if kept[0] else (0, False)

    found = law(run)
    half, rest = divmod(radius * width, fine)
    kept = {x: chance for (x, ok), chance in found.items() if ok}
    assert set(kept) == set(range(-half, half + 1))
    assert max(kept.values()) == pytest.approx(min(kept.values()))
    assert found.get((0, False), 0.0) / kept[0] == pytest.approx(2 * rest / fine)


def test_uniform_integers_below_many_bounds_keep_to_them() -> None:
    bounds = np.array([3, 4, 5, 2**40 + 1, 2**62 + 1] * 2000)
    drawn = cube_module._below(seeded_words(1), bounds)
    assert (drawn >= 0).all()
    assert (drawn < bounds).all()
    assert set(drawn[bounds == 5].tolist()) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(("widths", "fine", "scale"), [((1, 1), 2, Fraction(2)), ((1, 3), 4, Fraction(6))])
def test_reach_is_never_understated_and_nearly_the_least(widths: tuple[int, ...], fine: int, scale: Fraction) -> None:
    law_, listed = CubeLaw(widths, fine, scale), masses(widths, fine, scale, 60)
    for place, chance in itertools.product(
        range(len(widths)), (Fraction(1, 10), Fraction(1, 1000), Fraction(1, 10**7))
    ):
        reach = law_.reach(place, chance)

        def tail(m: int, place: int = place) -> float:
            return math.fsum(mass for point, mass in listed.items() if point[place] >= m)

        assert tail(reach) <= chance
        assert reach == 1 or tail(reach - 1) > chance


@given(scale=st.fractions(Fraction(1, 5), Fraction(5000), max_denominator=10), digits=st.integers(1, 12))
@settings(max_examples=10)
def test_one_coordinate_reaches_as_far_as_laplace_noise(scale: Fraction, digits: int) -> None:
    exact, found = (
        laplace_reach(scale, Fraction(1, 10**digits)),
        CubeLaw((1,), 1, scale).reach(0, Fraction(1, 10**digits)),
    )
    assert exact <= found <= exact + math.ceil(scale / 50)


@pytest.mark.parametrize("factors", [(1.0, 0.0), (1.0, 1.0), (0.3, 2.0), (5.0, 1.0)])
def test_combined_noise_is_covered_as_often_as_told(factors: tuple[float, float]) -> None:
    widths, fine, scale = (1, 3), 4, Fraction(6)
    listed = masses(widths, fine, scale, 40)
    reach = CubeLaw(widths, fine, scale).combined((0, 1), factors, 0.05)
    missed = math.fsum(mass for (x, y), mass in listed.items() if abs(factors[0] * x + factors[1] * y) > reach)
    assert 0.02 < missed <= 0.0505


def test_the_whole_vector_is_covered_as_often_as_told() -> None:
    widths, fine, scale = (1, 3), 4, Fraction(6)
    box = CubeLaw(widths, fine, scale).together(0.05)
    listed = masses(widths, fine, scale, 40)
    missed = math.fsum(
        mass for point, mass in listed.items() if any(abs(x) > b for x, b in zip(point, box, strict=True))
    )
    assert 0.02 < missed <= 0.0505


@pytest.mark.parametrize(
    ("widths", "fine", "scale"),
    [((), 1, 1), ((0,), 1, 1), ((2**41,), 1, 1), ((1,), 3, 1), ((1,), 2**21, 1), ((1,), 1, 0), ((2**40,), 1, 2**40)],
)
def test_shapes_that_cannot_be_drawn_are_refused(widths: tuple[int, ...], fine: int, scale: int) -> None:
    with pytest.raises(InvalidParameter):
        SystemCoins().cube(widths, fine, Fraction(scale), 1)


def test_chances_too_small_to_be_told_from_none_are_refused() -> None:
    with pytest.raises(Infeasible, match="larger delta"):
        CubeLaw((1, 1), 1, Fraction(1)).reach(0, Fraction(1, 10**41))
    assert CubeLaw((1, 1), 1, Fraction(1)).reach(0, Fraction(1, 10**40)) > 80


def test_no_vectors_can_be_drawn() -> None:
    assert cube(seeded_words(0), (1, 2), 4, Fraction(3), 0).shape == (0, 2)


def test_words_that_would_favor_low_numbers_are_drawn_again() -> None:
    script = iter([[0, 0, 2**64 - 1, 2**63 - 1], [0], [7]])  # 2^64 mod 3 is 1, mod 4 is 0, mod 2^62 + 1 is 2^62 - 3

    def words(size: int) -> NDArray[np.uint64]:
        drawn = np.array(next(script), dtype=np.uint64)
        assert drawn.size == size
        return drawn

    drawn = cube_module._below(words, np.array([3, 4, 3, 2**62 + 1]))
    assert drawn.tolist() == [1, 0, 0, 2**62 - 2]
