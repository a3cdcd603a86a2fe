"""Dates: their parts and names, their differences, and days or months added to them, within the calendar."""

from __future__ import annotations

import calendar
import math
from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache, partial

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.language.domain import FIRST, LAST, MIDNIGHT, BoundTree, ExpressionDomain, among, day, days, whole
from incrowd.queries.language.expressions.function import AnswerTypes, Mean, SqlFunction, moment, number
from incrowd.queries.language.trees import between, case, cast, constant, fixed, function, operand, operation, present

_MOST_DAYS, _MOST_MONTHS = 4_000_000, 12_000
"""How many days, and how many months, are added to a date at most."""
_MOST_LISTED_DAYS = 40_000  # a century of days: the months and weeks that occur are listed from them
_WEEK = 7
_DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

_PARTS: dict[str, tuple[type[exp.Expr], Callable[[date], int], tuple[int, int]]] = {
    "YEAR": (exp.Year, lambda when: when.year, (1, 9999)),
    "QUARTER": (exp.Quarter, lambda when: (when.month + 2) // 3, (1, 4)),
    "MONTH": (exp.Month, lambda when: when.month, (1, 12)),
    "DAY": (exp.Day, lambda when: when.day, (1, 31)),
    "DAYOFWEEK": (exp.DayOfWeek, lambda when: when.isoweekday() % 7, (0, 6)),
    "WEEK": (exp.WeekOfYear, lambda when: when.isocalendar().week, (1, 53)),
    "DAYOFYEAR": (exp.DayOfYear, lambda when: when.timetuple().tm_yday, (1, 366)),
}
_OTHER_NAMES = {"WEEKOFYEAR": "WEEK", "DOW": "DAYOFWEEK", "DOY": "DAYOFYEAR"}

_STARTS: dict[str, Callable[[date], date]] = {
    "YEAR": lambda when: when.replace(month=1, day=1),
    "QUARTER": lambda when: when.replace(month=(when.month - 1) // 3 * 3 + 1, day=1),
    "MONTH": lambda when: when.replace(day=1),
    "WEEK": lambda when: max(FIRST, day(days(when) - when.weekday())),
    "DAY": lambda when: when,
}

_PERIODS: dict[str, Callable[[date], int]] = {
    "YEAR": lambda when: when.year,
    "QUARTER": lambda when: when.year * 4 + (when.month - 1) // 3,
    "MONTH": lambda when: when.year * 12 + when.month,
}
"""Periods, each with the number of the one that a day is in."""


def written(text: str) -> date:
    """Return the date that a text in the query names.

    >>> written("2020-02-29")
    datetime.date(2020, 2, 29)
    """
    match = MIDNIGHT.fullmatch(text)
    try:
        return date.fromisoformat(match["day"] if match else text)
    except ValueError:
        raise InvalidParameter("a date in a query is written as 2020-12-31, without a time of day.") from None


def _part_of(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand YEAR(d), QUARTER(d), MONTH(d), WEEK(d) (ISO), DAY(d), DAYOFYEAR(d), DAYOFWEEK(d) (Sunday is 0)."""
    return _part(type(node).__name__.upper(), mean(node.this))


def _extract(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand EXTRACT(part FROM d)."""
    return _named_part(node.name.upper(), node.expression, mean)


def date_part(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand DATE_PART('part', d)."""
    if len(node.expressions) != 2:
        raise InvalidParameter("write DATE_PART('year', d).")
    return _named_part(node.expressions[0].name.upper(), node.expressions[1], mean)


def _named_part(name: str, node: exp.Expr, mean: Mean) -> BoundTree:
    return mean(exp.DayOfWeekIso(this=node.copy())) if name == "ISODOW" else _part(name, mean(node))


def _part(name: str, when: BoundTree) -> BoundTree:
    name = _OTHER_NAMES.get(name, name)
    if name not in _PARTS:
        parts = ", ".join(sorted(_PARTS)).lower()
        raise QueryRefused(f"the parts of a date are {parts} and isodow: choose one of them.")
    kind, compute, ends = _PARTS[name]
    moment(when, name)
    if name == "YEAR":
        ends = (day(int(when.ends[0])).year, day(int(when.ends[1])).year)
    tree = cast(function(kind, when.tree), Type.INTEGER)
    return BoundTree.of(tree, whole(*ends, optional=when.optional), (when,), compute)


def _weekday(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand ISODOW(d): Monday is 1, Sunday 7."""
    moved = exp.Add(this=exp.DayOfWeek(this=node.this.copy()), expression=exp.Literal.number(6))
    from_zero = exp.Mod(this=exp.Paren(this=moved), expression=exp.Literal.number(7))
    return mean(exp.Add(this=exp.Paren(this=from_zero), expression=exp.Literal.number(1)))


def _named(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand DAYNAME(d) and MONTHNAME(d), in English."""
    if isinstance(node, exp.Dayname):
        part = mean(exp.DayOfWeek(this=node.this.copy()))
        names = dict(enumerate(_DAY_NAMES))
    else:
        part = mean(exp.Month(this=node.this.copy()))
        names = dict(enumerate(calendar.month_name[1:], 1))
    branches = [(operation(exp.EQ, part.tree, constant(place)), constant(name)) for place, name in names.items()]
    members = [member for member in part.extent.members() or () if isinstance(member, int)]
    return BoundTree(case(*branches), among(Type.TEXT, [names[member] for member in members], optional=part.optional))


def _truncate(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand DATE_TRUNC('month', d): the first day of the year, quarter, month or week (Monday)."""
    unit = node.args["unit"].name.upper()
    if unit not in _STARTS:
        raise QueryRefused(f"DATE_TRUNC goes to {', '.join(sorted(_STARTS)).lower()}: choose one of them.")
    when = moment(mean(node.this), "DATE_TRUNC")
    tree = cast(exp.TimestampTrunc(this=when.tree.copy(), unit=exp.Var(this=unit)), Type.DATE)
    low, high = (_STARTS[unit](day(int(end))) for end in when.ends)
    if unit == "WEEK" and low == FIRST:  # the first week of the calendar begins before it
        tree = exp.Greatest(this=tree, expressions=[constant(FIRST)], ignore_nulls=True)
        tree = case((present(when.tree), tree))
    starts = _starts_between(unit, low, high)
    if starts is not None:
        return BoundTree(tree, among(Type.DATE, starts, optional=when.optional))
    return BoundTree(tree, _dates(Fraction(days(low)), Fraction(days(high)), optional=when.optional))


@lru_cache(maxsize=256)
def _starts_between(unit: str, low: date, high: date) -> tuple[date, ...] | None:
    """Return the first days of all periods from one such day to another, walking backwards; None if they are many."""
    if (high - low).days > _MOST_LISTED_DAYS or unit == "DAY":
        return None
    starts = [high]
    while starts[-1] > low:
        starts.append(_STARTS[unit](starts[-1] - timedelta(days=1)))
    return tuple(starts)


def _dates(low: Fraction, high: Fraction, *, optional: bool) -> ExpressionDomain:
    return ExpressionDomain(Type.DATE, low, high, optional=optional)


def _difference(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand DATE_DIFF('day', from, to); of longer periods, how many begin between the dates."""
    unit = "" if node.args.get("unit") is None else node.args["unit"].name.upper()
    later, earlier = (_moment_of(part, mean) for part in (node.this, node.expression))
    match unit:
        case "DAY":
            return days_between(later, earlier)
        case "WEEK":
            return _weeks_between(later, earlier)
        case "YEAR" | "QUARTER" | "MONTH":
            return _periods_between(unit, later, earlier)
    raise QueryRefused("DATE_DIFF counts days, weeks, months, quarters or years: DATE_DIFF('day', from, to).")


def _moment_of(node: exp.Expr, mean: Mean) -> BoundTree:
    if isinstance(node, exp.Literal) and node.is_string:
        return fixed(written(str(node.this)), Type.DATE)
    return moment(mean(node), "DATE_DIFF")


def days_between(later: BoundTree, earlier: BoundTree) -> BoundTree:
    """Return how many days one date lies after another.

    >>> days_between(fixed(date(2024, 3, 1), Type.DATE), fixed(date(2024, 2, 1), Type.DATE)).extent.values
    (29,)
    """
    (a, b), (c, d) = later.ends, earlier.ends
    extent = ExpressionDomain(Type.INTEGER, a - d, b - c, optional=later.optional or earlier.optional)
    return BoundTree.of(_days_between(later, earlier), extent, (later, earlier), lambda x, y: (x - y).days)


def _days_between(later: BoundTree, earlier: BoundTree) -> exp.Expr:
    unit = exp.Var(this="DAY")
    return cast(exp.DateDiff(this=later.tree.copy(), expression=earlier.tree.copy(), unit=unit), Type.INTEGER)


def _weeks_between(later: BoundTree, earlier: BoundTree) -> BoundTree:
    """Return how many whole weeks lie between two dates; a part of a week is left out on either side of zero."""
    (a, b), (c, d) = later.ends, earlier.ends
    total = _days_between(later, earlier)
    even = cast(operation(exp.Sub, total, exp.Mod(this=total.copy(), expression=constant(_WEEK))), Type.DECIMAL)
    tree = cast(exp.Div(this=even, expression=constant(float(_WEEK)), typed=False, safe=False), Type.INTEGER)
    low, high = (math.trunc(end / _WEEK) for end in (a - d, b - c))
    extent = whole(low, high, optional=later.optional or earlier.optional)
    return BoundTree.of(tree, extent, (later, earlier), lambda x, y: math.trunc((x - y).days / _WEEK))


def _periods_between(unit: str, later: BoundTree, earlier: BoundTree) -> BoundTree:
    """Return how many years, quarters or months begin between two dates."""
    place = _PERIODS[unit]
    (a, b), (c, d) = ([place(day(int(end))) for end in part.ends] for part in (later, earlier))
    tree = operation(exp.Sub, _period(unit, later.tree), _period(unit, earlier.tree))
    extent = whole(a - d, b - c, optional=later.optional or earlier.optional)
    return BoundTree.of(tree, extent, (later, earlier), lambda x, y: place(x) - place(y))


def _period(unit: str, when: exp.Expr) -> exp.Expr:
    """Return the number of the period that a day is in, in whole numbers: the same on every engine."""
    year = cast(function(exp.Year, when), Type.INTEGER)
    if unit == "YEAR":
        return year
    kind, many = (exp.Quarter, 4) if unit == "QUARTER" else (exp.Month, 12)
    part = cast(function(kind, when), Type.INTEGER)
    return operation(exp.Add, operation(exp.Mul, year, constant(many)), part)


def _of_number(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand the day that many days after 1970-01-01."""
    return shifted(fixed(day(0), Type.DATE), mean(node.this))


_DAYS = {"DAY": 1, "WEEK": 7}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _shift(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand DATE_ADD(d, INTERVAL n DAY)."""
    if not isinstance(node.expression, exp.Interval):
        return shifted(mean(node.this), mean(node.expression))
    return moved(mean(node.this), node.expression, 1)


def moved(when: BoundTree, interval: exp.Interval, sign: int) -> BoundTree:
    """Return a date moved by INTERVAL n DAY, WEEK, MONTH, QUARTER or YEAR, written out; backwards for a sign of −1."""
    unit = "" if interval.args.get("unit") is None else interval.args["unit"].name.upper().removesuffix("S")
    length = interval.this.unnest() if isinstance(interval.this, exp.Expr) else None
    if isinstance(length, exp.Neg):
        length, sign = length.this.unnest(), -sign
    elif isinstance(length, exp.Literal) and length.name.startswith("-"):
        length, sign = exp.Literal.number(length.name[1:]), -sign
    if unit not in (_DAYS | _MONTHS) or not isinstance(length, exp.Literal) or not str(length.this).isdigit():
        raise QueryRefused("intervals are whole days, weeks, months or years, such as INTERVAL 30 DAY.")
    many = int(str(length.this)) if len(str(length.this)) < 10 else _MOST_DAYS + 1
    if many > (_MOST_DAYS if unit in _DAYS else _MOST_MONTHS):
        raise InvalidParameter(f"an interval has at most {_MOST_DAYS:,} days or {_MOST_MONTHS:,} months.")
    if unit in _MONTHS:
        return shifted_by_months(when, sign * many * _MONTHS[unit])
    return shifted(when, fixed(sign * many * _DAYS[unit], Type.INTEGER))


def shifted(when: BoundTree, by: BoundTree) -> BoundTree:
    """Return a date so many days later; NULL where the calendar, years 1 to 9999, has no such day.

    >>> shifted(fixed(date(2024, 2, 28), Type.DATE), fixed(2, Type.INTEGER)).extent.values
    (datetime.date(2024, 3, 1),)
    """
    moment(when, "+")
    low, high = number(by, "+").ends
    if by.type is not Type.INTEGER or max(abs(low), abs(high)) > _MOST_DAYS:
        raise QueryRefused(f"add at most {_MOST_DAYS:,} whole days to a date: use FLOOR, or CLAMP(n, low, high).")
    days_as_int = exp.Cast(this=by.tree.copy(), to=exp.DataType.build("INT", dialect="duckdb"))
    tree: exp.Expr = exp.Add(this=operand(when.tree), expression=days_as_int)
    start, end, optional = when.ends[0] + low, when.ends[1] + high, when.optional or by.optional
    if start < days(FIRST) or end > days(LAST):
        tree = case((between(tree, constant(FIRST), constant(LAST)), tree))
        first, last = Fraction(days(FIRST)), Fraction(days(LAST))
        start, end, optional = min(max(start, first), last), max(min(end, last), first), True
    return BoundTree.of(tree, _dates(start, end, optional=optional), (when, by), _later)


def _later(when: date, by: int) -> date | None:
    try:
        return when + timedelta(days=by)
    except OverflowError:
        return None


def later_by_months(when: date, months: int) -> date | None:
    """Return the same day of another month, or its last day if that is earlier; None beyond the calendar.

    >>> later_by_months(date(2024, 1, 31), 1), later_by_months(date(9999, 12, 1), 1)
    (datetime.date(2024, 2, 29), None)
    """
    year, month = divmod(when.year * 12 + when.month - 1 + months, 12)
    if not FIRST.year <= year <= LAST.year:
        return None
    return date(year, month + 1, min(when.day, calendar.monthrange(year, month + 1)[1]))


def shifted_by_months(when: BoundTree, months: int) -> BoundTree:
    """Return a date so many months later; NULL where the calendar, years 1 to 9999, has no such day.

    A later day stays later, or becomes the same: the ends of the range are moved like every day in it.

    >>> shifted_by_months(fixed(date(2024, 3, 31), Type.DATE), -1).extent.values
    (datetime.date(2024, 2, 29),)
    """
    moment(when, "+")
    if abs(months) > _MOST_MONTHS:
        raise QueryRefused(f"to a date at most {_MOST_MONTHS:,} months are added: choose fewer.")
    if when.values is not None and len(when.values) == 1 and not when.optional:
        constant_day = later_by_months(day(int(when.ends[0])), months)
        if constant_day is None:
            raise InvalidParameter("this date and interval leave the calendar, years 1 to 9999: choose a shorter one.")
        return fixed(constant_day, Type.DATE)
    span = exp.Interval(this=exp.Literal.string(str(months)), unit=exp.Var(this="MONTH"))
    tree = cast(exp.Add(this=exp.Paren(this=when.tree.copy()), expression=span), Type.DATE)
    low, high = (day(int(end)) for end in when.ends)
    first, last = _movable(months)
    optional = when.optional
    if low < first or high > last:
        tree = case((between(when.tree, constant(first), constant(last)), tree))
        low, high, optional = min(max(low, first), last), max(min(high, last), first), True
    start, end = (Fraction(days(later_by_months(edge, months) or edge)) for edge in (low, high))
    extent = _dates(start, end, optional=optional)
    return BoundTree.of(tree, extent, (when,), lambda value: later_by_months(value, months))


def _movable(months: int) -> tuple[date, date]:
    """Return the first and the last day of the calendar that can be moved by so many months."""
    if months >= 0:
        last = later_by_months(LAST, -months) or FIRST
        return FIRST, last.replace(day=calendar.monthrange(last.year, last.month)[1])
    first = later_by_months(FIRST, -months) or LAST
    return first.replace(day=1), LAST


_TWO = ("this", "expression")
_number_of = partial(SqlFunction, on_rows=_part_of, types=AnswerTypes(Type.DATE, Type.DECIMAL))

FUNCTIONS = (
    *(_number_of(name, _PARTS[name][0], on_answers=_PARTS[name][1]) for name in ("YEAR", "QUARTER", "MONTH", "DAY")),
    SqlFunction("WEEK", (exp.Week, exp.WeekOfYear), _part_of, other_names=("WEEKOFYEAR",)),
    SqlFunction("DAYOFYEAR", exp.DayOfYear, _part_of),
    SqlFunction("DAYOFWEEK", exp.DayOfWeek, _part_of),
    SqlFunction("EXTRACT", exp.Extract, _extract, _TWO),
    SqlFunction("DATE_PART", exp.Anonymous, date_part, ("this", "expressions"), ("DATEPART",)),
    SqlFunction(
        "DATE_TRUNC",
        (exp.TimestampTrunc, exp.DateTrunc),
        _truncate,
        ("this", "unit"),
        ("DATETRUNC",),
        on_answers=lambda when, unit: _STARTS[unit.upper()](when),
        types=AnswerTypes(Type.DATE, Type.DATE),
    ),
    SqlFunction("DATE_DIFF", exp.DateDiff, _difference, (*_TWO, "unit", "date_part_boundary"), ("DATEDIFF",)),
    SqlFunction("DATE_ADD", exp.DateAdd, _shift, _TWO),
    SqlFunction("ISODOW", exp.DayOfWeekIso, _weekday),
    SqlFunction("DAYNAME", exp.Dayname, _named),
    SqlFunction("MONTHNAME", exp.Monthname, _named),
)

OPERATORS = (
    SqlFunction(
        "day number",
        exp.DateFromUnixDate,
        _of_number,
        on_answers=lambda number_of_days: day(round(number_of_days)),
        types=AnswerTypes(Type.DECIMAL, Type.DATE),
    ),
)
"""What AVG of dates is made of: the day so many days after 1970-01-01."""
