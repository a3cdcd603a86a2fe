"""What is measured of a sensitive column does not depend on how many classes are looked at at a time."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.criteria.groups import Groups
from incrowd.methods.anonymity.shared.demands import Recursive, Sensitive
from incrowd.workflows.check.criteria import Declared, closeness_of, demands_on, parts_of

ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), min_size=1, max_size=60)
EVERYTHING = Sensitive(
    recursive=Recursive(Fraction(2), 3),
    beta=Fraction(1),
    enhanced_beta=Fraction(1),
    disclosure=Fraction(1),
    harmless=("3",),
)


def groups_of(rows: list[tuple[int, int]]) -> Groups:
    keys, counts = np.unique(np.array(rows), axis=0, return_counts=True)
    met, values = np.unique(keys[:, 1], return_inverse=True)
    starts = np.flatnonzero(np.append(True, keys[1:, 0] != keys[:-1, 0]))
    return Groups(starts, values.astype(np.int32), counts.astype(np.int64), pa.array(met.astype(str)))


@settings(max_examples=150, deadline=None)
@given(ROWS, st.integers(1, 20))
def test_part_by_part_every_class_measures_what_it_measures_in_the_whole(rows: list[tuple[int, int]], n: int) -> None:
    whole = groups_of(rows)
    scale = closeness_of(whole.labels, Sensitive(), Declared(), in_order=True)
    demands = [demand for demand, _ in demands_on("s", EVERYTHING, scale.distance)]
    assert len(demands) == 7
    parts = list(parts_of(whole, n))
    assert sum(number for _, number in parts) == len(whole.starts)
    for demand in demands:
        found = np.concatenate([demand.measured(part)[:number] for part, number in parts])
        assert found == pytest.approx(demand.measured(whole), abs=1e-12), demand


def test_parts_hold_few_cells_and_never_cut_a_class() -> None:
    whole = groups_of([(q, v) for q in range(50) for v in range(4)])
    for part, number in parts_of(whole, 10):
        assert number <= 4
        assert len(part.counts) <= 10 + 2 * 4
        assert part.counts.sum() == 200
