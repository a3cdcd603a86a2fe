"""Samples of multisets: what they keep does not hang on how they were made, and overlaps are estimated from them."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.fingerprints import KEPT, Bits, BottomK
from tests.statistics.alarm import FALSE_ALARM


def scattered(first: int, last: int) -> Bits:
    """Return random bits for the elements from one number on, below another; the same ones for the same numbers."""
    return np.random.default_rng(3).integers(0, 2**64 - 1, last, np.uint64)[first:]


def sample_of(*parts: Bits) -> BottomK:
    made = BottomK()
    for part in parts:
        made = made.with_elements(part)
    return made


@given(st.lists(st.integers(0, 3000), max_size=4000), st.integers(1, 7))
def test_the_smallest_elements_are_kept_with_their_whole_counts_however_they_come(
    elements: list[int], pieces: int
) -> None:
    bits = np.array(elements, np.uint64)
    expected = sorted(Counter(elements).items())[:KEPT]
    merged = BottomK()
    for piece in np.array_split(bits, pieces):
        merged = merged.merged(sample_of(piece))
    for made in (sample_of(bits), sample_of(*np.array_split(bits, pieces)), merged):
        assert list(zip(made.bits.tolist(), made.counts.tolist(), strict=True)) == expected


@given(*[st.lists(st.integers(0, 40), max_size=60) for _ in range(3)])
def test_while_all_is_kept_the_overlap_is_the_shared_share_of_the_smaller_multiset(
    ours: list[int], theirs: list[int], known: list[int]
) -> None:
    mine, other, besides = (sample_of(np.array(each, np.uint64)) for each in (ours, theirs, known))
    both = Counter(ours) & Counter(theirs)
    smaller = min(len(ours), len(theirs))
    assert mine.overlap(other) == other.overlap(mine) == (Fraction(both.total(), smaller) if smaller else 0)
    news = sum(count for element, count in both.items() if element not in known)
    assert mine.overlap(other, besides) == (Fraction(news, smaller) if smaller else 0)


@pytest.mark.parametrize("shared", [0, 4, 6, 10])
def test_the_overlap_of_large_sets_is_near_the_truth(shared: int) -> None:
    """Ten thousand elements a side: KEPT of the union are decided, so the estimate errs like as many coins."""
    size, both = 10_000, 1000 * shared
    estimate = sample_of(scattered(0, size)).overlap(sample_of(scattered(size - both, 2 * size - both)))
    decided = KEPT // 2
    margin = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * decided))  # Hoeffding
    assert abs(float(estimate) - shared / 10) <= margin
    assert (shared in (0, 10)) <= (estimate == shared // 10)


def test_an_extract_is_found_in_the_larger_set() -> None:
    whole, extract = sample_of(scattered(0, 200_000)), sample_of(scattered(1000, 11_000))
    assert extract.overlap(whole) == whole.overlap(extract) == 1


def test_a_union_holds_what_either_held_and_counts_nothing_twice() -> None:
    first, second = sample_of(np.array([1, 1, 2], np.uint64)), sample_of(np.array([1, 3], np.uint64))
    both = first.union(second)
    assert (both.bits.tolist(), both.counts.tolist()) == ([1, 2, 3], [2, 1, 1])
    assert first.union(first).counts.tolist() == first.counts.tolist()


def test_the_stored_form_is_as_long_for_nobody_as_for_many() -> None:
    many = sample_of(scattered(0, 5000))
    assert len({len(each.to_bytes()) for each in (BottomK(), sample_of(scattered(0, 3)), many)}) == 1
    again = BottomK.from_bytes(many.to_bytes())
    assert again.bits.tolist() == many.bits.tolist()
    assert again.counts.tolist() == many.counts.tolist()
