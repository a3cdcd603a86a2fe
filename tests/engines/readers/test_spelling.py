"""Formats of dates: what they read, and which are refused because nobody could tell the day."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.domain import Type
from incrowd.core.reading import read
from incrowd.engines.readers.spelling import DateFormat, Spelling, date_formats, spelled_as_declared
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
        ("%d.%m.%Y %Z", "unknown directive"),
        ("%x", "century"),
        ("%d.%m.%Y%", "is invalid"),
        ("", "is invalid"),
        ("%d.%m.%Y" + " " * 40, "is invalid"),
        ("%d.%m.2%Y", "unknown directive"),
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
    assert [item.text for item in date_formats(together)] == list(together)


ANY = st.sampled_from(("%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%d %B %Y", "%d-%b-%Y %H:%M", "%Y/%m/%d"))


@given(day=st.dates(date(1000, 1, 1)), written=ANY)
def test_what_the_standard_library_writes_is_read_back(day: date, written: str) -> None:
    assert DateFormat(written).days(pa.array([day.strftime(written)])).to_pylist() == [day.isoformat()]


SPELLINGS = [
    Spelling(decimal, mark) for decimal in (".", ",") for mark in (None, ".", ",", "'", " ") if mark != decimal
]


def values(spelling: Spelling, kind: Type, *texts: str | None) -> list[object]:
    result = read(spelled_as_declared(pa.array(texts, pa.string()), kind, spelling), kind)
    return [
        "unreadable" if bad else value for value, bad in zip(result.values.to_pylist(), result.unreadable, strict=True)
    ]


@pytest.mark.parametrize(
    ("spelling", "text", "number"),
    [
        (Spelling(",", "."), "1.234,5", 1234.5),
        (Spelling(",", " "), "1 234,5", 1234.5),
        (Spelling(",", " "), "1\u00a0234,5", 1234.5),
        (Spelling(",", " "), "1\u202f234\u202f567", 1234567.0),
        (Spelling(".", "'"), "1'234.5", 1234.5),
        (Spelling(".", "'"), "1\u2019234.5", 1234.5),
        (Spelling(None, ","), "1,234.5", 1234.5),
        (Spelling(","), "-0,5", -0.5),
        (Spelling(","), " ,5 ", 0.5),
        (Spelling(","), "1,5e3", 1500.0),
        (Spelling(",", "."), "1234,5", 1234.5),
        (Spelling(), "1234.5", 1234.5),
    ],
)
def test_numbers_are_read_as_declared(spelling: Spelling, text: str, number: float) -> None:
    assert values(spelling, Type.DECIMAL, text) == [number]


@pytest.mark.parametrize(
    ("spelling", "text"),
    [
        (Spelling(","), "1.5"),
        (Spelling(","), "1.234"),
        (Spelling(","), "1.234,5"),
        (Spelling(",", "."), "1.23"),
        (Spelling(",", "."), "1.2345"),
        (Spelling(",", "."), "0.234"),
        (Spelling(",", "."), "12.34,5"),
        (Spelling(",", "."), "1.234.56"),
        (Spelling(",", " "), "1.5"),
        (Spelling(), "1,234"),
        (Spelling(), "1,5"),
        (Spelling(None, ","), "1,5"),
        (Spelling(None, ","), "1.5,000"),
    ],
)
def test_a_number_of_another_spelling_is_not_read(spelling: Spelling, text: str) -> None:
    assert values(spelling, Type.DECIMAL, text) == ["unreadable"]
    assert values(spelling, Type.INTEGER, text) == ["unreadable"]


def test_a_round_thousand_is_not_one_unless_a_decimal_mark_is_declared() -> None:
    assert values(Spelling(), Type.INTEGER, "1.000", " 12.000", "17.0", "1000") == [
        "unreadable",
        "unreadable",
        17,
        1000,
    ]
    assert values(Spelling("."), Type.INTEGER, "1.000") == [1]
    assert values(Spelling(",", "."), Type.INTEGER, "1.000") == [1000]


def test_text_and_missing_cells_stay_as_they_are() -> None:
    german = Spelling(",", ".", ("%d.%m.%Y",))
    texts = pa.array(["01.234", "1,5", None, "", "31.12.2024"])
    assert spelled_as_declared(texts, Type.TEXT, german) is texts
    assert values(german, Type.DECIMAL, None, "", " ") == [None, None, None]


def test_days_are_read_by_their_format_or_as_everywhere() -> None:
    result = values(
        Spelling(dates=("%d.%m.%Y",)), Type.DATE, "31.12.2024", "2024-12-31", "12/31/2024", "31.2.2024", None
    )
    assert [str(item) for item in result] == ["2024-12-31", "2024-12-31", "unreadable", "unreadable", "None"]


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"decimal": ";"}, "decimal is the sign"),
        ({"thousands": "_"}, "groups of three digits"),
        ({"thousands": "."}, 'write decimal: "," too'),
        ({"decimal": ",", "thousands": ","}, 'write decimal: "." too'),
        ({"dates": ("%d.%m.%y",)}, "century"),
    ],
)
def test_what_cannot_be_meant_is_refused(declared: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        Spelling(**declared)  # type: ignore[arg-type]  # the tests name options freely


def written(number: Decimal, spelling: Spelling, *, grouped: bool) -> str:
    text = f"{number:,f}" if grouped else f"{number:f}"
    marks = {",": spelling.thousands or "", ".": spelling.decimal or "."}
    return "".join(marks.get(character, character) for character in text)


@given(
    number=st.decimals(-(10**12), 10**12, places=3),
    spelling=st.sampled_from(SPELLINGS),
    grouped=st.booleans(),
)
def test_a_number_that_is_written_in_a_spelling_is_read_back(
    number: Decimal, spelling: Spelling, grouped: bool
) -> None:
    text = written(number, spelling, grouped=grouped and spelling.thousands is not None)
    assert values(spelling, Type.DECIMAL, text) == [float(number)]
    whole = written(Decimal(int(number)), spelling, grouped=spelling.thousands is not None)
    assert values(spelling, Type.INTEGER, whole) == [int(number)]


@given(text=st.text("0123456789.,' +-eE", max_size=9), spelling=st.sampled_from(SPELLINGS))
def test_what_is_read_has_the_digits_that_were_written(text: str, spelling: Spelling) -> None:
    """Read by hand: drop marks between groups of three, put the point; anything else must be unreadable."""
    (result,) = values(spelling, Type.DECIMAL, text)
    if result in ("unreadable", None):
        return
    body = text.strip()
    assert isinstance(result, float)
    plain = body.replace(spelling.thousands, "") if spelling.thousands else body
    assert float(plain.replace(spelling.decimal or ".", ".")) == result
    if spelling.thousands and spelling.thousands in body:
        groups = (
            body.lstrip("+-").partition(spelling.decimal or ".")[0].lower().partition("e")[0].split(spelling.thousands)
        )
        assert all(len(group) == 3 for group in groups[1:])
        assert 1 <= len(groups[0]) <= 3
