"""The association of two columns: what it is, and how far one row can move it."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.counts import Counts
from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.keys import Layout
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Missing, Outside
from incrowd.methods.anonymity.slicing.grouping import MOVED, association, associations

VALUES = ("x", "y", "z", "w")
Cell = tuple[int, int]


def counted(cells: Counter[Cell]) -> Counts:
    """Return the counts of cells that are given by the places of their two values."""
    columns = [
        Column(name, hierarchy=Flat(Categories(VALUES)), missing=Missing.DROP, outside=Outside.DROP) for name in "ab"
    ]
    classes = tuple(Recoding(column, 0).classes for column in columns)
    places = sorted(cell for cell in cells if cells[cell])
    codes = [np.array([place[side] for place in places], np.int32) for side in (0, 1)]
    layout = Layout(tuple(len(each) for each in classes if each is not None))
    return Counts(
        tuple(each for each in classes if each is not None),
        layout.pack(codes),
        np.array([cells[place] for place in places], np.int64),
    )


def slowly(cells: Counter[Cell]) -> Fraction:
    """Half the distance from independence, by its definition, over all cells."""
    n = sum(cells.values())
    if not n:
        return Fraction(0)
    ones, others = Counter[int](), Counter[int]()
    for (one, other), rows in cells.items():
        ones[one] += rows
        others[other] += rows
    pairs = product(range(len(VALUES)), repeat=2)
    return sum((abs(cells[a, b] - Fraction(ones[a] * others[b], n)) for a, b in pairs), Fraction(0)) / 2


UNIVERSE = [(a, b) for a in range(3) for b in range(3)]
cells = st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(1, 500), max_size=16).map(Counter)


def test_no_row_moves_it_by_more_than_two_whatever_the_table() -> None:
    """Every table of up to four rows over three values each, every row that can join it."""
    tables = [rows for size in range(6) for rows in combinations_with_replacement(UNIVERSE, size)]
    known = {rows: association(counted(Counter(rows))) for rows in tables}
    joined = [(rows, tuple(sorted((*rows, row)))) for rows in tables if len(rows) < 5 for row in UNIVERSE]
    assert 0 < max(abs(known[after] - known[before]) for before, after in joined) <= MOVED


@given(cells, st.tuples(st.integers(0, 3), st.integers(0, 3)))
@settings(max_examples=150, deadline=None)
def test_it_is_the_distance_rounded_down_and_moves_by_less_than_two(table: Counter[Cell], row: Cell) -> None:
    before, after = slowly(table), slowly(table + Counter([row]))
    assert association(counted(table)) == int(before)
    assert abs(after - before) < MOVED
    assert abs(int(after) - int(before)) <= MOVED


def test_two_is_what_a_row_with_new_values_adds_to_independent_columns() -> None:
    n = 900
    table = Counter(dict.fromkeys(UNIVERSE, n // 9))
    assert slowly(table) == 0
    assert slowly(table + Counter([(3, 3)])) == Fraction(2 * n, n + 1)


def test_columns_that_are_alike_are_as_far_from_independence_as_they_can_be() -> None:
    assert association(counted(Counter({(0, 0): 50, (1, 1): 50}))) == 50
    assert association(counted(Counter())) == 0


@pytest.mark.parametrize("rows", [2**30 - 1, 2**30, 2**40])
def test_no_product_of_large_counts_wraps(rows: int) -> None:
    assert association(counted(Counter({(0, 0): rows, (1, 1): rows}))) == rows


def test_all_pairs_are_found_in_the_order_of_the_columns() -> None:
    table = Counter({(0, 0): 30, (1, 1): 30})
    assert associations(counted(table)).tolist() == [[0, 30], [30, 0]]
