"""Coins on scripted words: every comparison, tie and rejection."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from incrowd.noise import toss as module
from incrowd.noise.chance import Chance, exponential, rational
from incrowd.noise.toss import Words, below, decay, decay_of_product, fresh_words, toss
from tests.coins import Branching, law, seeded_words

THIRD = rational(Fraction(1, 3))
TOP = 2**64 // 3


def scripted(*values: int) -> Words:
    left = list(values)

    def words(size: int) -> NDArray[np.uint64]:
        return np.array([left.pop(0) for _ in range(size)], dtype=np.uint64)

    return words


def branching_toss(branching: Branching) -> object:
    def toss_all(words: Words, chance: Chance, size: int) -> NDArray[np.bool_]:
        p = chance(200) / 2**200
        return np.array([branching.choose([1 - p, p]) for _ in range(size)], dtype=np.bool_)

    return toss_all


@pytest.mark.parametrize(("word", "heads"), [(0, True), (TOP - 1, True), (TOP + 1, False), (2**64 - 1, False)])
def test_a_word_is_compared_with_the_digits_of_the_chance(word: int, heads: bool) -> None:
    assert toss(scripted(word), THIRD, 1).tolist() == [heads]


def test_a_tie_is_settled_by_the_next_digits() -> None:
    # 1/3 repeats: its next 64 digits are those of TOP again
    assert toss(scripted(TOP, 5, TOP - 1), THIRD, 2).tolist() == [True, True]
    assert toss(scripted(TOP, TOP + 1), THIRD, 1).tolist() == [False]
    assert toss(scripted(TOP, TOP, TOP, 7), THIRD, 1).tolist() == [True]


def test_a_chance_with_few_digits_is_never_exceeded() -> None:
    half = rational(Fraction(1, 2))
    assert toss(scripted(2**63 - 1), half, 1).tolist() == [True]
    assert toss(scripted(2**63, 0, 1), half, 1).tolist() == [False]


def test_certain_coins_ask_for_no_words() -> None:
    assert toss(scripted(), rational(Fraction(1)), 3).all()
    assert toss(scripted(), exponential(Fraction(0)), 3).all()


def test_impossible_coins_never_come_up() -> None:
    assert not toss(scripted(1, 2**64 - 1), rational(Fraction(0)), 2).any()


def test_uniform_integers_use_the_highest_bits_and_draw_again_above_the_bound() -> None:
    assert below(scripted(0, 1 << 62, 2 << 62, (3 << 62) + 5, 3 << 62, 1 << 62), 3, 4).tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize("bound", [1, 2, 3, 2**40 + 1, 2**63])
def test_uniform_integers_keep_to_their_bound(bound: int) -> None:
    drawn = below(seeded_words(1), bound, 1000)
    assert drawn.min() >= 0
    assert int(drawn.max()) < bound


def test_bound_two_to_the_63_takes_63_bits() -> None:
    assert below(scripted(2**64 - 1), 2**63, 1).tolist() == [2**63 - 1]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=2))
def test_decay_has_exactly_its_chance(steps: list[int]) -> None:
    def run(branching: Branching) -> tuple[bool, ...]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "toss", branching_toss(branching))
            return tuple(decay(scripted(), Fraction(7, 2), np.array(steps)).tolist())

    chances = law(run)
    for index, n in enumerate(steps):
        truth = math.exp(-2 * n / 7)
        assert math.isclose(sum(p for heads, p in chances.items() if heads[index]), truth, rel_tol=1e-12)
    assert math.isclose(chances[(True,) * len(steps)], math.exp(-2 * sum(steps) / 7), rel_tol=1e-12)


@pytest.mark.parametrize(
    ("left", "right"), [(0, 2**40), (3, 5), (2**31 + 1, 2**33 - 1), (2**45 + 12345, 2**50 + 987654321)]
)
def test_decay_of_a_product_has_exactly_its_chance(monkeypatch: pytest.MonkeyPatch, left: int, right: int) -> None:
    scale = Fraction(max(1, left * right), 2)

    exponents: list[float] = []

    def collecting(words: Words, chance: Chance, size: int) -> NDArray[np.bool_]:
        if size:
            exponents.append(-math.log(chance(400) / 2**400))
        return np.ones(size, dtype=np.bool_)

    monkeypatch.setattr(module, "toss", collecting)
    decay_of_product(scripted(), scale, np.array([left]), np.array([right]))
    assert math.isclose(math.fsum(exponents), 2.0 * (left * right > 0), rel_tol=1e-12)


def test_zero_steps_always_survive() -> None:
    assert decay(scripted(), Fraction(1), np.zeros(4, dtype=np.int64)).all()
    assert decay(scripted(), Fraction(1), np.empty(0, dtype=np.int64)).size == 0


def test_the_longest_steps_do_not_survive() -> None:
    assert not decay(seeded_words(2), Fraction(1), np.full(100, 2**63 - 1)).any()


def test_two_streams_of_words_have_nothing_in_common() -> None:
    assert not set(fresh_words()(1000).tolist()) & set(fresh_words()(1000).tolist())


def test_a_stream_never_repeats_itself() -> None:
    words = fresh_words()
    assert len({*words(500).tolist(), *words(500).tolist()}) == 1000
