"""Integers under noise: no overflow, no fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from incrowd.core.rounding import Number
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.numbers import WIDEST, counting_number, integers, plus, positive, probability

signed = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize("values", [np.array([1.0]), np.array([True]), np.array(["1"]), np.array([1 + 0j])])
def test_what_is_not_whole_is_refused(values: NDArray[Any]) -> None:
    with pytest.raises(InvalidParameter, match="integers only"):
        integers(values)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_every_kind_of_integer_is_taken(dtype: type[np.integer[Any]]) -> None:
    assert integers(np.array([0, 100], dtype=dtype)).tolist() == [0, 100]


def test_the_widest_integers_are_held_in_range() -> None:
    assert integers(np.array([-(2**63), 2**63 - 1])).tolist() == [-WIDEST, WIDEST]
    assert integers(np.array([2**64 - 1], dtype=np.uint64)).tolist() == [WIDEST]


@given(signed, signed)
def test_holding_never_moves_numbers_apart_and_keeps_their_order(one: int, other: int) -> None:
    low, high = integers(np.array(sorted((one, other)))).tolist()
    assert 0 <= high - low <= abs(one - other)


@given(signed, st.integers(-(2**70), 2**70))
def test_noise_that_was_cut_off_gives_what_unbounded_noise_gives(value: int, noise: int) -> None:
    held = integers(np.array([value]))
    cut = max(-(2**62), min(2**62, noise))
    unbounded = max(-WIDEST, min(WIDEST, int(held[0]) + noise))
    assert plus(held, np.array([cut])).tolist() == [unbounded]


def test_a_decimal_means_what_was_written() -> None:
    assert positive("0.1", "epsilon") == positive(0.1, "epsilon") == Fraction(1, 10)


@pytest.mark.parametrize("number", [0, -1, "nan", float("inf")])
def test_what_is_not_positive_is_refused_by_name(number: Number) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        positive(number, "epsilon")


@pytest.mark.parametrize("number", [0, 1, 2, -1])
def test_what_is_no_probability_is_refused_by_name(number: Number) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        probability(number, "delta")


@pytest.mark.parametrize("number", [0, -3, 1.0, True, "2"])
def test_what_does_not_count_is_refused_by_name(number: object) -> None:
    with pytest.raises(InvalidParameter, match="k must"):
        counting_number(number, "k")
