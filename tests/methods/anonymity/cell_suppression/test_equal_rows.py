"""Cells are left out until rows look alike, an empty cell being a value of its own."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.methods.anonymity.cell_suppression.agreement import make_equal
from tests.methods.anonymity.cell_suppression.slow import Row, fewest_alike, fewest_cells, matches, rows_of, shown_of

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 2)), min_size=4, max_size=25)
SMALL = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 2), st.integers(1, 3)), min_size=3, max_size=8)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(1, 4))
def test_every_combination_occurs_k_times_and_only_cells_are_gone(rows: list[Row], k: int) -> None:
    shown = shown_of(rows)
    parts = make_equal(shown, k, np.ones(3))
    left = rows_of(shown, parts)
    assert fewest_alike(left) >= k
    assert np.bincount(parts.tuples, parts.rows, len(shown)).tolist() == shown.rows.tolist()
    for tuple_, part in zip(
        shown.codes.T[parts.tuples], np.where(parts.blank, 0, shown.codes.T[parts.tuples]), strict=True
    ):
        assert all(cell in (0, before) for cell, before in zip(part, tuple_, strict=True))


@settings(max_examples=50, deadline=None)
@given(ROWS, st.integers(2, 4))
def test_whoever_knows_all_quasi_identifiers_finds_k_rows(rows: list[Row], k: int) -> None:
    shown = shown_of(rows)
    left = rows_of(shown, make_equal(shown, k, np.ones(3)))
    for person in rows:
        assert sum(all(cell in (0, known) for cell, known in zip(row, person, strict=True)) for row in left) >= k


@settings(max_examples=60, deadline=None)
@given(SMALL, st.integers(2, 3))
def test_no_fewer_cells_are_left_out_than_must_be(rows: list[Row], k: int) -> None:
    shown = shown_of(rows)
    assert make_equal(shown, k, np.ones(3)).price(shown, np.ones(3)) >= fewest_cells(rows, k)


@pytest.mark.parametrize(("rows", "values", "k"), [(6, 3, 2), (8, 3, 2), (9, 3, 3), (8, 2, 3)])
def test_on_small_tables_the_cells_are_few(rows: int, values: int, k: int) -> None:
    chance, found, fewest = np.random.default_rng(5), 0.0, 0
    for _ in range(25):
        table = [tuple(map(int, row)) for row in chance.integers(1, values + 1, (rows, 3))]
        shown = shown_of(table)
        found += make_equal(shown, k, np.ones(3)).price(shown, np.ones(3))
        fewest += fewest_cells(table, k)
    assert found <= 1.2 * fewest


def test_a_lonely_row_is_joined_by_rows_of_a_larger_class_where_that_is_cheaper() -> None:
    rows = [(1, 1, 1)] * 20 + [(1, 1, 2), (2, 2, 3), (2, 2, 3)]
    shown = shown_of(rows)
    left = Counter(rows_of(shown, make_equal(shown, 2, np.ones(3))))
    assert left == {(1, 1, 1): 19, (1, 1, 0): 2, (2, 2, 3): 2}


def test_the_last_ones_are_joined_by_whole_classes_where_no_class_can_spare_a_row() -> None:
    rows = [(1, 1)] * 2 + [(2, 2)] * 2 + [(3, 3)]
    shown = shown_of(rows)
    left = rows_of(shown, make_equal(shown, 2, np.ones(2)))
    assert fewest_alike(left) >= 2
    assert left.count((0, 0)) == 3


def test_cells_of_important_columns_are_left_out_last() -> None:
    rows = [(1, 1), (1, 2), (2, 1), (2, 2)]
    shown = shown_of(rows)
    assert Counter(rows_of(shown, make_equal(shown, 2, np.array([5.0, 1.0])))) == {(1, 0): 2, (2, 0): 2}
    assert Counter(rows_of(shown, make_equal(shown, 2, np.array([1.0, 5.0])))) == {(0, 1): 2, (0, 2): 2}


def test_what_is_missing_already_costs_nothing_and_helps() -> None:
    rows = [(0, 1), (3, 1)]
    shown = shown_of(rows)
    parts = make_equal(shown, 2, np.ones(2))
    assert parts.price(shown, np.ones(2)) == 1
    assert rows_of(shown, parts) == [(0, 1), (0, 1)]


def test_a_class_shows_every_cell_in_which_all_its_rows_agree() -> None:
    chance = np.random.default_rng(8)
    shown = shown_of([tuple(map(int, row)) for row in chance.integers(1, 5, (200, 4))])
    parts = make_equal(shown, 4, np.ones(4))
    before, after = shown.codes.T[parts.tuples], np.where(parts.blank, 0, shown.codes.T[parts.tuples])
    for one in np.unique(after, axis=0):
        members = before[(after == one).all(axis=1)]
        assert all(len(set(column)) > 1 for column, cell in zip(members.T, one, strict=True) if cell == 0)
        assert all(matches(tuple(one), tuple(member)) for member in members)


def test_a_wide_table_is_finished_though_not_all_patterns_are_tried() -> None:
    chance = np.random.default_rng(1)
    table = np.ones((40, 14), np.int32)
    table[np.arange(40), chance.integers(0, 14, 40)] = chance.integers(2, 50, 40)
    shown = shown_of([tuple(map(int, row)) for row in table])
    assert fewest_alike(rows_of(shown, make_equal(shown, 3, np.ones(14)))) >= 3
