"""Dates: their parts, their differences, and days or months added to them, within the calendar."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache, partial

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.language.domain import FIRST, LAST, BoundTree, ExpressionDomain, among, day, days, listed, whole
from incrowd.queries.language.expressions import answers
from incrowd.queries.language.expressions.calendar import MOST_MONTHS, PERIODS, periods_between, shifted_by_months
from incrowd.queries.language.expressions.function import AnswerTypes, Mean, SqlFunction, moment, number
from incrowd.queries.language.trees import between, case, cast, constant, function, operand

_MOST_DAYS = 4_000_000

_PARTS: dict[str, tuple[type[exp.Expr], Callable[[date], int], tuple[int, int]]] = {
    "YEAR": (exp.Year, lambda when: when.year, (1, 9999)),
    "QUARTER": (exp.Quarter, lambda when: (when.month + 2) // 3, (1, 4)),
    "MONTH": (exp.Month, lambda when: when.month, (1, 12)),
    "DAY": (exp.Day, lambda when: when.day, (1, 31)),
    "DAYOFWEEK": (exp.DayOfWeek, lambda when: when.isoweekday() % 7, (0, 6)),
    "WEEK": (exp.WeekOfYear, lambda when: when.isocalendar().week, (1, 53)),
    "DAYOFYEAR": (exp.DayOfYear, lambda when: when.timetuple().tm_yday, (1, 366)),
}
_CALLED = {"WEEKOFYEAR": "WEEK", "DOW": "DAYOFWEEK", "DOY": "DAYOFYEAR"}
"""Other names of parts."""

_STARTS: dict[str, Callable[[date], date]] = {
    "YEAR": lambda when: when.replace(month=1, day=1),
    "QUARTER": lambda when: when.replace(month=(when.month - 1) // 3 * 3 + 1, day=1),
    "MONTH": lambda when: when.replace(day=1),
    "WEEK": lambda when: max(FIRST, day(days(when) - when.weekday())),
    "DAY": lambda when: when,
}


def written(text: str) -> date:
    """Return the date that a text in the question names.

    >>> written("2020-02-29")
    datetime.date(2020, 2, 29)
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidParameter("a date in a question is written as 2020-12-31.") from None


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
    if name == "ISODOW":
        return mean(exp.DayOfWeekIso(this=node.copy()))
    return _part(name, mean(node))


def _truncate(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand DATE_TRUNC('month', d): the first day of the year, quarter, month or week (Monday)."""
    unit = node.args["unit"].name.upper()
    if unit not in _STARTS:
        raise QuestionRefused(f"DATE_TRUNC goes to {', '.join(sorted(_STARTS)).lower()}: choose one of them.")
    when = moment(mean(node.this), "DATE_TRUNC")
    tree = cast(exp.TimestampTrunc(this=when.tree.copy(), unit=exp.Var(this=unit)), Type.DATE)
    low, high = (_STARTS[unit](day(int(end))) for end in when.extent.ends)
    extent = ExpressionDomain(Type.DATE, Fraction(days(low)), Fraction(days(high)), optional=when.extent.optional)
    first = constant(FIRST)
    if unit == "WEEK" and low == FIRST:  # the first week of the calendar begins before it
        tree = exp.Greatest(this=tree, expressions=[first], ignore_nulls=True)
        tree = case((exp.Not(this=exp.Is(this=when.tree.copy(), expression=exp.Null())), tree))
    starts = _starts_between(unit, low, high)
    return BoundTree(tree, extent if starts is None else among(Type.DATE, starts, optional=extent.optional))


def _difference(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand DATE_DIFF('day', from, to), and of longer periods how many ends lie between."""
    unit = "" if node.args.get("unit") is None else node.args["unit"].name.upper()
    if unit not in ("DAY", *PERIODS):
        raise QuestionRefused("DATE_DIFF counts days, weeks, months, quarters or years: DATE_DIFF('day', from, to).")
    sides = [_moment_of(part, mean) for part in (node.this, node.expression)]
    return days_between(*sides) if unit == "DAY" else periods_between(unit, *sides)


def days_between(left: BoundTree, right: BoundTree) -> BoundTree:
    """Return how many days one date lies after another.

    >>> from incrowd.queries.language.trees import fixed
    >>> days_between(fixed(date(2024, 3, 1), Type.DATE), fixed(date(2024, 2, 1), Type.DATE)).extent.values
    (29,)
    """
    (a, b), (c, d) = left.extent.ends, right.extent.ends
    tree = exp.DateDiff(this=left.tree.copy(), expression=right.tree.copy(), unit=exp.Var(this="DAY"))
    optional = left.extent.optional or right.extent.optional
    extent = ExpressionDomain(Type.INTEGER, a - d, b - c, optional=optional)
    return BoundTree(cast(tree, Type.INTEGER), listed(extent, (left, right), lambda x, y: (x - y).days))


def _shift(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand DATE_ADD(d, INTERVAL n DAY)."""
    if not isinstance(node.expression, exp.Interval):
        return shifted(mean(node.this), mean(node.expression))
    return moved(mean(node.this), node.expression, 1)


_DAYS = {"DAY": 1, "WEEK": 7}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def moved(when: BoundTree, interval: exp.Interval, sign: int) -> BoundTree:
    """Return a date moved by INTERVAL n DAY, WEEK, MONTH, QUARTER or YEAR, written out; backwards for a sign of −1."""
    unit = "" if interval.args.get("unit") is None else interval.args["unit"].name.upper().removesuffix("S")
    number = interval.this.unnest() if isinstance(interval.this, exp.Expr) else None
    if unit not in (_DAYS | _MONTHS) or not isinstance(number, exp.Literal) or not str(number.this).isdigit():
        raise QuestionRefused("intervals are whole days, weeks, months or years, such as INTERVAL 30 DAY.")
    many = int(str(number.this)) if len(str(number.this)) < 10 else _MOST_DAYS + 1
    if many > (_MOST_DAYS if unit in _DAYS else MOST_MONTHS):
        raise InvalidParameter(f"an interval has at most {_MOST_DAYS:,} days or {MOST_MONTHS:,} months.")
    if unit in _MONTHS:
        return shifted_by_months(when, sign * many * _MONTHS[unit])
    length = sign * many * _DAYS[unit]
    return shifted(when, BoundTree(constant(length), among(Type.INTEGER, (length,), optional=False)))


def shifted(when: BoundTree, by: BoundTree) -> BoundTree:
    """Return a date so many days later; NULL where the calendar, years 1 to 9999, has no such day.

    >>> from incrowd.queries.language.trees import fixed
    >>> shifted(fixed(date(2024, 2, 28), Type.DATE), fixed(2, Type.INTEGER)).extent.values
    (datetime.date(2024, 3, 1),)
    """
    moment(when, "+")
    low, high = number(by, "+").extent.ends
    if by.extent.type is not Type.INTEGER or max(abs(low), abs(high)) > _MOST_DAYS:
        raise QuestionRefused(
            f"to a date whole days are added, at most {_MOST_DAYS:,}: use FLOOR, or CLAMP(n, low, high)."
        )
    days_as_int = exp.Cast(this=by.tree.copy(), to=exp.DataType.build("INT", dialect="duckdb"))
    tree: exp.Expr = exp.Add(this=operand(when.tree), expression=days_as_int)
    start, end = when.extent.ends[0] + low, when.extent.ends[1] + high
    optional = when.extent.optional or by.extent.optional
    if start < days(FIRST) or end > days(LAST):
        tree = case((between(tree, constant(FIRST), constant(LAST)), tree))
        first, last = Fraction(days(FIRST)), Fraction(days(LAST))
        start, end, optional = min(max(start, first), last), max(min(end, last), first), True
    return BoundTree(tree, listed(ExpressionDomain(Type.DATE, start, end, optional=optional), (when, by), _later))


def _later(when: date, by: int) -> date | None:
    try:
        return when + timedelta(days=by)
    except OverflowError:
        return None


def _part(name: str, when: BoundTree) -> BoundTree:
    name = _CALLED.get(name, name)
    if name not in _PARTS:
        known = ", ".join(sorted(_PARTS)).lower()
        raise QuestionRefused(f"of a date {known} and isodow can be taken: choose one of them.")
    kind, twin, ends = _PARTS[name]
    moment(when, name)
    if name == "YEAR":
        ends = (day(int(when.extent.ends[0])).year, day(int(when.extent.ends[1])).year)
    extent = whole(*ends, optional=when.extent.optional)
    return BoundTree(cast(function(kind, when.tree), Type.INTEGER), listed(extent, (when,), twin))


@lru_cache(maxsize=256)
def _starts_between(unit: str, low: date, high: date) -> tuple[date, ...] | None:
    """Return the first days of all periods from one such day to another, walking backwards; None if they are many."""
    if (high - low).days > 40_000 or unit == "DAY":
        return None
    found = [high]
    while found[-1] > low:
        found.append(_STARTS[unit](found[-1] - timedelta(days=1)))
    return tuple(found)


def _moment_of(node: exp.Expr, mean: Mean) -> BoundTree:
    if isinstance(node, exp.Literal) and node.is_string:
        when = written(str(node.this))
        return BoundTree(constant(when), among(Type.DATE, (when,), optional=False))
    return moment(mean(node), "DATE_DIFF")


_TWO = ("this", "expression")
_number_of = partial(SqlFunction, on_rows=_part_of, types=AnswerTypes(Type.DATE, Type.DECIMAL))

FUNCTIONS = (
    _number_of("YEAR", exp.Year, on_answers=lambda when: when.year),
    _number_of("QUARTER", exp.Quarter, on_answers=lambda when: (when.month + 2) // 3),
    _number_of("MONTH", exp.Month, on_answers=lambda when: when.month),
    SqlFunction("WEEK", (exp.Week, exp.WeekOfYear), _part_of, other_names=("WEEKOFYEAR",)),
    _number_of("DAY", exp.Day, on_answers=lambda when: when.day),
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
        on_answers=answers.truncated,
        types=AnswerTypes(Type.DATE, Type.DATE),
    ),
    SqlFunction("DATE_DIFF", exp.DateDiff, _difference, (*_TWO, "unit", "date_part_boundary"), ("DATEDIFF",)),
    SqlFunction("DATE_ADD", exp.DateAdd, _shift, _TWO),
)
