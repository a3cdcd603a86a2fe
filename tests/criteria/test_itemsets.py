"""Supports of combinations of items, counted by definition."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.criteria import itemsets
from incrowd.criteria.itemsets import KmAnonymity, smallest_support, supports
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.criteria.partition import Partition
from incrowd.errors import InvalidParameter
from tests.core.test_sets import sets_of

ROWS = st.lists(st.sets(st.integers(0, 7), max_size=6), max_size=15)


def by_definition(rows: list[set[int]], m: int) -> Counter[tuple[int, ...]]:
    """Count the rows of every combination of 1 to m items, one by one; the greatest item first."""
    return Counter(
        chosen for row in rows for size in range(1, m + 1) for chosen in combinations(sorted(row, reverse=True), size)
    )


def counted(rows: list[set[int]], m: int, least: int = 0) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for layout, keys, times in supports(sets_of(rows), m, least):
        for chosen, number in zip(zip(*layout.unpack(keys), strict=True), times, strict=True):
            assert tuple(map(int, chosen)) not in found
            found[tuple(map(int, chosen))] = int(number)
    return found


@given(ROWS, st.integers(1, 4))
def test_supports_are_those_of_the_definition(rows: list[set[int]], m: int) -> None:
    assert counted(rows, m) == by_definition(rows, m)


@given(ROWS, st.integers(1, 3), st.integers(0, 8))
def test_only_combinations_with_a_great_item_are_counted_when_asked(rows: list[set[int]], m: int, least: int) -> None:
    expected = {chosen: times for chosen, times in by_definition(rows, m).items() if chosen[0] >= least}
    assert counted(rows, m, least) == expected


@given(ROWS, st.integers(1, 3), st.integers(1, 20))
def test_pieces_of_any_size_come_to_the_same(rows: list[set[int]], m: int, at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(itemsets, "_AT_ONCE", at_once)
        assert counted(rows, m) == by_definition(rows, m)


@given(ROWS, st.integers(1, 4))
def test_the_smallest_support_is_the_least_of_all(rows: list[set[int]], m: int) -> None:
    assert smallest_support(sets_of(rows), m) == min(by_definition(rows, m).values(), default=len(rows))


def test_large_codes_are_sorted_and_not_counted_one_by_one() -> None:
    rows = [{0, 2**21, 2**30}, {2**21, 2**30}, {0, 2**30}]
    assert counted(rows, 3) == by_definition(rows, 3)


@given(st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(0, 3), max_size=3)), min_size=1, max_size=14))
def test_the_criterion_looks_into_each_class_on_its_own(rows: list[tuple[int, set[int]]]) -> None:
    classes = sorted({name for name, _ in rows})
    owners = np.array([classes.index(name) for name, _ in rows], np.intp)
    sizes = np.bincount(owners)
    partition = Partition(sizes, sets={"bought": (sets_of([row for _, row in rows]), owners)})
    for k in (1, 2, 3):
        expected = [
            min(by_definition([row for other, row in rows if other == name], 2).values(), default=10**9) >= k
            and size >= k
            for name, size in zip(classes, sizes, strict=True)
        ]
        assert KmAnonymity("bought", k, 2).met(partition).tolist() == expected


def test_it_combines_with_others() -> None:
    owners = np.array([0, 0, 1, 1, 1], np.intp)
    partition = Partition(np.array([2, 3]), sets={"bought": (sets_of([{0}, {0}, {1}, {1}, {1}]), owners)})
    assert (KAnonymity(3) & KmAnonymity("bought", 2, 1)).met(partition).tolist() == [False, True]


@given(ROWS, st.lists(st.integers(0, 3), min_size=8, max_size=8), st.integers(1, 3))
def test_merging_items_never_makes_a_combination_rarer(rows: list[set[int]], table: list[int], m: int) -> None:
    coarser = sets_of(rows).mapped(np.array(table, np.int32))
    assert smallest_support(coarser, m) >= smallest_support(sets_of(rows), m)


def test_strange_parameters_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="k must be at least 1"):
        KmAnonymity("bought", 0, 2)
    with pytest.raises(InvalidParameter, match="m must be at least 1"):
        KmAnonymity("bought", 2, 0)
    with pytest.raises(InvalidParameter, match="declare its separator"):
        KmAnonymity("bought", 2, 1).met(Partition(np.array([2])))
