"""Days: which days of the calendar something happens on, declared and never read from rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from incrowd.core.domain import Weekday
from incrowd.core.hierarchy.calendar import Period
from incrowd.errors import InvalidParameter

Days = NDArray[np.int64]
_MONDAY, _WEEK = 3, 7  # 1970-01-01 was three days after a Monday
_MONTHS = {Period.MONTH: 1, Period.QUARTER: 3, Period.YEAR: 12}
_EPOCH = date(1970, 1, 1)
_LONGEST = 366  # days of the longest period


@dataclass(frozen=True)
class DayRule:
    """Days on some weekdays, without days off; of these, with `last_of`, the last one of each week, month or year.

    A day off is one day, 2024-12-25, or one of every year, 12-25.

    >>> rule = DayRule((Weekday.MON, Weekday.TUE, Weekday.WED, Weekday.THU, Weekday.FRI), Period.MONTH, ("05-31",))
    >>> first, end = (np.datetime64(day).astype(int) for day in ("2024-03-01", "2024-06-01"))
    >>> rule.days(first, end).astype("datetime64[D]").astype(str).tolist()
    ['2024-03-29', '2024-04-30', '2024-05-30']
    """

    weekdays: tuple[Weekday, ...] = ()
    last_of: Period | None = None
    off: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for text in self.off:
            if re.fullmatch(r"(\d{4}-)?\d{2}-\d{2}", text) is None or not _exists(text):
                raise InvalidParameter(f"{text!r} is not a day off: write 2024-12-25, or 12-25 for one of every year.")
        if self.last_of is Period.DECADE:
            raise InvalidParameter("last_of is week, month, quarter or year.")

    @property
    def words(self) -> str:
        """Which days it allows, for people."""
        named = ", ".join(self.weekdays)
        last = "" if self.last_of is None else f"the last of each {self.last_of}" + (", of " if named else "")
        off = f"but {', '.join(self.off)}" if self.off else ""
        return " ".join(part for part in (f"{last}{named}" or "any", off) if part)

    def between(self, low: date, high: date) -> Days:
        """Return the days from one to another."""
        first = (low - _EPOCH).days
        return self.days(first, first + (high - low).days + 1)

    def days(self, start: int, end: int) -> Days:
        """Return the days from a first one to before an end, all counted from 1970-01-01."""
        days = np.arange(start, end + (_LONGEST if self.last_of else 0), dtype=np.int64)
        if self.weekdays:
            days = days[np.isin((days + _MONDAY) % _WEEK, [tuple(Weekday).index(day) for day in self.weekdays])]
        if self.off:
            written = days.astype("datetime64[D]").astype(str)
            yearly = np.array([text[5:] for text in written.tolist()], dtype="U5")
            days = days[~(np.isin(written, self.off) | np.isin(yearly, self.off))]
        if self.last_of is not None and len(days):
            period = self._period(days)
            days = days[np.append(period[1:] != period[:-1], True)]
        return days[days < end]

    def _period(self, days: Days) -> Days:
        """Return a number of the period of each day."""
        if self.last_of is Period.WEEK or self.last_of is None:
            return (days + _MONDAY) // _WEEK
        months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
        periods: Days = months // _MONTHS[self.last_of]
        return periods


def _exists(text: str) -> bool:
    try:
        date.fromisoformat(text if len(text) > len("12-25") else f"2000-{text}")
    except ValueError:
        return False
    return True
