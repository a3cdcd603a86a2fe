"""Suppressed small counts."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.core.loss import Crowd
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.suppress import Suppress


@pytest.mark.parametrize("k", [1, 2, 3])
def test_they_ignore_everyone_in_a_small_bin(k: int) -> None:
    mechanism = Suppress(k)
    for count in range(1, k):
        with_one, without = mechanism.release(np.array([count, 9])), mechanism.release(np.array([count - 1, 9]))
        assert with_one.tolist() == without.tolist() == [0, 9]
    assert mechanism.release(np.array([k])).tolist() == [k]


def test_the_promise_follows_from_k() -> None:
    assert Suppress(7).loss == Crowd(7)


def test_a_crowd_of_nobody_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        Suppress(0)


def test_counts_with_fractions_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        Suppress(2).release(np.array([1.5]))
