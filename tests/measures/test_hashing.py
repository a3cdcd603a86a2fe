from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.hashing import row_bits, value_bits

texts = st.lists(st.text(max_size=8) | st.none(), min_size=1, max_size=60)


@given(texts)
def test_equal_texts_share_their_bits_and_others_do_not(values: list[str | None]) -> None:
    bits = row_bits(pa.array(values, pa.string()), 1)
    pairs = dict(zip(values, bits, strict=True))
    assert len(set(pairs.values())) == len(set(values))
    assert [pairs[value] for value in values] == bits.tolist()


@given(texts, st.integers(0, 59))
def test_bits_do_not_depend_on_batches(values: list[str | None], cut: int) -> None:
    array = pa.array(values, pa.string())
    cut = min(cut, len(values))
    parts = [row_bits(array.slice(0, cut), 1), row_bits(array.slice(cut), 1)]
    assert np.concatenate(parts).tolist() == row_bits(array, 1).tolist()


@given(texts)
def test_a_dictionary_has_the_bits_of_what_it_stands_for(values: list[str | None]) -> None:
    array = pa.array(values, pa.string())
    assert row_bits(array.dictionary_encode(), 1).tolist() == row_bits(array, 1).tolist()


def test_half_a_million_similar_texts_do_not_collide() -> None:
    texts = pa.array([f"P{number:09d}" for number in range(400_000)] + [str(number) for number in range(100_000)])
    assert len(np.unique(value_bits(texts, 0))) == 500_000


def test_two_salts_give_unrelated_bits() -> None:
    values = pa.array(["F", "M", None])
    assert not set(row_bits(values, 1).tolist()) & set(row_bits(values, 2).tolist())


@pytest.mark.parametrize("salt", [0, 1, 14])
def test_bits_are_spread_over_all_places(salt: int) -> None:
    bits = value_bits(pa.array([f"{number:05d}" for number in range(20_000)]), salt)
    for place in range(64):
        ones = int(((bits >> np.uint64(place)) & np.uint64(1)).sum())
        assert abs(ones - 10_000) < 5 * 71  # five standard deviations


def test_what_is_missing_in_floats_is_one_value_and_zero_has_no_sign() -> None:
    bits = row_bits(pa.array([0.0, -0.0, float("nan"), None, 1.0]), 1)
    assert bits[0] == bits[1]
    assert bits[2] == bits[3]
    assert len(set(bits.tolist())) == 3


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, None],
        [True, False, None],
        [dt.date(2020, 1, 1), dt.date(2021, 1, 1), None],
        [dt.datetime(2020, 1, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1, 2, tzinfo=dt.UTC), None],
        [dt.time(12, 30), dt.time(12, 31), None],
        [Decimal("1.50"), Decimal("1.51"), None],
    ],
)
def test_every_type_of_value_has_bits(values: list[Any]) -> None:
    assert len(set(row_bits(pa.array([*values, values[0]]), 1).tolist())) == 3


def test_an_empty_array_has_no_bits() -> None:
    assert len(row_bits(pa.array([], pa.string()), 1)) == 0
    assert len(row_bits(pa.array([], pa.float64()), 1)) == 0
