"""Demands on subsets of the columns, one after the other until all are met."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.methods.anonymity.cell_suppression.cells import VisibleTuples
from incrowd.methods.anonymity.cell_suppression.method import CrowdDemand, SuppressedTuples, suppress_cells
from tests.methods.anonymity.cell_suppression.slow import Row, fewest_alike, fewest_matching, rows_of, shown_of

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 2), st.just(7)), min_size=1, max_size=20)


def found(rows: list[Row], crowded: CrowdDemand) -> SuppressedTuples | None:
    return suppress_cells(shown_of(rows), crowded, np.ones(len(rows[0])))


@pytest.mark.parametrize("wild", [False, True])
@settings(max_examples=40, deadline=None)
@given(rows=ROWS, k=st.integers(1, 3), pairs=st.integers(1, 5), singles=st.integers(1, 6))
def test_every_subset_is_crowded(rows: list[Row], k: int, pairs: int, singles: int, *, wild: bool) -> None:
    crowded = CrowdDemand(k, {1: singles, 2: pairs}, wild)
    pieces = found(rows, crowded)
    if len(rows) < max(k, pairs, singles):
        assert pieces is None
        return
    assert pieces is not None
    left, count = rows_of(pieces.visible), fewest_matching if wild else fewest_alike
    for size, least in ((1, singles), (2, pairs), (4, k)):
        for columns in combinations(range(4), size):
            assert count(left, columns) >= least
    assert np.bincount(pieces.origins, pieces.visible.rows).tolist() == shown_of(rows).rows.tolist()
    assert all(7 in row for row in left), "a column that all rows share tells nobody apart"


def test_subsets_cost_no_more_than_the_same_crowd_in_all_columns() -> None:
    chance = np.random.default_rng(4)
    shown = shown_of([tuple(map(int, row)) for row in chance.integers(1, 6, (200, 5))])
    weights = np.ones(5)
    some = suppress_cells(shown, CrowdDemand(1, {3: 5}), weights)
    every = suppress_cells(shown, CrowdDemand(5, {}), weights)
    assert some is not None
    assert every is not None
    assert some.price(shown, weights) <= every.price(shown, weights)


def test_without_a_demand_nothing_is_left_out() -> None:
    shown = shown_of([(1, 2), (3, 4)])
    pieces = suppress_cells(shown, CrowdDemand(1, {1: 1}), np.ones(2))
    assert pieces is not None
    assert pieces.visible is shown


def test_a_demand_on_as_many_columns_as_there_are_is_one_on_all() -> None:
    assert list(CrowdDemand(2, {2: 5}).over(2)) == [((0, 1), 5)]
    assert list(CrowdDemand(7, {2: 5}).over(2)) == [((0, 1), 7)]


def test_a_table_without_rows_has_nothing_to_leave_out() -> None:
    nobody = VisibleTuples(np.zeros((2, 0), np.int32), np.zeros(0, np.int64))
    assert suppress_cells(nobody, CrowdDemand(2, {}), np.ones(2)) is None
