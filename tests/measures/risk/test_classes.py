from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.measures.risk.classes import SizeRisk, Sizes, risk
from tests.measures.counted import Row, counted, rows

classes = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 300)), min_size=1, max_size=20)


@settings(deadline=None)
@given(rows)
def test_sizes_are_what_a_counter_counts(table: list[Row]) -> None:
    slow = Counter(row[:2] for row in table)
    sizes = Sizes.of(counted(table), ["first", "second"])
    assert sorted(sizes.counts) == sorted(slow.values())
    assert (sizes.rows, sizes.classes, sizes.smallest) == (len(table), len(slow), min(slow.values()))
    assert sizes.unique == sum(times == 1 for times in slow.values())
    assert sizes.average == len(table) / len(slow)


@settings(deadline=None)
@given(rows)
def test_below_counts_the_rows_that_a_recount_finds(table: list[Row]) -> None:
    slow = Counter(row[:2] for row in table)
    sizes = Sizes.of(counted(table), ["first", "second"])
    for k in range(1, 6):
        assert sizes.below(k) == sum(slow[row[:2]] < k for row in table)


@settings(deadline=None)
@given(rows)
def test_discernibility_counts_pairs_that_cannot_be_told_apart(table: list[Row]) -> None:
    pairs = sum(one[:2] == other[:2] for one in table for other in table)
    assert Sizes.of(counted(table), ["first", "second"]).discernibility() == pairs


def test_a_suppressed_row_is_paired_with_every_row() -> None:
    assert Sizes(np.array([4])).discernibility(suppressed=2) == 16 + 2 * 6


def test_discernibility_does_not_wrap() -> None:
    assert Sizes(np.array([2**32, 1])).discernibility() == 2**64 + 1


def test_over_no_columns_all_rows_are_one_class() -> None:
    assert Sizes.of(counted([("a", "b", "1"), ("c", None, "2")]), []).counts.tolist() == [2]


def test_an_empty_table_has_no_smallest_class() -> None:
    sizes = Sizes(np.zeros(0, np.int64))
    assert (sizes.smallest, sizes.average, sizes.rows, sizes.unique, sizes.below(5)) == (None, None, 0, 0, 0)


@given(classes, st.floats(0, 1))
def test_risk_is_what_row_by_row_guessing_gives(table: list[tuple[int, int]], threshold: float) -> None:
    rows = np.array([here for here, _ in table])
    crowd = np.array([here + more for here, more in table])
    each = [1 / size for here, size in zip(rows, crowd, strict=True) for _ in range(here)]
    found = risk(rows, crowd, threshold)
    assert found.highest == max(each)
    assert found.average == pytest.approx(sum(each) / len(each))
    assert found.above == pytest.approx(sum(one > threshold for one in each) / len(each))


@given(classes, st.floats(0, 1))
def test_a_larger_crowd_never_means_more_risk(table: list[tuple[int, int]], threshold: float) -> None:
    rows = np.array([here for here, _ in table])
    crowd = np.array([here + more for here, more in table])
    alone, hidden = risk(rows, rows, threshold), risk(rows, crowd, threshold)
    assert hidden.highest <= alone.highest
    assert hidden.average <= alone.average * (1 + 1e-12)
    assert hidden.above <= alone.above


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20))
def test_the_marketer_gets_one_row_of_each_class_right(sizes: list[int]) -> None:
    each = np.array(sizes)
    assert risk(each, each, 0.2).average == pytest.approx(len(sizes) / sum(sizes))


def test_no_rows_no_risk() -> None:
    nobody = np.zeros(0, np.int64)
    assert risk(nobody, nobody, 0.2) == SizeRisk(0.0, 0.0, 0.0)
