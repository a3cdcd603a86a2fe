from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidParameter
from incrowd.measures.risk.special_uniques import data_intrusion, special_uniques

small = st.integers(1, 5).flatmap(
    lambda columns: st.lists(st.tuples(*[st.integers(0, 2)] * columns), min_size=1, max_size=14)
)


def slow(rows: list[tuple[int, ...]]) -> tuple[list[float], list[float]]:
    """Scores and contributions by going through all sets of columns and all their parts."""
    m = len(rows[0])
    scores, columns = [0.0] * len(rows), [0.0] * m
    sets = [members for size in range(1, m + 1) for members in combinations(range(m), size)]
    counted = {members: Counter(tuple(row[c] for c in members) for row in rows) for members in sets}
    for number, row in enumerate(rows):
        alone = {members for members in sets if counted[members][tuple(row[c] for c in members)] == 1}
        for members in alone:
            if not any(set(part) < set(members) for part in alone):
                scores[number] += math.factorial(m - len(members))
                for column in members:
                    columns[column] += math.factorial(m - len(members))
    return scores, columns


@settings(deadline=None, max_examples=60)
@given(small)
def test_scores_are_those_of_brute_force(rows: list[tuple[int, ...]]) -> None:
    found = special_uniques(list(np.array(rows).T))
    scores, columns = slow(rows)
    assert found.scores.tolist() == scores
    assert found.contributions == pytest.approx(np.array(columns) / (sum(scores) or 1.0))


@settings(deadline=None, max_examples=30)
@given(small)
def test_neither_the_order_of_rows_nor_of_columns_matters(rows: list[tuple[int, ...]]) -> None:
    table = np.array(rows)
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    across = np.random.default_rng(len(rows[0])).permutation(table.shape[1])
    found, other = special_uniques(list(table.T)), special_uniques(list(table[order][:, across].T))
    assert other.scores.tolist() == found.scores[order].tolist()
    assert other.contributions == pytest.approx(found.contributions[across])


def test_a_row_with_a_twin_is_never_special() -> None:
    rows = np.random.default_rng(3).integers(0, 4, (40, 6))
    found = special_uniques(list(np.vstack([rows, rows]).T))
    assert found.rows == 0


def test_sets_up_to_a_size_are_looked_at_and_no_larger_ones() -> None:
    rows = np.random.default_rng(4).integers(0, 2, (30, 14))
    assert len(special_uniques(list(rows.T), largest=2).by_size) == 2
    many = special_uniques(list(np.random.default_rng(4).integers(0, 2, (30, 20)).T))
    assert many.largest < 20


def test_a_share_of_nobody_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="above 0"):
        data_intrusion(1, 1, 0)
    with pytest.raises(InvalidParameter, match="at least one column"):
        special_uniques([])
