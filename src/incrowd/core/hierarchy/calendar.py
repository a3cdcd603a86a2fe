"""Calendar: days in weeks, or in months, quarters, years and decades."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.domain import DECLARED, Dates, Provenance
from incrowd.core.hierarchy.flat import written
from incrowd.core.hierarchy.hierarchy import Hierarchy, HierarchyRule, RuleKind, day_number, open_days, open_label
from incrowd.errors import InvalidParameter


class Period(StrEnum):
    """A part of the calendar; from months on, each consists of whole ones of any before it."""

    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"
    DECADE = "decade"


_MONTHS = {Period.MONTH: 1, Period.QUARTER: 3, Period.YEAR: 12, Period.DECADE: 120}
_MONDAY = 3  # days from Monday, 1969-12-29, to the first day of 1970


@dataclass(frozen=True)
class Calendar(Hierarchy):
    """The week (by ISO 8601), or the month, quarter, year and decade a day lies in; finest first.

    A week can lie in two months, and even in two years, so nothing but `*` lies above it.  With `open_ends` the first
    and the last period say in their labels that they hold the days beyond the bounds.

    >>> born = Calendar(Dates(), (Period.MONTH, Period.QUARTER, Period.YEAR, Period.DECADE))
    >>> [born.generalize("2024-12-30", level) for level in range(6)]
    ['2024-12-30', '2024-12', '2024-Q4', '2024', '2020s', '*']
    >>> Calendar(Dates(), (Period.WEEK,)).generalize("2024-12-30", 1)
    '2025-W01'
    >>> Calendar(Dates("2023-05-01", "2025-03-31"), (Period.YEAR,), open_ends=True).labels(1)
    ('2023 or earlier', '2024', '2025 or later')
    """

    domain: Dates
    periods: tuple[Period, ...]
    provenance: Provenance = DECLARED
    open_ends: bool = False

    def __post_init__(self) -> None:
        try:
            periods = tuple(Period(period) for period in self.periods)
        except ValueError as error:
            raise InvalidParameter(f"the calendar knows {', '.join(Period)}: choose among these.") from error
        object.__setattr__(self, "periods", periods)
        if not periods:
            raise InvalidParameter("name at least one period of the calendar, such as month.")
        order = list(Period)
        for fine, coarse in itertools.pairwise(periods):
            if fine is Period.WEEK:
                raise InvalidParameter(f"a week can lie in two of the period {coarse}: above week there is only '*'.")
            if order.index(fine) >= order.index(coarse):
                raise InvalidParameter(f"periods go from fine to coarse: {coarse} cannot stand above {fine}.")

    def with_open_ends(self) -> Calendar:
        return replace(self, open_ends=True)

    @property
    def depth(self) -> int:
        return len(self.periods)

    @property
    def rule(self) -> HierarchyRule:
        return HierarchyRule.by_level(RuleKind.CALENDAR, self.periods)

    def _lift(self, values: pa.Array, level: int) -> pa.Array:
        period = self.periods[level - 1]
        missing = values.is_null().to_numpy(zero_copy_only=False)
        days = pc.cast(values, pa.int32()).fill_null(0).to_numpy(zero_copy_only=False)
        if period is Period.WEEK:
            starts = days - (days + _MONDAY) % 7
        else:
            months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
            starts = _start_of(months - (months + 1970 * 12) % _MONTHS[period])
        return pc.cast(pa.array(starts.astype(np.int32), pa.int32(), mask=missing), pa.date32())

    def _names(self, marks: pa.Array, level: int) -> pa.Array:
        days = pc.cast(marks, pa.int32())
        names = [None if day is None else _label(day, self.periods[level - 1]) for day in days.to_pylist()]
        labels, ends = pa.array(names, pa.string()), pa.array([day_number(day) for day in self._open_days], pa.int32())
        first, last = pc.cast(self._lift(pc.cast(ends, pa.date32()), level), pa.int32()).to_pylist()
        return open_days(labels, days, (first, last))

    def _generalize(self, value: str, level: int) -> str | None:
        day = written(value, self.domain)
        if day is None or level == 0:
            return day
        period = self.periods[level - 1]
        first, last = (None if end is None else _name(end, period) for end in self._open_days)
        return open_label(_name(date.fromisoformat(day), period), first, last)


def _start_of(months: NDArray[np.int64]) -> NDArray[np.int64]:
    days: NDArray[np.int64] = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return days


def _label(start: int, period: Period) -> str:
    """Return the name of the period that begins on this day after 1970-01-01; the first decade begins in year 0."""
    return "0000s" if start < (date.min - date(1970, 1, 1)).days else _name(date(1970, 1, 1) + timedelta(start), period)


def _name(day: date, period: Period) -> str:
    match period:
        case Period.WEEK:
            year, week, _ = day.isocalendar()
            return f"{year:04d}-W{week:02d}"
        case Period.MONTH:
            return f"{day.year:04d}-{day.month:02d}"
        case Period.QUARTER:
            return f"{day.year:04d}-Q{(day.month + 2) // 3}"
        case Period.YEAR:
            return f"{day.year:04d}"
        case Period.DECADE:
            return f"{day.year // 10:03d}0s"
