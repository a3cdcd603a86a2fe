from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.keys import Layout, grouped, translated

_SIZES = st.lists(st.sampled_from((1, 2, 3, 10, 1000, 2**16, 2**20, 2**31 - 1)), min_size=1, max_size=12)


@st.composite
def tuples(draw: st.DrawFn) -> tuple[Layout, list[tuple[int, ...]]]:
    layout = Layout(tuple(draw(_SIZES)))
    codes = st.tuples(*(st.integers(0, size - 1) | st.sampled_from((0, size - 1)) for size in layout.sizes))
    return layout, draw(st.lists(codes, min_size=1, max_size=20))


def columns(rows: list[tuple[int, ...]]) -> list[np.ndarray[tuple[int], np.dtype[np.int32]]]:
    return [np.array(column, np.int32) for column in zip(*rows, strict=True)]


@settings(deadline=None)
@given(tuples())
def test_a_key_gives_back_its_tuple(case: tuple[Layout, list[tuple[int, ...]]]) -> None:
    layout, rows = case
    keys = layout.pack(columns(rows))
    assert keys.dtype == layout.dtype
    assert list(zip(*(column.tolist() for column in layout.unpack(keys)), strict=True)) == rows


@settings(deadline=None)
@given(tuples())
def test_keys_sort_as_tuples_do(case: tuple[Layout, list[tuple[int, ...]]]) -> None:
    layout, rows = case
    keys = np.sort(layout.pack(columns(rows)))
    assert list(zip(*(column.tolist() for column in layout.unpack(keys)), strict=True)) == sorted(rows)


@settings(deadline=None)
@given(tuples(), st.data())
def test_grouping_adds_up(case: tuple[Layout, list[tuple[int, ...]]], data: st.DataObject) -> None:
    layout, rows = case
    times = data.draw(st.lists(st.integers(1, 2**40), min_size=len(rows), max_size=len(rows)))
    wanted: Counter[tuple[int, ...]] = Counter()
    for row, more in zip(rows, times, strict=True):
        wanted[row] += more
    ones = np.ones(len(rows), np.int64)
    for counts, expected in ((None, Counter(rows)), (ones, Counter(rows)), (np.array(times), wanted)):
        keys, sums = grouped(layout.pack(columns(rows)), counts)
        found = list(zip(*(column.tolist() for column in layout.unpack(keys)), strict=True))
        assert found == sorted(expected)
        assert sums.tolist() == [expected[row] for row in found]


def test_nothing_is_grouped_into_nothing() -> None:
    for layout in (Layout((3,)), Layout((2**40, 2**40))):
        keys, counts = grouped(np.zeros(0, layout.dtype))
        assert len(keys) == len(counts) == 0
        assert [len(column) for column in layout.unpack(keys)] == [0] * len(layout.sizes)


@settings(deadline=None)
@given(tuples(), st.data())
def test_translating_picks_columns_and_replaces_codes(
    case: tuple[Layout, list[tuple[int, ...]]], data: st.DataObject
) -> None:
    layout, rows = case
    chosen = data.draw(st.lists(st.sampled_from(range(len(layout.sizes))), min_size=1, unique=True))
    small = {place for place in chosen if layout.sizes[place] <= 1000}
    tables = {place: np.arange(layout.sizes[place], dtype=np.int32)[::-1] for place in small}
    target = Layout(tuple(layout.sizes[place] for place in chosen))
    keys = translated(layout.pack(columns(rows)), layout, target, [(place, tables.get(place)) for place in chosen])
    found = list(zip(*(column.tolist() for column in target.unpack(keys)), strict=True))
    flipped = [tuple(layout.sizes[p] - 1 - row[p] if p in small else row[p] for p in chosen) for row in rows]
    assert found == flipped


@pytest.mark.parametrize(
    ("sizes", "words"),
    [((2**31, 2**31), 1), ((2**31, 2**31, 2), 2), ((2**31,) * 5, 3), ((5,), 1), ((1,) * 100, 1)],
)
def test_a_second_word_begins_at_two_to_the_63(sizes: tuple[int, ...], words: int) -> None:
    assert len(Layout(sizes).words) == words
    assert Layout(sizes).dtype == (np.dtype(np.int64) if words == 1 else np.dtype(f"S{8 * words}"))
