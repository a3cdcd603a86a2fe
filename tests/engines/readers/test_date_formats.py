"""Formats of dates: what they read, and which are refused because nobody could tell the day."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.engines.readers.date_formats import DateFormat, date_formats
from incrowd.errors import InvalidParameter


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("%d.%m.%Y", "31.12.2024"),
        ("%m/%d/%Y", "12/31/2024"),
        ("%Y%m%d", "20241231"),
        ("%d%m%Y", "31122024"),
        ("%d%b%Y", "31DEC2024"),
        ("%B %d, %Y", "December 31, 2024"),
        ("%d.%m.%Y %H:%M", "31.12.2024 23:59"),
        ("%m/%d/%Y %I:%M:%S %p", "12/31/2024 11:59:00 PM"),
        ("%Y-%m-%dT%H:%M:%S.%f", "2024-12-31T23:59:00.123"),
    ],
)
def test_a_format_reads_its_day(written: str, text: str) -> None:
    assert DateFormat(written).days(pa.array([text, "31.12.24", None, ""])).to_pylist() == [
        "2024-12-31",
        None,
        None,
        None,
    ]


def test_zeros_in_front_may_be_left_out_where_something_parts_the_digits() -> None:
    assert DateFormat("%d.%m.%Y").days(pa.array(["1.2.2024", "01.02.2024"])).to_pylist() == ["2024-02-01"] * 2
    assert DateFormat("%d%m%Y").days(pa.array(["122024"])).to_pylist() == [None]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("%d.%m.%y", "century"),
        ("%d.%m.", "year nowhere"),
        ("%m.%Y", "day nowhere"),
        ("%d.%d.%m.%Y", "day twice"),
        ("%d.%m.%b.%Y", "month twice"),
        ("%d.%m.%Y %Z", "not read here"),
        ("%x", "century"),
        ("%d.%m.%Y%", "is none"),
        ("", "is none"),
        ("%d.%m.%Y" + " " * 40, "is none"),
        ("%d.%m.2%Y", "not read here"),
        ("dd.mm.yyyy", "year nowhere"),
    ],
)
def test_formats_that_are_partial_or_ambiguous_are_refused(written: str, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        DateFormat(written)


@pytest.mark.parametrize(
    "formats",
    [
        ("%d/%m/%Y", "%m/%d/%Y"),
        ("%d%m%Y", "%Y%m%d"),
        ("%d.%m.%Y", "%d.%m.%Y"),
        ("%Y-%d-%m",),
        ("%Y-%d-%m %H:%M",),
        tuple(f"%d{'.' * n}%m.%Y" for n in range(1, 10)),
    ],
)
def test_formats_that_could_both_fit_are_refused(formats: tuple[str, ...]) -> None:
    with pytest.raises(InvalidParameter):
        date_formats(formats)


def test_formats_that_no_text_can_share_stand_together() -> None:
    together = ("%d.%m.%Y", "%d.%m.%Y %H:%M", "%m/%d/%Y", "%Y.%m.%d", "%d-%b-%Y", "%Y%m%d", "%Y-%m-%d %H:%M")
    assert [each.text for each in date_formats(together)] == list(together)


ANY = st.sampled_from(("%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d %B %Y", "%d-%b-%Y %H:%M", "%Y/%m/%d"))


@given(day=st.dates(date(1000, 1, 1)), written=ANY)
def test_what_the_standard_library_writes_is_read_back(day: date, written: str) -> None:
    assert DateFormat(written).days(pa.array([day.strftime(written)])).to_pylist() == [day.isoformat()]
