"""Ranges in equal pieces, against the rule applied one value at a time."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.domain import Dates, Numbers, Type
from incrowd.core.hierarchy.slices import Slices
from incrowd.errors import InvalidParameter

DAY = date(2024, 2, 20)


@given(st.integers(-50, 50), st.integers(1, 60), st.integers(1, 60), st.data())
def test_whole_numbers_are_dealt_out_evenly_and_by_the_rule(
    low: int, length: int, pieces: int, data: st.DataObject
) -> None:
    pieces = min(pieces, length)
    slices = Slices(Numbers(low, low + length - 1), pieces)
    sizes = np.diff(slices.ends)
    assert sizes.sum() == length
    assert sizes.max() - sizes.min() <= 1
    value = data.draw(st.integers(low, low + length - 1))
    code = int(slices.codes(pa.array([value]), 1)[0])
    assert slices.ends[code] <= value < slices.ends[code + 1]
    assert slices.generalize(str(value), 1) == (slices.labels(1) or ())[code]


@given(st.integers(1, 40), st.floats(-3, 7.5), st.sampled_from(["-3", "-1/3"]))
def test_decimals_lie_in_the_piece_that_the_rule_says(pieces: int, value: float, low: str) -> None:
    slices = Slices(Numbers(Fraction(low), "7.5", Type.DECIMAL), pieces)
    value = max(value, float(Fraction(low)))
    code = int(slices.codes(pa.array([value]), 1)[0])
    assert slices.ends[code] <= value <= slices.ends[code + 1]
    assert value < slices.ends[code + 1] or code == pieces - 1


@pytest.mark.parametrize("value", ["-3", "-2.999", "0", "0.75", "2.25", "7.499999", "7.5"])
def test_the_rule_for_one_decimal_written_as_text_is_the_same(value: str) -> None:
    slices = Slices(Numbers(-3, "7.5", Type.DECIMAL), 14)
    code = int(slices.codes(pa.array([float(value)]), 1)[0])
    assert slices.generalize(value, 1) == (slices.labels(1) or ())[code]


def test_the_high_bound_belongs_to_the_last_piece() -> None:
    assert Slices(Numbers(0, 1, Type.DECIMAL), 4).codes(pa.array([1.0, 0.75, 0.74]), 1).tolist() == [3, 3, 2]


@given(st.integers(1, 40), st.integers(0, 39))
def test_days_are_dealt_out_like_whole_numbers(pieces: int, day: int) -> None:
    slices = Slices(Dates(DAY, DAY + timedelta(39)), pieces)
    value = DAY + timedelta(day)
    numbers = Slices(Numbers(0, 39), pieces)
    assert slices.codes(pa.array([value]), 1).tolist() == numbers.codes(pa.array([day]), 1).tolist()
    assert slices.generalize(str(value), 1) in (slices.labels(1) or ())


def test_leaves_add_up_to_the_whole_range() -> None:
    slices = Slices(Numbers(0, 9), 4)
    for level in (1, 2):
        found = slices.leaves(level)
        assert found is not None
        assert found.sum() == 10


def test_the_last_day_of_the_calendar_has_a_label() -> None:
    assert (Slices(Dates("9999-12-01", "9999-12-31"), 2).labels(1) or ())[1] == "[9999-12-16, 9999-12-31]"


@pytest.mark.parametrize(
    ("domain", "pieces", "why"),
    [
        (Numbers(0, None), 2, "declare both"),
        (Numbers(0, 9), 0, "1 to"),
        (Numbers(0, 9), 11, "cannot be cut"),
        (Numbers(1, 1, Type.DECIMAL), 1, "narrower"),
        (Numbers(10**15, 10**15 + 1, Type.DECIMAL), 100, "narrower"),
    ],
)
def test_what_cannot_be_cut_is_refused(domain: Numbers, pieces: int, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        Slices(domain, pieces)
