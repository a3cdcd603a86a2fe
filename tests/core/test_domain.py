from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import LARGEST, Categories, Dates, Numbers, Provenance, Text, Type, listed
from incrowd.errors import InvalidParameter


def test_bounds_are_exact_however_they_are_written() -> None:
    assert Numbers("0.1", 1, Type.DECIMAL) == Numbers(Fraction(1, 10), "1", Type.DECIMAL)
    assert Numbers("0.1", None, Type.DECIMAL).bounds == (Fraction(1, 10), None)
    assert Dates("2020-01-01", "2020-12-31") == Dates(date(2020, 1, 1), datetime(2020, 12, 31, 5))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (60, 10, "from low to high, not from 60 to 10"),
        ("0.5", 3, "whole bounds"),
        (0, 2**62 + 1, "leave the bound open"),
    ],
)
def test_bounds_that_cannot_be_are_refused(low: int | str, high: int, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        Numbers(low, high)


def test_dates_that_cannot_be_bounds_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="such as 2020-12-31, not '2020-02-30'"):
        Dates("2020-02-30")
    with pytest.raises(InvalidParameter, match="swap them"):
        Dates("2021-01-01", "2020-01-01")


def test_only_numbers_are_numbers() -> None:
    with pytest.raises(InvalidParameter, match="integer or decimal, not text"):
        Numbers(1, 2, Type.TEXT)


def test_repeated_categories_are_named() -> None:
    with pytest.raises(InvalidParameter, match="more than once: 'b'"):
        Categories(("a", "b", "c", "b"))
    with pytest.raises(InvalidParameter, match="at least one value"):
        Categories(())


@settings(deadline=None)
@given(
    st.integers(-5, 5),
    st.integers(0, 5),
    st.lists(st.none() | st.integers(-9, 9) | st.sampled_from((-LARGEST - 1, -LARGEST, LARGEST, LARGEST + 1))),
)
def test_a_number_is_inside_between_the_bounds(low: int, width: int, values: list[int | None]) -> None:
    domain, array = Numbers(low, low + width), pa.array(values, pa.int64())
    assert domain.contains(array).tolist() == [v is not None and low <= v <= low + width for v in values]
    clamped = [None if v is None else min(max(v, low), low + width) for v in values]
    assert domain.clamp(array).to_pylist() == clamped
    anything = Numbers().contains(array).tolist()
    assert anything == [v is not None and abs(v) <= LARGEST for v in values]
    assert pc.unique(domain.members()).to_pylist() == list(range(low, low + width + 1))


def test_half_a_bound_is_a_bound() -> None:
    assert Numbers(high=5).contains(pa.array([5, 6])).tolist() == [True, False]
    assert Numbers(high=5).clamp(pa.array([-9, 6])).to_pylist() == [-9, 5]
    assert Dates(low="2020-01-02").contains(pa.array([date(2020, 1, 1), date(2020, 1, 2)])).tolist() == [False, True]
    assert Numbers(high=5).members() is None


def test_a_domain_is_closed_where_a_value_can_be_outside() -> None:
    assert not Text().closed
    assert not Numbers().closed
    assert not Dates().closed
    assert Numbers(low=1).closed
    assert Dates(high="2020-01-01").closed
    assert Categories(("a",)).closed


def test_days_beyond_the_calendar_are_outside() -> None:
    beyond = pa.array([-800_000, 0, 3_000_000], pa.int32()).cast(pa.date32())
    assert Dates().contains(beyond).tolist() == [False, True, False]


def test_a_draft_is_sound_only_with_a_public_source() -> None:
    assert Provenance(derived=False).sound
    assert not Provenance(derived=True).sound
    assert not Provenance(derived=True, public="").sound
    assert Provenance(derived=True, public="census 2020").sound


def test_spans_need_both_bounds() -> None:
    assert Numbers(low=0).spans([Fraction(0)]) is None
    length = Numbers(0, 1, Type.DECIMAL).spans([Fraction(0), Fraction(1, 4)])
    assert length is not None
    assert length.tolist() == [0.25, 0.75]


def test_long_lists_are_cut_short() -> None:
    assert listed([str(number) for number in range(30)], 3) == "'0', '1', '2' and 27 more"
