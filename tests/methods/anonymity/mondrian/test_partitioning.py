"""The fast algorithm cuts as the recursion does, whatever the table."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from incrowd.core.domain import Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.tree import TreeHierarchy
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Missing, Outside
from incrowd.methods.anonymity.mondrian.axes import Axis
from incrowd.methods.anonymity.mondrian.pieces import Pieces, TupleGrid, partition_tuples
from tests.methods.anonymity.mondrian.recursion import Branches, Line, Row, recursion

PATHS = (("a", "x", "p"), ("a", "x", "q"), ("a", "y", "r"), ("b", "z", "s"), ("b", "z", "t"), ("b", "w", "u"))
COLUMNS: tuple[Line | Branches, ...] = (Line(), Branches(PATHS), Line())
TOP = 9


def axis(column: Line | Branches) -> Axis:
    if isinstance(column, Line):
        numbers = Column("n", type=Type.INTEGER, hierarchy=Flat(Numbers(0, TOP)), missing=Missing.DROP)
        found = Recoding(numbers, 0).classes
    else:
        tree = TreeHierarchy(tuple(path[::-1] for path in column.paths))
        found = Recoding(Column("c", hierarchy=tree, missing=Missing.DROP, outside=Outside.DROP), 0).classes
    assert found is not None
    return Axis.of(found)


AXES = tuple(axis(column) for column in COLUMNS)


def grid(rows: list[Row]) -> tuple[TupleGrid, list[Row]]:
    """Return the table as it is counted: each tuple once, in order, with how often it occurs."""
    counted = sorted(Counter(rows).items())
    tuples = [row for row, _ in counted]
    codes = [np.array([row[c] for row in tuples], np.int32) for c in range(len(COLUMNS))]
    return TupleGrid.of(AXES, codes, np.array([times for _, times in counted], np.int64)), tuples


def fast(rows: list[Row], k: int, odd: int, *, relaxed: bool) -> list[Counter[Row]]:
    """Cut the table; a piece may stand alone with k rows and, if wanted, so many different last places."""
    laid, tuples = grid(rows)

    def met(pieces: Pieces) -> NDArray[np.bool_]:
        several = [len({tuples[t][2] for t in part}) >= odd for part in np.split(pieces.tuples, pieces.starts[1:])]
        return (pieces.sizes >= k) & np.array(several, np.bool_)

    pieces = partition_tuples(laid, met, k, relaxed=relaxed)
    parts = zip(np.split(pieces.tuples, pieces.starts[1:]), np.split(pieces.rows, pieces.starts[1:]), strict=True)
    found: list[Counter[Row]] = []
    for inside, times in parts:
        counted: Counter[Row] = Counter()
        for place, n in zip(inside.tolist(), times.tolist(), strict=True):
            counted[tuples[place]] += n
        found.append(counted)
    return found


def as_set(classes: list[Counter[Row]]) -> Counter[tuple[tuple[Row, int], ...]]:
    return Counter(tuple(sorted(each.items())) for each in classes)


TABLES = st.lists(st.tuples(st.integers(0, TOP), st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=60)


@settings(max_examples=150, deadline=None)
@given(TABLES, st.integers(1, 6), st.integers(1, 2), st.booleans())
def test_the_classes_are_those_of_the_recursion(rows: list[Row], k: int, odd: int, relaxed: bool) -> None:
    expected = recursion(
        rows, COLUMNS, lambda part: len(part) >= k and len({row[2] for row in part}) >= odd, relaxed=relaxed
    )
    assert as_set(fast(rows, k, odd, relaxed=relaxed)) == as_set(expected)


@settings(max_examples=150, deadline=None)
@given(TABLES, st.integers(1, 6), st.booleans())
def test_classes_cover_every_row_once_and_hold_at_least_k(rows: list[Row], k: int, relaxed: bool) -> None:
    classes = fast(rows, k, 1, relaxed=relaxed)
    assert sum(classes, Counter()) == Counter(rows)
    if len(rows) >= k:
        assert min(each.total() for each in classes) >= k


@settings(max_examples=60, deadline=None)
@given(TABLES, st.integers(1, 6))
def test_strict_classes_share_no_tuple(rows: list[Row], k: int) -> None:
    seen = [row for each in fast(rows, k, 1, relaxed=False) for row in each]
    assert len(seen) == len(set(seen))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, TOP), min_size=1, max_size=60), st.integers(1, 5))
def test_relaxed_classes_of_different_numbers_hold_fewer_than_twice_k_rows(values: list[int], k: int) -> None:
    classes = fast([(value, 0, 0) for value in values], k, 1, relaxed=True)
    for each in classes:
        assert each.total() < 2 * k or len(each) == 1


def test_the_wider_column_is_cut_first_and_equally_wide_ones_in_order() -> None:
    wide: list[Row] = [(0, 0, 0), (0, 0, 3), (9, 0, 0), (9, 0, 3)]
    assert [set(each) for each in fast(wide, 2, 1, relaxed=False)] == [set(wide[:2]), set(wide[2:])]
    tall: list[Row] = [(0, 0, 0), (0, 0, 3), (1, 0, 0), (1, 0, 3), (9, 0, 0)]
    first = fast(tall, 2, 1, relaxed=False)
    assert {(9, 0, 0), (1, 0, 0)} <= max(map(set, first), key=len)


def test_a_piece_without_an_allowed_cut_along_its_widest_axis_is_cut_along_the_next() -> None:
    rows: list[Row] = [*[(0, 0, 0)] * 5, (9, 0, 0), *[(0, 3, 0)] * 2]
    classes = fast(rows, 2, 1, relaxed=False)
    assert sorted(each.total() for each in classes) == [2, 6]


def test_a_table_without_rows_has_no_classes() -> None:
    assert (
        len(
            partition_tuples(
                TupleGrid(AXES, np.zeros((3, 0), np.int16), np.zeros(0, np.int64)), lambda p: p.sizes > 0, 2
            )
        )
        == 0
    )


@pytest.mark.parametrize("spread", [1, 10**6])
def test_counting_and_sorting_tally_alike(spread: int) -> None:
    from incrowd.methods.anonymity.mondrian.pieces import tally

    chance = np.random.default_rng(5)
    values = chance.integers(0, 50, 300) * spread
    pieces = Pieces(np.arange(300), chance.integers(1, 5, 300), np.array([0, 40, 41, 200]))
    low, high = (end.reduceat(values, pieces.starts) for end in (np.minimum, np.maximum))
    counted = tally(pieces, values, low, high)
    expected: Counter[tuple[int, int]] = Counter()
    for number, value, times in zip(pieces.number.tolist(), values.tolist(), pieces.rows.tolist(), strict=True):
        expected[number, value] += times
    got = zip(counted.number.tolist(), counted.values.tolist(), strict=True)
    assert list(zip(got, counted.rows.tolist(), strict=True)) == sorted(expected.items())
