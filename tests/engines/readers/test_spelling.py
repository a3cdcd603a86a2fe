"""Spellings: a mark never changes a number silently."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.domain import Type
from incrowd.core.reading import read
from incrowd.engines.readers.spelling import Spelling, spelled_as_declared
from incrowd.errors import InvalidParameter

SPELLINGS = [
    Spelling(decimal, mark) for decimal in (".", ",") for mark in (None, ".", ",", "'", " ") if mark != decimal
]


def values(spelling: Spelling, kind: Type, *texts: str | None) -> list[object]:
    found = read(spelled_as_declared(pa.array(texts, pa.string()), kind, spelling), kind)
    return [
        "unreadable" if bad else value for value, bad in zip(found.values.to_pylist(), found.unreadable, strict=True)
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
    given = pa.array(["01.234", "1,5", None, "", "31.12.2024"])
    assert spelled_as_declared(given, Type.TEXT, german) is given
    assert values(german, Type.DECIMAL, None, "", " ") == [None, None, None]


def test_days_are_read_by_their_format_or_as_everywhere() -> None:
    found = values(
        Spelling(dates=("%d.%m.%Y",)), Type.DATE, "31.12.2024", "2024-12-31", "12/31/2024", "31.2.2024", None
    )
    assert [str(each) for each in found] == ["2024-12-31", "2024-12-31", "unreadable", "unreadable", "None"]


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"decimal": ";"}, "decimal is the mark"),
        ({"thousands": "_"}, "groups of three digits"),
        ({"thousands": "."}, 'write decimal: "," too'),
        ({"decimal": ",", "thousands": ","}, 'write decimal: "." too'),
        ({"dates": ("%d.%m.%y",)}, "century"),
    ],
)
def test_what_cannot_be_meant_is_refused(told: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        Spelling(**told)  # type: ignore[arg-type]  # the tests name options freely


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
    (found,) = values(spelling, Type.DECIMAL, text)
    if found in ("unreadable", None):
        return
    body = text.strip()
    assert isinstance(found, float)
    plain = body.replace(spelling.thousands, "") if spelling.thousands else body
    assert float(plain.replace(spelling.decimal or ".", ".")) == found
    if spelling.thousands and spelling.thousands in body:
        groups = (
            body.lstrip("+-").partition(spelling.decimal or ".")[0].lower().partition("e")[0].split(spelling.thousands)
        )
        assert all(len(group) == 3 for group in groups[1:])
        assert 1 <= len(groups[0]) <= 3
