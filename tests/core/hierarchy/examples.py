"""One hierarchy of every kind, with texts that are inside, outside and at the edges of its domain."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from hypothesis import strategies as st

from incrowd.core.domain import Categories, Dates, Numbers, Text, Type
from incrowd.core.hierarchy.calendar import Calendar, Period
from incrowd.core.hierarchy.flat import Flat, flat
from incrowd.core.hierarchy.hierarchy import Hierarchy
from incrowd.core.hierarchy.intervals import Cuts, Intervals
from incrowd.core.hierarchy.text import Classification, Prefix, Redaction
from incrowd.core.hierarchy.tree import Branch, TreeHierarchy, ordered, tree


@dataclass(frozen=True)
class Case:
    type: Type
    hierarchy: Hierarchy
    texts: st.SearchStrategy[str]


_PERIODS = (Period.MONTH, Period.QUARTER, Period.YEAR, Period.DECADE)
_ZIPS = ("02139", "02138", "021", "0", "94305", "1*", "1**")
_PLACES: Branch = {"Europe": {"France": ["Paris", "Lyon"], "Italy": ["Rome"]}, "Asia": ["Kyoto", "other"]}

integers = st.integers(-30, 130).map(str) | st.integers(-(10**17), 10**17).map(str)
decimals = st.integers(-300, 1300).map(lambda tenths: str(tenths / 10)) | st.floats(-1e6, 1e6).map(repr)
days = st.dates(date(1, 1, 1), date(9999, 12, 31)).map(str) | st.dates(date(2019, 1, 1), date(2022, 12, 31)).map(str)
words = st.text("0129*aß€", max_size=7) | st.sampled_from(_ZIPS)
codes = st.from_regex(r"[A-Z][0-9]{2}(\.[0-9])?", fullmatch=True) | words
places = st.sampled_from(("Paris", "Lyon", "Rome", "Kyoto", "other", "Oslo", "paris", ""))

CASES: dict[str, Case] = {
    "flat text": Case(Type.TEXT, flat(Type.TEXT), words),
    "flat categories": Case(Type.TEXT, Flat(Categories(_ZIPS)), words),
    "flat integers": Case(Type.INTEGER, flat(Type.INTEGER), integers),
    "flat bounded integers": Case(Type.INTEGER, Flat(Numbers(0, 99)), integers),
    "flat decimals": Case(Type.DECIMAL, flat(Type.DECIMAL), decimals),
    "flat dates": Case(Type.DATE, flat(Type.DATE), days),
    "flat booleans": Case(Type.BOOLEAN, flat(Type.BOOLEAN), st.sampled_from(("true", "false"))),
    "intervals of integers": Case(Type.INTEGER, Intervals(Numbers(), (7, 21)), integers),
    "intervals with an origin": Case(Type.INTEGER, Intervals(Numbers(0, 99), (10, 40), origin=5), integers),
    "intervals of bounded integers": Case(Type.INTEGER, Intervals(Numbers(10, 60), (5, 10), open_ends=True), integers),
    "intervals of a wide range": Case(Type.INTEGER, Intervals(Numbers(0, 10**9), (10**7,)), integers),
    "intervals of decimals": Case(Type.DECIMAL, Intervals(Numbers(type=Type.DECIMAL), ("0.1", "0.5")), decimals),
    "intervals of bounded decimals": Case(
        Type.DECIMAL, Intervals(Numbers("0.2", 100, Type.DECIMAL), ("0.1", "3.3"), open_ends=True), decimals
    ),
    "intervals of thirds": Case(Type.DECIMAL, Intervals(Numbers(-20, 20, Type.DECIMAL), ("1/3", 1)), decimals),
    "cuts of integers": Case(Type.INTEGER, Cuts(Numbers(0, 120), ((18, 40, 65), (18, 65))), integers),
    "cuts of decimals": Case(Type.DECIMAL, Cuts(Numbers(type=Type.DECIMAL), (("0.1", "0.3", 7), ("0.3",))), decimals),
    "calendar": Case(Type.DATE, Calendar(Dates(), _PERIODS), days),
    "bounded calendar": Case(Type.DATE, Calendar(Dates("2020-02-10", "2021-03-05"), _PERIODS), days),
    "weeks": Case(Type.DATE, Calendar(Dates(), (Period.WEEK,)), days),
    "bounded weeks": Case(Type.DATE, Calendar(Dates("2020-12-10", "2021-03-05"), (Period.WEEK,)), days),
    "prefixes": Case(Type.TEXT, Prefix(Text(), (4, 3, 1)), words),
    "diseases": Case(Type.TEXT, Classification(Text(), "icd-10"), codes),
    "occupations": Case(Type.TEXT, Classification(Text(), "isco-08"), words),
    "industries": Case(Type.TEXT, Classification(Text(), "nace-2"), words),
    "prefixes of categories": Case(Type.TEXT, Prefix(Categories(_ZIPS), (3, 2)), words),
    "prefixes of integers": Case(Type.INTEGER, Prefix(Text(), (3, 1)), integers),
    "redaction": Case(Type.TEXT, Redaction(Text(), 5), words),
    "redaction of categories": Case(Type.TEXT, Redaction(Categories(_ZIPS), 5), words),
    "tree": Case(Type.TEXT, tree(_PLACES), places),
    "tree with a top": Case(Type.TEXT, TreeHierarchy((("Paris", "France", "*"), ("Kyoto", "Japan", "*"))), places),
    "tree of integers": Case(Type.INTEGER, TreeHierarchy((("1", "low"), ("2", "low"), ("30", "high"))), integers),
    "groups": Case(Type.TEXT, ordered(("Rome", "Paris", "Lyon", "Oslo", "Kyoto"), (2, 4)), places),
}
