"""Calendar: the periods of a dataset, and the period of one row as a function of that row alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from incrowd.core.codec import decode, encode
from incrowd.errors import InvalidParameter

UNKNOWN = "unknown"
"""The period of rows without a date, where the calendar says that they have one."""
MOST_PERIODS = 20_000


class Every(StrEnum):
    """How long a period is; weeks are those of ISO 8601 and begin on Mondays."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


class Undated(StrEnum):
    """What becomes of a row without a date, or with one that cannot be read: left out, or in a period of its own."""

    DROP = "drop"
    UNKNOWN = "unknown"


_PATTERNS = {
    Every.DAY: (r"(\d{4})-(\d{2})-(\d{2})", "2025-03-31"),
    Every.WEEK: (r"(\d{4})-W(\d{2})", "2025-W13"),
    Every.MONTH: (r"(\d{4})-(\d{2})", "2025-03"),
    Every.QUARTER: (r"(\d{4})-Q([1-4])", "2025-Q1"),
    Every.YEAR: (r"(\d{4})", "2025"),
}
_FIRST_DAY: Mapping[Every, Callable[..., date]] = {
    Every.DAY: date,
    Every.WEEK: lambda year, week: date.fromisocalendar(year, week, 1),
    Every.MONTH: lambda year, month: date(year, month, 1),
    Every.QUARTER: lambda year, quarter: date(year, 3 * quarter - 2, 1),
    Every.YEAR: lambda year: date(year, 1, 1),
}
_NUMBER: Mapping[Every, Callable[[date], int]] = {
    Every.DAY: date.toordinal,
    Every.WEEK: lambda day: (day.toordinal() - 1) // 7,
    Every.MONTH: lambda day: 12 * day.year + day.month - 1,
    Every.QUARTER: lambda day: 4 * day.year + (day.month - 1) // 3,
    Every.YEAR: lambda day: day.year,
}
_DAY_OF: Mapping[Every, Callable[[int], date]] = {
    Every.DAY: date.fromordinal,
    Every.WEEK: lambda number: date.fromordinal(7 * number + 1),
    Every.MONTH: lambda number: date(number // 12, number % 12 + 1, 1),
    Every.QUARTER: lambda number: date(number // 4, 3 * (number % 4) + 1, 1),
    Every.YEAR: lambda number: date(number, 1, 1),
}


def number_of(label: str, every: Every) -> int:
    """Return the number of a period: consecutive periods have consecutive numbers.

    >>> number_of("2025-01", Every.MONTH) - number_of("2024-12", Every.MONTH)
    1
    """
    pattern, example = _PATTERNS[every]
    match = re.fullmatch(pattern, label)
    try:
        day = None if match is None else _FIRST_DAY[every](*map(int, match.groups()))
    except ValueError:
        day = None
    if day is None or label_of(number := _NUMBER[every](day), every) != label:
        raise InvalidParameter(f"a {every} is written like {example}, not {label!r}.")
    return number


def label_of(number: int, every: Every) -> str:
    """Return the label of a period by its number.

    >>> label_of(number_of("2025-W01", Every.WEEK) - 1, Every.WEEK)
    '2024-W52'
    """
    day = _DAY_OF[every](number)
    match every:
        case Every.DAY:
            return day.isoformat()
        case Every.WEEK:
            year, week, _ = day.isocalendar()
            return f"{year:04}-W{week:02}"
        case Every.MONTH:
            return f"{day.year:04}-{day.month:02}"
        case Every.QUARTER:
            return f"{day.year:04}-Q{(day.month + 2) // 3}"
        case Every.YEAR:
            return f"{day.year:04}"


@dataclass(frozen=True)
class PeriodCalendar:
    """Which rows belong to which period: declared once for a dataset, a function of one row alone.

    A release reads the rows of one period in the file as it stands.  The date in `column` decides; with `arrival`, the
    date on which a row arrived does, so that a late row or a correction belongs to the period in which it arrived, and
    `column` is an ordinary column.  A column of days is taken as written.  A column of moments (type text, ISO 8601) is
    read in `zone`; a moment without an offset is a time on the clocks there.

    Source: a row lies in one period, so periods are blocks of a partition of the record domain (McSherry 2009); two
    calendars are two partitions, and a row near the seam would lie in two blocks.

    >>> months = PeriodCalendar("discharged", Every.MONTH, "2025-01", "2029-12")
    >>> len(months.labels), months.period_of("2025-03-31")
    (60, '2025-03')
    """

    column: str
    every: Every
    first: str
    last: str
    zone: str | None = None
    undated: Undated = Undated.DROP
    arrival: str | None = None

    def __post_init__(self) -> None:
        first, last = (number_of(end, self.every) for end in (self.first, self.last))
        if last < first:
            raise InvalidParameter(f"periods run from first to last, not from {self.first} to {self.last}: swap them.")
        if last - first >= MOST_PERIODS:
            raise InvalidParameter(f"a calendar has at most {MOST_PERIODS:,} periods: choose longer ones, or fewer.")
        if self.arrival == self.column:
            raise InvalidParameter("arrival: names another column than column:, the day on which a row arrived.")
        if self.zone is not None:
            _zone(self.zone)

    @property
    def decides(self) -> str:
        """The column whose date decides."""
        return self.arrival or self.column

    @property
    def size(self) -> int:
        """How many periods there are, the one of undated rows included."""
        dated = number_of(self.last, self.every) - number_of(self.first, self.every) + 1
        return dated + (self.undated is Undated.UNKNOWN)

    @property
    def labels(self) -> tuple[str, ...]:
        """All periods, in order; the one of undated rows is the last."""
        first, last = (number_of(end, self.every) for end in (self.first, self.last))
        dated = tuple(label_of(number, self.every) for number in range(first, last + 1))
        return (*dated, UNKNOWN) if self.undated is Undated.UNKNOWN else dated

    def require(self, label: str) -> str:
        """Return a label if it is one of this calendar, or refuse it."""
        if label == UNKNOWN and self.undated is Undated.UNKNOWN:
            return label
        number = number_of(label, self.every)
        if not number_of(self.first, self.every) <= number <= number_of(self.last, self.every):
            raise InvalidParameter(f"{label} is outside the policy's periods, {self.first} to {self.last}.")
        return label

    def days(self, label: str) -> tuple[date, date]:
        """Return the first day of a period, and the first day after it.

        >>> PeriodCalendar("day", Every.QUARTER, "2025-Q1", "2025-Q4").days("2025-Q1")
        (datetime.date(2025, 1, 1), datetime.date(2025, 4, 1))
        """
        number = number_of(label, self.every)
        return _DAY_OF[self.every](number), _DAY_OF[self.every](number + 1)

    def covering(self, first: date, behind: date) -> tuple[str, ...] | None:
        """Return the periods of all rows from a day on until another one, which is not included.

        None where some of these days lie in no period, so that no periods are known to hold such rows.  This is what a
        query reads whose condition on the deciding column leaves these days; a row without a date is never among them.

        >>> months = PeriodCalendar("day", Every.MONTH, "2025-01", "2025-12")
        >>> months.covering(date(2025, 1, 31), date(2025, 2, 2)), months.covering(date(2024, 12, 31), date(2025, 2, 1))
        (('2025-01', '2025-02'), None)
        """
        if behind <= first:
            return ()
        begin, end = (_NUMBER[self.every](day) for day in (first, behind - timedelta(days=1)))
        if begin < number_of(self.first, self.every) or end > number_of(self.last, self.every):
            return None
        return tuple(label_of(number, self.every) for number in range(begin, end + 1))

    def span(self, label: str) -> tuple[str, str] | None:
        """Return the moments at which a period begins and ends, by the rules of its zone as they are known now.

        The rules of a zone change.  The ledger stores the span of each period, so that two spans never overlap.
        """
        if self.zone is None or label == UNKNOWN:
            return None
        zone = _zone(self.zone)
        begin, end = (datetime.combine(day, time(), zone).astimezone(UTC).isoformat() for day in self.days(label))
        return begin, end

    def period_of(self, value: object) -> str | None:
        """Return the period of a value of the deciding column; None for a row that belongs to none.

        >>> berlin = PeriodCalendar("at", Every.MONTH, "2025-01", "2025-12", "Europe/Berlin")
        >>> berlin.period_of("2025-01-31T23:30:00Z"), berlin.period_of("2025-01-31T23:30:00")
        ('2025-02', '2025-01')
        """
        day = self._day(value)
        if day is None:
            return UNKNOWN if self.undated is Undated.UNKNOWN else None
        number = _NUMBER[self.every](day)
        inside = number_of(self.first, self.every) <= number <= number_of(self.last, self.every)
        return label_of(number, self.every) if inside else None

    def reads(self, value: object) -> bool:
        """Whether a value of the deciding column is a day or a moment that can be read.

        >>> PeriodCalendar("at", Every.YEAR, "2025", "2026", "UTC").reads("31.03.2025 12:00")
        False
        """
        return self._day(value) is not None

    def _day(self, value: object) -> date | None:
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value.strip())
            except ValueError:
                return None
        if isinstance(value, datetime):
            zone = None if self.zone is None else _zone(self.zone)
            try:
                return value.date() if value.tzinfo is None or zone is None else value.astimezone(zone).date()
            except OverflowError:
                return None
        return value if isinstance(value, date) else None

    def follows(self, other: PeriodCalendar) -> bool:
        """Whether both put every row into the same period; the first and the last period may differ."""
        return self._rule == other._rule

    @property
    def _rule(self) -> tuple[object, ...]:
        return self.column, self.every, self.zone, self.undated, self.arrival

    def to_json(self) -> dict[str, Any]:
        """Return the plain form stored in ledgers."""
        plain: dict[str, Any] = encode(self)
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> PeriodCalendar:
        """Read what `to_json` wrote."""
        return decode(cls, dict(plain))

    def __str__(self) -> str:
        late = f" by {self.arrival}, the day of arrival" if self.arrival else f" by {self.column}"
        zone = f" in {self.zone}" if self.zone else ""
        undated = "rows without a date are one more period" if self.undated is Undated.UNKNOWN else ""
        return f"every {self.every}{late}{zone}" + (f"; {undated}" if undated else "")


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidParameter(f"there is no time zone {name!r}: write a name such as Europe/Berlin.") from None


def neighbors_of(label: str, every: Every, reach: int) -> tuple[str, ...]:
    """Return the periods from `reach` before one to `reach` after it, itself included; an undated one is alone.

    >>> neighbors_of("2025-01", Every.MONTH, 1)
    ('2024-12', '2025-01', '2025-02')
    """
    if label == UNKNOWN:
        return (label,)
    number = number_of(label, every)
    return tuple(label_of(near, every) for near in range(number - reach, number + reach + 1))
