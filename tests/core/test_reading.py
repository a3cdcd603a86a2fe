from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Type
from incrowd.core.reading import as_dictionary, canonical, number_text, parse, read
from incrowd.errors import InvalidParameter

_MESSY = st.text("0123456789+-.eE :Txy ", max_size=12)
_LIKELY = (
    st.integers(-(10**20), 10**20).map(str)
    | st.floats(allow_nan=False).map(str)
    | st.dates().map(str)
    | st.datetimes().map(str)
    | st.sampled_from(("true", "No", "T", "0", "1", "1.0", "2020-02-30", "2020-13-01", "0000-01-01", "nan", "inf"))
)


@pytest.mark.parametrize("kind", list(Type))
@settings(deadline=None)
@given(texts=st.lists(st.none() | _MESSY | _LIKELY, max_size=20))
@example(texts=["+5", "5.", "5.000", "5.0001", "007", "1e3", "  12 ", "", " ", "9" * 18, "9" * 19, "0" * 30 + "7"])
@example(texts=["01234", None, "7", "9" * 18])
@example(texts=["01234", "9" * 19])
@example(texts=["0x1", "7"])
def test_text_is_read_as_one_value_at_a_time_would_be(kind: Type, texts: list[str | None]) -> None:
    found = read(pa.array(texts, pa.string()), kind)
    wanted = [None if text is None else parse(text, kind) for text in texts]
    blank = [text is None or (kind is not Type.TEXT and not text.strip()) for text in texts]
    assert found.values.type == kind.storage
    assert found.values.to_pylist() == wanted
    assert found.unreadable.tolist() == [w is None and not b for w, b in zip(wanted, blank, strict=True)]


NAN = float("nan")
INF = float("inf")


@pytest.mark.parametrize(
    ("array", "kind", "values", "unreadable"),
    [
        (pa.array([1.0, 2.5, NAN, INF, -0.0, None]), Type.INTEGER, [1, None, None, None, 0, None], [1, 3]),
        (pa.array([1e18, 1e19, -1e300]), Type.INTEGER, [10**18, None, None], [1, 2]),
        (pa.array([1.0, NAN], pa.float32()), Type.INTEGER, [1, None], []),
        (pa.array([7], pa.int8()), Type.INTEGER, [7], []),
        (pa.array([2**63, 2**63 - 1], pa.uint64()), Type.INTEGER, [None, 2**63 - 1], [0]),
        (pa.array([Decimal("5.00"), Decimal("5.01"), None]), Type.INTEGER, [5, None, None], [1]),
        (pa.array([True, False, None]), Type.INTEGER, [1, 0, None], []),
        (pa.array([date(2020, 1, 1), None]), Type.INTEGER, [None, None], [0]),
        (pa.array([0.1, NAN, INF, -0.0]), Type.DECIMAL, [0.1, None, None, 0.0], [2]),
        (pa.array([0.1], pa.float32()), Type.DECIMAL, [0.1], []),
        (pa.array(np.array([0.5], np.float16)), Type.DECIMAL, [0.5], []),
        (pa.array([Decimal("733629687.0749130000")]), Type.DECIMAL, [733629687.074913], []),
        (pa.array([3, None]), Type.DECIMAL, [3.0, None], []),
        (pa.array([date(2020, 1, 1)]), Type.DECIMAL, [None], [0]),
        (pa.array([2139.0, 0.5, None]), Type.TEXT, ["2139", "0.5", None], []),
        (pa.array([Decimal("1.50"), Decimal("100.00")]), Type.TEXT, ["1.5", "100"], []),
        (pa.array([5, None]), Type.TEXT, ["5", None], []),
        (pa.array([True, None]), Type.TEXT, ["true", None], []),
        (pa.array([date(2020, 1, 31)]), Type.TEXT, ["2020-01-31"], []),
        (pa.array([b"ab", None]), Type.TEXT, ["ab", None], []),
        (pa.array([b"\xff"]), Type.TEXT, ["\ufffd"], []),
        (pa.array([b"12", b"\xff"]), Type.INTEGER, [12, None], [1]),
        (pa.array(["a"], pa.large_string()), Type.TEXT, ["a"], []),
        (pa.array(["a"], pa.string_view()), Type.TEXT, ["a"], []),
        (pa.array([datetime(2020, 1, 31, 23, 59)]), Type.DATE, [date(2020, 1, 31)], []),  # noqa: DTZ001
        (pa.array([datetime(1969, 12, 31, 23)]), Type.DATE, [date(1969, 12, 31)], []),  # noqa: DTZ001
        (pa.array([date(2020, 1, 31)], pa.date64()), Type.DATE, [date(2020, 1, 31)], []),
        (pa.array([20200131]), Type.DATE, [None], [0]),
        (pa.array([True, False, None]), Type.BOOLEAN, ["true", "false", None], []),
        (pa.array([1, 0, 2]), Type.BOOLEAN, ["true", "false", None], [2]),
        (pa.array([1.0, NAN]), Type.BOOLEAN, ["true", None], []),
        (pa.nulls(2), Type.INTEGER, [None, None], []),
        (pa.nulls(2), Type.TEXT, [None, None], []),
        (pa.nulls(2), Type.BOOLEAN, [None, None], []),
        (pa.array([], pa.string()), Type.DATE, [], []),
    ],
)
def test_every_way_to_deliver_a_column_is_read(
    array: pa.Array, kind: Type, values: list[object], unreadable: list[int]
) -> None:
    found = read(array, kind)
    assert found.values.type == kind.storage
    assert found.values.to_pylist() == values
    assert [place for place, flag in enumerate(found.unreadable) if flag] == unreadable


def test_a_moment_is_on_the_day_it_was_where_it_was_noted() -> None:
    late = datetime(2020, 1, 31, 23, 30, tzinfo=ZoneInfo("America/New_York"))
    array = pa.array([late], pa.timestamp("us", tz="America/New_York"))
    assert read(array, Type.DATE).values.to_pylist() == [date(2020, 1, 31)]


@settings(deadline=None)
@given(st.lists(st.decimals(-(10**15), 10**15, places=6)))
def test_decimals_become_the_nearest_double(numbers: list[Decimal]) -> None:
    array = pa.array(numbers, pa.decimal128(38, 6))
    assert read(array, Type.DECIMAL).values.to_pylist() == [float(number) + 0.0 for number in numbers]


def test_columns_of_lists_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="several values in one row"):
        read(pa.array([[1, 2]]), Type.INTEGER)


@settings(deadline=None)
@given(st.lists(st.none() | st.sampled_from("abc")), st.sampled_from((pa.int8(), pa.int32(), pa.int64())))
def test_a_dictionary_gives_back_its_rows(values: list[str | None], index: pa.DataType) -> None:
    for array in (pa.array(values, pa.string()), pa.array(values, pa.dictionary(index, pa.string()))):
        found, indices = as_dictionary(array)
        assert indices is not None
        assert [[*found.to_pylist(), None][place] for place in indices] == values


def test_a_dictionary_may_itself_hold_a_null() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    values, indices = as_dictionary(array)
    assert indices is not None
    assert [[*values.to_pylist(), None][place] for place in indices] == ["a", None, None]


def test_floats_are_not_made_a_dictionary() -> None:
    values, indices = as_dictionary(pa.array([0.5, None]))
    assert indices is None
    assert values.to_pylist() == [0.5, None]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_written_in_one_way_that_reads_back(number: float) -> None:
    text = number_text(number)
    assert float(text) == number
    assert "e" not in text
    assert not text.startswith("-0") or "." in text
    assert canonical(pa.array([number])).to_pylist() == [text]
