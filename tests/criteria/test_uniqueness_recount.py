"""Two ways to the same estimates of unique people."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma

from incrowd.criteria.uniqueness import criterion, recount
from incrowd.criteria.uniqueness.criterion import Estimator
from incrowd.criteria.uniqueness.recount import MODELS

MANY = [1] * 120 + [2] * 40 + [3] * 20 + [4] * 12 + [5] * 8 + [6] * 5 + [10] * 3 + [20] * 2 + [50]
SIZES = st.lists(st.sampled_from([1, 1, 1, 2, 2, 3, 5, 9]), min_size=1, max_size=25)


@pytest.mark.parametrize("people", [600, 3000, 20_000])
@pytest.mark.parametrize("model", MODELS)
def test_a_large_table(model: Estimator, people: int) -> None:
    expected = criterion.unique_share(np.array(MANY), people, model)
    assert recount.unique_share(MANY, people, model) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(SIZES, st.sampled_from([1, 2, 7, 30]), st.sampled_from(MODELS))
def test_small_tables(sizes: list[int], times: int, model: Estimator) -> None:
    people = sum(sizes) * times
    expected = criterion.unique_share(np.array(sizes), people, model)
    assert recount.unique_share(sizes, people, model) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(0, 30))
def test_zayatz_estimate_is_that_of_the_criterion(sizes: list[int], more: int) -> None:
    people = sum(sizes) + more
    expected = criterion.unique_share(np.array(sizes), people)
    assert recount.zayatz(sizes, people) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_more_rows_than_people_and_strange_models_are_not_estimated() -> None:
    assert recount.unique_share([1, 2], 2, "pitman") is None
    with pytest.raises(ValueError, match="not known here"):
        recount.unique_share([1, 2], 10, "guess")


@given(st.floats(1e-9, 1e12))
def test_digamma_is_that_of_scipy(number: float) -> None:
    assert recount.digamma(number) == pytest.approx(float(digamma(number)), rel=1e-13, abs=1e-13)
