"""Dates: their parts, their differences in days, and days added to them, within the calendar."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.language.expressions.rules import Mean, NodeRule, moment, number, whole_number
from incrowd.queries.language.extent import FIRST, LAST, BoundTree, Extent, among, day, days, listed, whole
from incrowd.queries.language.trees import between, case, cast, constant, function, operand

_MOST_DAYS = 4_000_000

_PARTS: dict[str, tuple[type[exp.Expr], Callable[[date], int], tuple[int, int]]] = {
    "YEAR": (exp.Year, lambda when: when.year, (1, 9999)),
    "QUARTER": (exp.Quarter, lambda when: (when.month + 2) // 3, (1, 4)),
    "MONTH": (exp.Month, lambda when: when.month, (1, 12)),
    "DAY": (exp.Day, lambda when: when.day, (1, 31)),
    "DAYOFWEEK": (exp.DayOfWeek, lambda when: when.isoweekday() % 7, (0, 6)),
}

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
    """Understand YEAR(d), QUARTER(d), MONTH(d), DAY(d) and DAYOFWEEK(d) (Sunday is 0)."""
    return _part(type(node).__name__.upper(), mean(node.this))


def _extract(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand EXTRACT(part FROM d)."""
    return _part(node.name.upper(), mean(node.expression))


def date_part(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand DATE_PART('part', d)."""
    if len(node.expressions) != 2:
        raise InvalidParameter("write DATE_PART('year', d).")
    return _part(node.expressions[0].name.upper(), mean(node.expressions[1]))


def _truncate(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand DATE_TRUNC('month', d): the first day of the year, quarter, month or week (Monday)."""
    unit = node.args["unit"].name.upper()
    if unit not in _STARTS:
        raise QuestionRefused(f"DATE_TRUNC goes to {', '.join(sorted(_STARTS)).lower()}: choose one of them.")
    when = moment(mean(node.this), "DATE_TRUNC")
    tree = cast(exp.TimestampTrunc(this=when.tree.copy(), unit=exp.Var(this=unit)), Type.DATE)
    low, high = (_STARTS[unit](day(int(end))) for end in when.extent.ends)
    extent = Extent(Type.DATE, Fraction(days(low)), Fraction(days(high)), optional=when.extent.optional)
    first = constant(FIRST)
    if unit == "WEEK" and low == FIRST:  # the first week of the calendar begins before it
        tree = exp.Greatest(this=tree, expressions=[first], ignore_nulls=True)
        tree = case((exp.Not(this=exp.Is(this=when.tree.copy(), expression=exp.Null())), tree))
    starts = _starts_between(unit, low, high)
    return BoundTree(tree, extent if starts is None else among(Type.DATE, starts, optional=extent.optional))


def _difference(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand DATE_DIFF('day', from, to)."""
    unit = node.args.get("unit")
    if unit is None or unit.name.upper() != "DAY":
        raise QuestionRefused("DATE_DIFF counts days: write DATE_DIFF('day', from, to), and divide for longer spans.")
    return days_between(_moment_of(node.this, mean), _moment_of(node.expression, mean))


def days_between(left: BoundTree, right: BoundTree) -> BoundTree:
    """Return how many days one date lies after another.

    >>> from incrowd.queries.language.trees import fixed
    >>> days_between(fixed(date(2024, 3, 1), Type.DATE), fixed(date(2024, 2, 1), Type.DATE)).extent.values
    (29,)
    """
    (a, b), (c, d) = left.extent.ends, right.extent.ends
    tree = exp.DateDiff(this=left.tree.copy(), expression=right.tree.copy(), unit=exp.Var(this="DAY"))
    optional = left.extent.optional or right.extent.optional
    extent = Extent(Type.INTEGER, a - d, b - c, optional=optional)
    return BoundTree(cast(tree, Type.INTEGER), listed(extent, (left, right), lambda x, y: (x - y).days))


def _shift(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand DATE_ADD(d, INTERVAL n DAY)."""
    if not isinstance(node.expression, exp.Interval):
        return shifted(mean(node.this), mean(node.expression))
    return shifted(mean(node.this), span(node.expression, mean))


def span(node: exp.Interval, mean: Mean) -> BoundTree:
    """Return the days of INTERVAL n DAY or WEEK, written out."""
    unit = node.args.get("unit")
    length = {"DAY": 1, "DAYS": 1, "WEEK": 7, "WEEKS": 7}.get("" if unit is None else unit.name.upper())
    if length is None or not isinstance(node.this, exp.Literal) or not str(node.this.this).isdigit():
        raise QuestionRefused("intervals are whole days or weeks, such as INTERVAL 30 DAY.")
    many = whole_number(mean(exp.Literal.number(str(node.this.this))), "an interval", 0, _MOST_DAYS)
    return BoundTree(constant(many * length), among(Type.INTEGER, (many * length,), optional=False))


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
    return BoundTree(tree, listed(Extent(Type.DATE, start, end, optional=optional), (when, by), _later))


def _later(when: date, by: int) -> date | None:
    try:
        return when + timedelta(days=by)
    except OverflowError:
        return None


def _part(name: str, when: BoundTree) -> BoundTree:
    if name not in _PARTS:
        known = ", ".join(sorted(_PARTS)).lower()
        raise QuestionRefused(f"of a date {known} can be taken: choose one of them.")
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


RULES: dict[type[exp.Expr], NodeRule] = {
    exp.Year: NodeRule(_part_of),
    exp.Quarter: NodeRule(_part_of),
    exp.Month: NodeRule(_part_of),
    exp.Day: NodeRule(_part_of),
    exp.DayOfWeek: NodeRule(_part_of),
    exp.Extract: NodeRule(_extract, ("this", "expression")),
    exp.TimestampTrunc: NodeRule(_truncate, ("this", "unit")),
    exp.DateTrunc: NodeRule(_truncate, ("this", "unit")),
    exp.DateDiff: NodeRule(_difference, ("this", "expression", "unit", "date_part_boundary")),
    exp.DateAdd: NodeRule(_shift, ("this", "expression")),
}
