from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.fingerprints import row_bits, value_bits
from incrowd.measures.risk.sketch import Sketch, TupleSpread

batches = st.lists(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5), max_size=20), max_size=8)
texts = st.lists(st.text(max_size=8) | st.none(), min_size=1, max_size=60)


@given(batches)
def test_what_fits_is_counted_exactly(table: list[list[int]]) -> None:
    sketch, slow = Sketch(capacity=40), Counter[int]()
    for batch in table:
        sketch.add(np.array(batch, np.uint64))
        slow.update(batch)
    if len(slow) <= 40:
        once = sum(times == 1 for times in slow.values())
        most = max(slow.values(), default=0)
        assert sketch.spread() == TupleSpread(slow.total(), len(slow), once, exact=True, margin=0.0, most=most)


def test_looking_does_not_change_what_is_counted() -> None:
    often, rarely = Sketch(100), Sketch(100)
    bits = value_bits(pa.array(np.arange(5000) % 700), 3)
    for start in range(0, 5000, 50):
        often.add(bits[start : start + 50])
        often.spread()
        rarely.add(bits[start : start + 50])
    assert often.spread().rows == rarely.spread().rows == 5000
    assert abs(often.spread().distinct - rarely.spread().distinct) <= 700


@pytest.mark.parametrize("share", [1.0, 0.5, 0.05])
def test_what_does_not_fit_is_estimated_within_its_margin(share: float) -> None:
    once = round(200_000 * share)
    values = np.concatenate([np.arange(once), np.repeat(np.arange(200_000, 200_000 + (200_000 - once) // 4), 4)])
    np.random.default_rng(1).shuffle(values)
    sketch = Sketch(capacity=4000)
    for part in np.array_split(value_bits(pa.array(values), 5), 40):
        sketch.add(part)
    spread = sketch.spread()
    assert not spread.exact
    assert 0 < spread.margin < 0.06
    assert spread.unique_share == pytest.approx(once / len(values), abs=2.5 * spread.margin)  # five standard errors


def test_a_sample_of_rows_would_have_called_these_unique() -> None:
    bits = value_bits(pa.array(np.repeat(np.arange(50_000), 4)), 2)
    sketch = Sketch(capacity=1000)
    sketch.add(bits)
    assert sketch.spread().unique == 0


def test_memory_stays_within_capacity() -> None:
    sketch = Sketch(capacity=500)
    for start in range(0, 100_000, 1000):
        sketch.add(value_bits(pa.array(np.arange(start, start + 1000)), 0))
        assert len(sketch._keys) <= 500
        assert sum(map(len, sketch._waiting)) <= 500


def test_nothing_was_seen_at_first() -> None:
    assert Sketch(10).spread() == TupleSpread(0, 0, 0, exact=True, margin=0.0)
    assert Sketch(10).spread().unique_share == 0.0


@given(batches, st.integers(1, 4), st.integers(2, 60), st.randoms(use_true_random=False))
def test_sketches_of_parts_merge_into_the_sketch_of_all(
    table: list[list[int]], parts: int, capacity: int, chance: Random
) -> None:
    whole, sketches = Sketch(capacity), [Sketch(capacity) for _ in range(parts)]
    for batch in table:
        whole.add(np.array(batch, np.uint64))
        chance.choice(sketches).add(np.array(batch, np.uint64))
    chance.shuffle(sketches)
    first, *others = sketches
    for other in others:
        first.merge(other)
    assert first.spread() == whole.spread()


@given(texts)
def test_equal_texts_share_their_bits_and_others_do_not(values: list[str | None]) -> None:
    bits = row_bits(pa.array(values, pa.string()), 1)
    pairs = dict(zip(values, bits, strict=True))
    assert len(set(pairs.values())) == len(set(values))
    assert [pairs[value] for value in values] == bits.tolist()


@given(texts, st.integers(0, 59))
def test_bits_do_not_depend_on_batches(values: list[str | None], cut: int) -> None:
    array = pa.array(values, pa.string())
    cut = min(cut, len(values))
    parts = [row_bits(array.slice(0, cut), 1), row_bits(array.slice(cut), 1)]
    assert np.concatenate(parts).tolist() == row_bits(array, 1).tolist()


@given(texts)
def test_a_dictionary_has_the_bits_of_what_it_stands_for(values: list[str | None]) -> None:
    array = pa.array(values, pa.string())
    assert row_bits(array.dictionary_encode(), 1).tolist() == row_bits(array, 1).tolist()


def test_half_a_million_similar_texts_do_not_collide() -> None:
    texts = pa.array([f"P{number:09d}" for number in range(400_000)] + [str(number) for number in range(100_000)])
    assert len(np.unique(value_bits(texts, 0))) == 500_000


def test_two_salts_give_unrelated_bits() -> None:
    values = pa.array(["F", "M", None])
    assert not set(row_bits(values, 1).tolist()) & set(row_bits(values, 2).tolist())


@pytest.mark.parametrize("salt", [0, 1, 14])
def test_bits_are_spread_over_all_places(salt: int) -> None:
    bits = value_bits(pa.array([f"{number:05d}" for number in range(20_000)]), salt)
    for place in range(64):
        ones = int(((bits >> np.uint64(place)) & np.uint64(1)).sum())
        assert abs(ones - 10_000) < 5 * 71  # five standard deviations


def test_what_is_missing_in_floats_is_one_value_and_zero_has_no_sign() -> None:
    bits = row_bits(pa.array([0.0, -0.0, float("nan"), None, 1.0]), 1)
    assert bits[0] == bits[1]
    assert bits[2] == bits[3]
    assert len(set(bits.tolist())) == 3


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, None],
        [True, False, None],
        [dt.date(2020, 1, 1), dt.date(2021, 1, 1), None],
        [dt.datetime(2020, 1, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1, 2, tzinfo=dt.UTC), None],
        [dt.time(12, 30), dt.time(12, 31), None],
        [Decimal("1.50"), Decimal("1.51"), None],
    ],
)
def test_every_type_of_value_has_bits(values: list[Any]) -> None:
    assert len(set(row_bits(pa.array([*values, values[0]]), 1).tolist())) == 3


def test_an_empty_array_has_no_bits() -> None:
    assert len(row_bits(pa.array([], pa.string()), 1)) == 0
    assert len(row_bits(pa.array([], pa.float64()), 1)) == 0
