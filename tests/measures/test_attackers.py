from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.measures.attackers import Risk, risk

classes = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 300)), min_size=1, max_size=20)


@given(classes, st.floats(0, 1))
def test_risk_is_what_row_by_row_guessing_gives(table: list[tuple[int, int]], threshold: float) -> None:
    rows = np.array([here for here, _ in table])
    crowd = np.array([here + more for here, more in table])
    each = [1 / size for here, size in zip(rows, crowd, strict=True) for _ in range(here)]
    found = risk(rows, crowd, threshold)
    assert found.highest == max(each)
    assert found.average == pytest.approx(sum(each) / len(each))
    assert found.above == pytest.approx(sum(one > threshold for one in each) / len(each))


@given(classes, st.floats(0, 1))
def test_a_larger_crowd_never_means_more_risk(table: list[tuple[int, int]], threshold: float) -> None:
    rows = np.array([here for here, _ in table])
    crowd = np.array([here + more for here, more in table])
    alone, hidden = risk(rows, rows, threshold), risk(rows, crowd, threshold)
    assert hidden.highest <= alone.highest
    assert hidden.average <= alone.average * (1 + 1e-12)
    assert hidden.above <= alone.above


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20))
def test_the_marketer_gets_one_row_of_each_class_right(sizes: list[int]) -> None:
    each = np.array(sizes)
    assert risk(each, each, 0.2).average == pytest.approx(len(sizes) / sum(sizes))


def test_no_rows_no_risk() -> None:
    nobody = np.zeros(0, np.int64)
    assert risk(nobody, nobody, 0.2) == Risk(0.0, 0.0, 0.0)
