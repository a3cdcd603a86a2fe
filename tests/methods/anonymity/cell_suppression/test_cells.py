"""Sets of cells to leave out come from the cheapest on."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.methods.anonymity.cell_suppression.cells import Patterns

WEIGHTS = st.lists(st.integers(1, 5).map(float), min_size=1, max_size=6)


@given(WEIGHTS)
def test_every_set_of_cells_is_there_once_in_the_order_of_prices(weights: list[float]) -> None:
    found = Patterns.of(weights)
    sets = [frozenset(np.flatnonzero(row).tolist()) for row in found.blank]
    everything = [
        frozenset(some) for size in range(len(weights) + 1) for some in combinations(range(len(weights)), size)
    ]
    assert len(sets) == len(set(sets)) == len(everything)
    assert set(sets) == set(everything)
    assert found.prices.tolist() == [sum(weights[column] for column in some) for some in sets]
    assert (np.diff(found.prices) >= 0).all()
    bounds = [*found.starts, len(found)]
    for start, stop in pairwise(bounds):
        assert len(set(found.prices[start:stop])) == 1


@given(WEIGHTS.filter(lambda weights: len(weights) > 3))
def test_where_there_are_too_many_the_cheapest_stay_and_whole_columns_follow(weights: list[float]) -> None:
    few, every = Patterns.of(weights, most=7), Patterns.of(weights)
    assert few.prices[:7].tolist() == every.prices[:7].tolist()
    assert not few.blank[0].any()
    assert few.blank[-1].all()
    assert len(np.unique(few.blank, axis=0)) == len(few)


def test_a_wide_table_has_few_patterns() -> None:
    assert len(Patterns.of([1.0] * 40)) <= 2**12 + 40


def test_patterns_within_another_leave_out_nothing_else() -> None:
    found = Patterns.of([1.0, 1.0, 1.0])
    pattern = next(place for place, blank in enumerate(found.blank.tolist()) if blank == [True, False, True])
    assert {tuple(row) for row in found.blank[found.within(pattern)].tolist()} == {
        (False, False, False),
        (True, False, False),
        (False, False, True),
        (True, False, True),
    }


@pytest.mark.parametrize("weights", [[1e-9, 1.0], [1.0, 1.0 + 1e-7]])
def test_prices_that_are_nearly_equal_are_in_order(weights: list[float]) -> None:
    assert (np.diff(Patterns.of(weights).prices) > -1e-9).all()
