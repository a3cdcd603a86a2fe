"""The second count of k, l and t agrees with the criteria, though it shares no code with them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.criteria.distances import equal, ordered
from incrowd.core.criteria.groups import Groups
from incrowd.core.criteria.variety import distinct, entropy
from incrowd.core.domain import Type
from incrowd.workflows.forms.anonymized import classes

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=40)


def groups(rows: list[tuple[int, int]]) -> Groups:
    keys, counts = np.unique(np.array(rows), axis=0, return_counts=True)
    met, values = np.unique(keys[:, 1], return_inverse=True)
    starts = np.flatnonzero(np.append(True, keys[1:, 0] != keys[:-1, 0]))
    return Groups(starts, values.astype(np.int32), counts.astype(np.int64), pa.array(met.astype(str)))


@settings(max_examples=80, deadline=None)
@given(ROWS)
def test_both_counts_agree(rows: list[tuple[int, int]]) -> None:
    table = pa.table({"q": [str(q) for q, _ in rows], "s": [str(s) for _, s in rows]})
    counted, known = classes.classes_of(table.to_batches(max_chunksize=7), ["q"], "s"), groups(rows)
    assert classes.distinct(counted) == distinct(known).min()
    assert classes.least_entropy(counted) == pytest.approx(entropy(known).min(), rel=1e-9)
    assert float(classes.farthest(counted, None) or 0) == pytest.approx(equal(known).max(), abs=1e-12)
    assert float(classes.farthest(counted, Type.INTEGER) or 0) == pytest.approx(ordered(known).max(), abs=1e-12)


def test_numbers_are_ordered_as_numbers_with_others_and_missing_last() -> None:
    table = pa.table({"q": ["a"] * 4, "s": ["10", None, "9", "other"]})
    counted = classes.classes_of(table.to_batches(), ["q"], "s")
    assert sorted(counted[("a",)], key=lambda value: classes._place(value, Type.INTEGER)) == ["9", "10", "other", None]


def test_a_table_without_rows_has_no_measures() -> None:
    assert classes.distinct({}) is None
    assert classes.least_entropy({}) is None
    assert classes.farthest({}, None) is None
