"""Labels are true: no row gets a label that contradicts its value, on any level, inside the bounds or beyond them."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Dates, Numbers, Type
from incrowd.core.hierarchy.calendar import Calendar, Period
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.hierarchy import Hierarchy
from incrowd.core.hierarchy.intervals import Cuts, Intervals
from incrowd.core.hierarchy.slices import Slices
from incrowd.core.recoding import LEFT_OUT, Classes, Recoding
from incrowd.core.schema import Column, Outside
from incrowd.engines.local.encoding import Codebook

DAYS = st.dates(date(1890, 1, 1), date(2110, 12, 31))
PERIODS = st.sampled_from([
    (Period.WEEK,), (Period.MONTH, Period.QUARTER, Period.YEAR, Period.DECADE), (Period.YEAR,), (Period.QUARTER,),
])  # fmt: skip
OUTSIDE = st.sampled_from([None, Outside.ENDS, Outside.OTHER, Outside.DROP])


def period_of(label: str) -> tuple[date, date]:
    """Return the first and the last day of a period as people write it."""
    if found := re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", label):
        day = date(int(found[1]), int(found[2]), int(found[3]))
        return day, day
    if found := re.fullmatch(r"(\d{4})-W(\d\d)", label):
        monday = date.fromisocalendar(int(found[1]), int(found[2]), 1)
        return monday, monday + timedelta(6)
    if found := re.fullmatch(r"(\d{3})0s", label):
        return date(int(found[1]) * 10, 1, 1), date(int(found[1]) * 10 + 9, 12, 31)
    found = re.fullmatch(r"(\d{4})(?:-(\d\d)|-Q(\d))?", label)
    assert found is not None, label
    year = int(found[1])
    first = int(found[2] or (int(found[3]) * 3 - 2 if found[3] else 1))
    last = int(found[2] or (int(found[3]) * 3 if found[3] else 12))
    after = date(year + last // 12, last % 12 + 1, 1)
    return date(year, first, 1), after - timedelta(1)


def true_of_day(label: str, day: date) -> bool:
    if label.endswith(" or earlier"):
        return day <= period_of(label.removesuffix(" or earlier"))[1]
    if label.endswith(" or later"):
        return day >= period_of(label.removesuffix(" or later"))[0]
    if found := re.fullmatch(r"\[(.+), (.+)\]", label):
        return period_of(found[1])[0] <= day <= period_of(found[2])[1]
    first, last = period_of(label)
    return first <= day <= last


def true_of_number(label: str, number: float) -> bool:
    if found := re.fullmatch(r"(<|<=|>=) (\S+)", label):
        end = float(found[2])
        return {"<": number < end, "<=": number <= end, ">=": number >= end}[found[1]]
    if found := re.fullmatch(r"\[(\S+), (\S+)([)\]])", label):
        below = number < float(found[2]) or (found[3] == "]" and number == float(found[2]))
        return float(found[1]) <= number and below
    return float(label) == number


def labels_of(recoding: Recoding, values: pa.Array) -> list[str | None]:
    """Return the released label of each value, by the recoding that engines use; None if its row is left out."""
    book = Codebook(recoding) if recoding.classes is None else None
    codes = recoding.codes(values, book)
    found: tuple[Classes | None, Any] = (recoding.classes, None) if book is None else book.classes()
    classes, lent = found
    assert classes is not None
    numbers = recoding.level == 0 and isinstance(recoding.column.domain, Numbers)  # as a column of text shows them
    labels = (classes.open_labels() if numbers else classes.labels()).to_pylist()
    kept = np.arange(len(labels)) if lent is None else lent
    return [None if code == LEFT_OUT else labels[kept[code]] for code in codes]


def check(column: Column, values: list[Any], true_of: Any) -> None:
    for level in range(column.hierarchy.height + 1):
        labels = labels_of(Recoding(column, level), pa.array(values, column.type.storage))
        inside = column.domain.contains(pa.array(values, column.type.storage))
        for value, label, within in zip(values, labels, inside, strict=True):
            if label is None:
                assert column.rule_outside is Outside.DROP
                assert not within
            elif label not in ("*", "any"):
                assert true_of(label, value) if within or label != "other" else column.rule_outside is Outside.OTHER


def hierarchy_of_days(domain: Dates, data: st.DataObject) -> Hierarchy:
    low, high = domain.bounds
    kinds = ["calendar", "flat"] + ["slices"] * (low is not None and high is not None and (high - low).days > 3)
    match data.draw(st.sampled_from(kinds)):
        case "calendar":
            return Calendar(domain, data.draw(PERIODS))
        case "flat":
            return Flat(domain)
    return Slices(domain, data.draw(st.integers(1, 3)))


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_no_label_of_a_day_contradicts_it(data: st.DataObject) -> None:
    low, high = sorted([data.draw(DAYS), data.draw(DAYS)])
    domain = Dates(*data.draw(st.sampled_from([(low, high), (low, None), (None, high), (None, None)])))
    hierarchy = hierarchy_of_days(domain, data)
    column = Column("born", type=Type.DATE, hierarchy=hierarchy, outside=data.draw(OUTSIDE))
    around = [day + timedelta(step) for day in (low, high) for step in (-400, -8, -1, 0, 1, 8, 400)]
    check(column, [*around, *data.draw(st.lists(DAYS, max_size=5))], true_of_day)


def hierarchy_of_numbers(domain: Numbers, data: st.DataObject) -> Hierarchy:
    low, high = domain.bounds
    closed = low is not None and high is not None and high - low > 4
    match data.draw(st.sampled_from(["intervals", "flat", *(["slices", "cuts"] if closed else [])])):
        case "intervals":
            return Intervals(domain, (3, 6, 30), data.draw(st.none() | st.integers(-9, 9)))
        case "slices":
            return Slices(domain, data.draw(st.integers(1, 3)))
        case "cuts":
            assert low is not None
            return Cuts(domain, ((low + 1, low + 2), (low + 2,)))
    return Flat(domain)


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_no_label_of_a_number_contradicts_it(data: st.DataObject) -> None:
    low, high = sorted([data.draw(st.integers(-50, 50)), data.draw(st.integers(-50, 50))])
    kind = data.draw(st.sampled_from([Type.INTEGER, Type.DECIMAL]))
    ends = data.draw(st.sampled_from([(low, high), (low, None), (None, high), (None, None)]))
    domain = Numbers(*ends, kind)
    column = Column("n", type=kind, hierarchy=hierarchy_of_numbers(domain, data), outside=data.draw(OUTSIDE))
    step = 1 if kind is Type.INTEGER else 0.25
    around = [end + times * step for end in (low, high) for times in (-99, -2, -1, 0, 1, 2, 99)]
    check(column, around, true_of_number)


@pytest.mark.parametrize("bounds", [("2024-01-01", "2025-12-31"), ("2024-01-01", None), (None, "2025-12-31")])
def test_the_domain_has_as_many_classes_as_before_and_depends_on_no_row(bounds: tuple[Any, Any]) -> None:
    periods = (Period.MONTH, Period.YEAR)
    closed, plain = (
        Column("born", type=Type.DATE, hierarchy=Calendar(Dates(*bounds), periods), outside=rule)
        for rule in (Outside.ENDS, Outside.DROP)
    )
    for level in range(closed.hierarchy.height + 1):
        assert closed.hierarchy.members(level) == plain.hierarchy.members(level)


def test_births_outside_of_a_period_are_not_published_as_born_in_it() -> None:
    born = Column("born", type=Type.DATE, hierarchy=Calendar(Dates("2024-01-01", "2025-12-31"), (Period.YEAR,)))
    assert labels_of(Recoding(born, 1), pa.array(["1940-05-01", "2025-02-01", "2031-01-01", "2024-07-01"])) == [
        "2024 or earlier", "2025 or later", "2025 or later", "2024 or earlier",
    ]  # fmt: skip


def test_a_day_at_a_bound_is_released_as_text_that_says_so() -> None:
    born = Column("born", type=Type.DATE, hierarchy=Flat(Dates("2024-01-01", "2024-01-03")))
    classes = Recoding(born, 0).classes
    assert classes is not None
    assert classes.values().to_pylist() == ["2024-01-01 or earlier", "2024-01-02", "2024-01-03 or later", None]


def test_the_label_of_an_end_is_not_read_as_the_day_in_it() -> None:
    born = Column("born", type=Type.DATE)
    assert Recoding(born, 0).unreadable(pa.array(["2024-01-01 or earlier", "2024-01-01 10:00"])).tolist() == [
        True,
        False,
    ]
