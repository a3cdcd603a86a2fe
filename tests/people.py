"""A small schema with a column of every kind, and tables to go with it."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

from incrowd.core.domain import Categories, Dates, Numbers, Text, Type
from incrowd.core.hierarchy.calendar import Calendar, Period
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.intervals import Intervals
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.hierarchy.tree import tree
from incrowd.core.schema import Column, Missing, Outside, Role, Schema
from tests.tables import text_table

PEOPLE = Schema(
    (
        Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M"))), missing=Missing.DROP),
        Column("age", Role.QUASI, Type.INTEGER, Intervals(Numbers(0, 39), (10, 20))),
        Column("zip", Role.QUASI, hierarchy=Prefix(Text(), (2, 1))),
        Column("born", Role.QUASI, Type.DATE, Calendar(Dates(), (Period.MONTH, Period.YEAR))),
        Column("job", Role.PLAIN, hierarchy=tree({"health": ["nurse", "doctor"], "other": ["clerk"]})),
        Column("pay", Role.SENSITIVE, Type.DECIMAL, Flat(Numbers(type=Type.DECIMAL)), outside=Outside.DROP),
    )
)

_CELLS: dict[str, st.SearchStrategy[str | None]] = {
    "sex": st.sampled_from(("F", "M", "X", None)),
    "age": st.sampled_from(("5", "15", "25", "99", "", "x", None)),
    "zip": st.sampled_from(("021", "022", "0", "945", "", None)),
    "born": st.sampled_from(("2020-01-01", "2020-01-31", "2020-02-01", "2021-01-01", "soon", None)),
    "job": st.sampled_from(("nurse", "doctor", "clerk", "pilot", None)),
    "pay": st.sampled_from(("1.5", "10", "9", "1.50", None, "?")),
}


def tables(max_size: int = 30) -> st.SearchStrategy[pa.Table]:
    """Tables of text with what may come in a file: values inside and outside, missing and unreadable."""
    rows = st.lists(st.fixed_dictionaries(_CELLS), max_size=max_size)
    return rows.map(lambda drawn: text_table({name: [row[name] for row in drawn] for name in _CELLS}))


def levels() -> st.SearchStrategy[dict[str, int]]:
    """Levels of every column."""
    return st.fixed_dictionaries({c.name: st.integers(0, c.hierarchy.height) for c in PEOPLE.columns})
