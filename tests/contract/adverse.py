"""Rows with whatever readers and engines could differ on, and what they hold, counted one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Self

import numpy as np
import pyarrow as pa

from incrowd.core.domain import Dates, Numbers, Type
from incrowd.core.hierarchy.calendar import Calendar, Period
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role, Schema
from tests.people import PEOPLE

ROWS = 240
PERSON = Column("person", Role.IDENTIFIER)
SCHEMA = Schema((*PEOPLE.columns, Column("note"), PERSON))
"""A column of every kind, text as it comes, and who a row belongs to."""

_READABLE: dict[str, Sequence[str | None]] = {
    "sex": ("F", "M", "X", None),
    "age": ("5", "15", "25", "99", "007", None),
    "zip": ("021", "022", "0", "945", None),
    "born": ("2020-01-01", "2020-01-31", "2020-02-29", "1890-05-17", "9999-12-31", None),
    "job": ("nurse", "doctor", "clerk", "pilot", None),
    "pay": ("1.5", "10", "9", "1.50", "-0", "1e3", None),
    "note": (
        None,
        *("heart", "Heart", " heart", "heart ", "NULL", "NA", "nan", "true", "0012", "1e5", "2020-01-01", "-", "*"),
        *(
            "a,b",
            "a;b",
            'say "no"',
            "it's",
            "line\nbreak",
            "tab\tin",
            "back\\slash",
            "%_",
            "é",
            "e\u0301",
            "日本語",
            "🙂",
        ),
        *("=1+1", "$1", "{}", "a" * 1200, "other"),
    ),
}
_UNREADABLE: dict[str, Sequence[str]] = {"age": ("x", "1.5", "--"), "born": ("soon", "2020-02-30"), "pay": ("?", "1,5")}


def readable() -> pa.Table:
    """Return text that can be read as declared: inside and outside of domains, missing, odd; rows and people repeat."""
    return _drawn(_READABLE)


def unreadable() -> pa.Table:
    """Return the same kind of rows, some of whose values cannot be read as declared."""
    return _drawn({name: (*values, *_UNREADABLE.get(name, ())) for name, values in _READABLE.items()})


def _drawn(values: dict[str, Sequence[str | None]]) -> pa.Table:
    """Return rows of which every fourth is a copy of an earlier one, of people who have up to a dozen."""
    draw = np.random.default_rng(3)
    columns = {name: [some[n] for n in draw.integers(0, len(some), ROWS)] for name, some in values.items()}
    people = [None if n == 0 else f"p{n}" for n in draw.integers(0, 60, ROWS) ** 2 // 60]
    copied = [place // 2 if place % 4 == 3 else place for place in range(ROWS)]
    table = pa.table({name: pa.array(drawn, pa.string()) for name, drawn in columns.items()})
    return table.take(pa.array(copied)).append_column("person", pa.array(people, pa.string()))


TYPES = Schema(
    (
        Column("day", type=Type.DATE, hierarchy=Calendar(Dates(), (Period.MONTH,))),
        Column("moment", type=Type.DATE, hierarchy=Calendar(Dates(), (Period.MONTH,))),
        Column("whole", type=Type.INTEGER, hierarchy=Flat(Numbers())),
        Column("small", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 5))),
        Column("real", type=Type.DECIMAL, hierarchy=Flat(Numbers(type=Type.DECIMAL))),
        Column("exact"),
        Column("flag"),
        Column("a.`dotted` name"),
    )
)
"""What a file or a server with types of its own may store."""


def typed() -> pa.Table:
    """Return rows of stored types, missing values and extremes among them."""
    days = [date(1890, 5, 17), date(2020, 2, 29), None, date(2020, 3, 1)]
    columns: dict[str, pa.Array] = {
        "day": pa.array(days * 40, pa.date32()),
        "moment": pa.array([day and datetime(day.year, day.month, day.day, 23, 59) for day in days] * 40),  # noqa: DTZ001
        "whole": pa.array([1, None, -5, 2**63 - 1] * 40, pa.int64()),
        "small": pa.array([1, 2, None, 7] * 40, pa.int16()),
        "real": pa.array([0.5, float("nan"), -0.0, 1e300] * 40),
        "exact": pa.array([Decimal("1.50"), None, Decimal("2.00"), Decimal("0.25")] * 40, pa.decimal128(9, 2)),
        "flag": pa.array([True, False, None, True] * 40),
        "a.`dotted` name": pa.array(["x", "y", None, "Z"] * 40),
    }
    return pa.table(columns)


def values(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows of a table."""
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


@dataclass
class Met:
    """Every row that was met, with how often; made where the rows are."""

    columns: tuple[str, ...]
    rows: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows.update(zip(*(batch.column(name).to_pylist() for name in self.columns), strict=True))

    def merge(self, other: Self) -> None:
        self.rows.update(other.rows)
