"""Cells are left out until k rows match every row, an empty cell matching anything; and how little that says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.methods.anonymity.cell_suppression import agreement as module
from incrowd.methods.anonymity.cell_suppression.agreement import count_matches, make_equal, make_match
from tests.methods.anonymity.cell_suppression.slow import Row, fewest_matching, matches, rows_of, shown_of

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), min_size=4, max_size=25)


@settings(max_examples=50, deadline=None)
@given(ROWS)
def test_rows_that_match_are_counted_as_one_by_one(rows: list[Row]) -> None:
    shown = shown_of(rows)
    slowly = [sum(matches(tuple(one), other) for other in rows) for one in shown.codes.T.tolist()]
    assert count_matches(shown, len(rows) + 1).tolist() == slowly
    assert np.minimum(count_matches(shown, 3), 3).tolist() == [min(3, count) for count in slowly]


@settings(max_examples=50, deadline=None)
@given(ROWS, st.integers(1, 4))
def test_k_rows_match_every_row_and_no_cell_could_be_shown_again(rows: list[Row], k: int) -> None:
    shown = shown_of(rows)
    parts = make_match(shown, k, np.ones(3))
    assert fewest_matching(rows_of(shown, parts)) >= k
    for place, column in zip(*np.nonzero(parts.blank), strict=True):
        fewer = parts.blank.copy()
        fewer[place, column] = False
        left = np.repeat(np.where(fewer, 0, shown.codes.T), shown.rows, axis=0)
        assert fewest_matching([tuple(map(int, row)) for row in left]) < k


@settings(max_examples=50, deadline=None)
@given(ROWS, st.integers(2, 4))
def test_a_few_rows_that_show_nothing_make_any_table_pass(rows: list[Row], k: int) -> None:
    """Why the fewest cells are no aim in this sense of missing: the others show everything."""
    emptied = [(0, 0, 0)] * (k - 1) + rows[k - 1 :]
    assert fewest_matching(emptied) >= k


def test_somebody_who_knows_the_value_finds_a_row_that_all_others_match() -> None:
    village = [(1, 30)] * 4 + [(1, 31)]
    shown = shown_of(village)
    wild = rows_of(shown, make_match(shown, 5, np.ones(2)))
    assert sorted(wild) == [(1, 0), *[(1, 30)] * 4]
    assert fewest_matching(wild) == 5
    assert [row for row in wild if matches(row, (1, 31))] == [(1, 0)]
    strict = rows_of(shown, make_equal(shown, 5, np.ones(2)))
    assert len([row for row in strict if matches(row, (1, 31))]) == 5


def test_where_too_many_pairs_would_be_compared_nothing_is_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(2)
    shown = shown_of([tuple(map(int, row)) for row in chance.integers(1, 6, (300, 4))])
    thorough = make_match(shown, 5, np.ones(4))
    monkeypatch.setattr(module, "_PAIRS", 1)
    quick = make_match(shown, 5, np.ones(4))
    assert fewest_matching(rows_of(shown, quick)) >= 5
    assert thorough.price(shown, np.ones(4)) < quick.price(shown, np.ones(4))
    assert not (thorough.blank & ~quick.blank).any()
