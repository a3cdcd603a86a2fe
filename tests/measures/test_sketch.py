from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.hashing import value_bits
from incrowd.measures.sketch import Sketch, Spread

batches = st.lists(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5), max_size=20), max_size=8)


@given(batches)
def test_what_fits_is_counted_exactly(table: list[list[int]]) -> None:
    sketch, slow = Sketch(capacity=40), Counter[int]()
    for batch in table:
        sketch.add(np.array(batch, np.uint64))
        slow.update(batch)
    if len(slow) <= 40:
        once = sum(times == 1 for times in slow.values())
        assert sketch.spread() == Spread(slow.total(), len(slow), once, exact=True, margin=0.0)


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
    assert Sketch(10).spread() == Spread(0, 0, 0, exact=True, margin=0.0)
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
