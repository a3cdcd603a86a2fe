"""The calendar: months and years added to dates, periods between them, weeks, names of days, and dates in writing."""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.language.domain import FIRST, LAST, BoundTree, ExpressionDomain, among, day, days, listed, texts
from incrowd.queries.language.expressions import answers
from incrowd.queries.language.expressions.function import AnswerTypes, Mean, SqlFunction, moment, sole
from incrowd.queries.language.trees import between, case, cast, constant, function, operation

MOST_MONTHS = 12_000
"""How many months are added to a date, or taken from it, at most: a thousand years."""

_WEEK = 7
_MOST_DAYS = 40_000
_LONGEST = 40


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

    >>> from incrowd.queries.language.trees import fixed
    >>> shifted_by_months(fixed(date(2024, 3, 31), Type.DATE), -1).extent.values
    (datetime.date(2024, 2, 29),)
    """
    moment(when, "+")
    if abs(months) > MOST_MONTHS:
        raise QuestionRefused(f"to a date at most {MOST_MONTHS:,} months are added: choose fewer.")
    if when.extent.values is not None and len(when.extent.values) == 1 and not when.extent.optional:
        moved = later_by_months(_only_day(when), months)
        if moved is None:
            raise InvalidParameter("this date and interval leave the calendar, years 1 to 9999: choose a shorter one.")
        return BoundTree(constant(moved), among(Type.DATE, (moved,), optional=False))
    span = exp.Interval(this=exp.Literal.string(str(months)), unit=exp.Var(this="MONTH"))
    tree = cast(exp.Add(this=exp.Paren(this=when.tree.copy()), expression=span), Type.DATE)
    low, high = (day(int(end)) for end in when.extent.ends)
    first, last = _movable(months)
    optional = when.extent.optional
    if low < first or high > last:
        tree = case((between(when.tree, constant(first), constant(last)), tree))
        low, high, optional = min(max(low, first), last), max(min(high, last), first), True
    ends = [later_by_months(end, months) for end in (low, high)]
    numbers = [Fraction(days(end)) for end in ends if end is not None]
    extent = ExpressionDomain(Type.DATE, numbers[0], numbers[1], optional=optional)
    return BoundTree(tree, listed(extent, (when,), lambda each: later_by_months(each, months)))


def _only_day(when: BoundTree) -> date:
    (value,) = when.extent.values or ()
    if not isinstance(value, date):
        raise TypeError
    return value


def _movable(months: int) -> tuple[date, date]:
    """Return the first and the last day of the calendar that can be moved by so many months."""
    if months >= 0:
        last = later_by_months(LAST, -months) or FIRST
        return FIRST, last.replace(day=calendar.monthrange(last.year, last.month)[1])
    first = later_by_months(FIRST, -months) or LAST
    return first.replace(day=1), LAST


_PERIODS: dict[str, Callable[[date], int]] = {
    "YEAR": lambda when: when.year,
    "QUARTER": lambda when: when.year * 4 + (when.month - 1) // 3,
    "MONTH": lambda when: when.year * 12 + when.month,
}
"""Periods, each with the number of the one that a day is in."""

PERIODS = (*_PERIODS, "WEEK")


def periods_between(unit: str, later: BoundTree, earlier: BoundTree) -> BoundTree:
    """Return how many ends of years, quarters or months lie between two dates, or how many whole weeks.

    >>> from incrowd.queries.language.trees import fixed
    >>> one, other = (fixed(date(2024, 3, day), Type.DATE) for day in (1, 31))
    >>> periods_between("MONTH", other, one).extent.values, periods_between("WEEK", other, one).extent.values
    ((0,), (4,))
    """
    if unit == "WEEK":
        return _weeks_between(later, earlier)
    number = _PERIODS[unit]
    (a, b), (c, d) = ([number(day(int(end))) for end in part.extent.ends] for part in (later, earlier))
    tree = operation(exp.Sub, _period(unit, later.tree), _period(unit, earlier.tree))
    optional = later.extent.optional or earlier.extent.optional
    extent = ExpressionDomain(Type.INTEGER, Fraction(a - d), Fraction(b - c), optional=optional)
    return BoundTree(tree, listed(extent, (later, earlier), lambda x, y: number(x) - number(y)))


def _weeks_between(later: BoundTree, earlier: BoundTree) -> BoundTree:
    """Return how many whole weeks lie between two dates; a part of a week is left out on either side of zero."""
    (a, b), (c, d) = later.extent.ends, earlier.extent.ends
    days_ = exp.DateDiff(this=later.tree.copy(), expression=earlier.tree.copy(), unit=exp.Var(this="DAY"))
    whole = cast(days_, Type.INTEGER)
    rest = exp.Mod(this=whole.copy(), expression=constant(_WEEK))
    even = cast(operation(exp.Sub, whole, rest), Type.DECIMAL)
    tree = cast(exp.Div(this=even, expression=constant(float(_WEEK)), typed=False, safe=False), Type.INTEGER)
    low, high = (Fraction(math.trunc(end / _WEEK)) for end in (a - d, b - c))
    extent = ExpressionDomain(Type.INTEGER, low, high, optional=later.extent.optional or earlier.extent.optional)
    return BoundTree(tree, listed(extent, (later, earlier), lambda x, y: math.trunc((x - y).days / _WEEK)))


def _period(unit: str, when: exp.Expr) -> exp.Expr:
    """Return the number of the period that a day is in, in whole numbers: the same on every engine."""
    year = cast(function(exp.Year, when), Type.INTEGER)
    if unit == "YEAR":
        return year
    kind, many = (exp.Quarter, 4) if unit == "QUARTER" else (exp.Month, 12)
    part = cast(function(kind, when), Type.INTEGER)
    return operation(exp.Add, operation(exp.Mul, year, constant(many)), part)


_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = tuple(calendar.month_name[1:])


def _named(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand DAYNAME(d) and MONTHNAME(d), in English."""
    if isinstance(node, exp.Dayname):
        return _name(exp.DayOfWeek(this=node.this.copy()), dict(enumerate(_DAYS)), mean)
    return _name(exp.Month(this=node.this.copy()), dict(enumerate(_MONTHS, 1)), mean)


def _name(number: exp.Expr, names: dict[int, str], mean: Mean) -> BoundTree:
    part = mean(number)
    branches = [(operation(exp.EQ, part.tree, constant(place)), constant(name)) for place, name in names.items()]
    members = [each for each in part.extent.members() or () if isinstance(each, int)]
    extent = among(Type.TEXT, [names[each] for each in members], optional=part.extent.optional)
    return BoundTree(case(*branches), extent)


def _weekday(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand ISODOW(d): Monday is 1, Sunday 7."""
    moved = exp.Add(this=exp.DayOfWeek(this=node.this.copy()), expression=exp.Literal.number(6))
    from_zero = exp.Mod(this=exp.Paren(this=moved), expression=exp.Literal.number(7))
    return mean(exp.Add(this=exp.Paren(this=from_zero), expression=exp.Literal.number(1)))


_SIGNS: dict[str, tuple[int, int]] = {"Y": (1, 4), "m": (6, 2), "d": (9, 2)}
"""Where the parts of a date stand in 2020-12-31."""
_PATTERN = re.compile(r"%(.)|([^%]+)|(%)$", re.DOTALL)


def _written(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand STRFTIME(d, '%Y-%m'): a date in writing, of %Y, %m, %d and what stands between them."""
    when = moment(mean(node.this), "STRFTIME")
    pattern = str(sole(mean(node.args["format"]), "the pattern of STRFTIME"))
    signs = check_pattern(pattern)
    whole = cast(when.tree, Type.TEXT)
    parts = [constant(plain) if plain else _cut(whole, *_SIGNS[sign]) for sign, plain in signs]
    tree = parts[0]
    for part in parts[1:]:
        tree = exp.DPipe(this=tree, expression=part, safe=True)
    extent = texts(sum(len(plain) or _SIGNS[sign][1] for sign, plain in signs), optional=when.extent.optional)
    values = _spellings(when.extent, lambda each: _spelled(each, signs))
    return BoundTree(tree, extent if values is None else among(Type.TEXT, values, optional=when.extent.optional))


def check_pattern(pattern: str) -> list[tuple[str, str]]:
    """Return the parts of a pattern: a letter after %, or a text as it is; refuse one of other letters.

    >>> check_pattern("%Y/%m")
    [('Y', ''), ('', '/'), ('m', '')]
    """
    signs = [(sign, plain or end) for sign, plain, end in _PATTERN.findall(pattern)]
    if not signs or len(pattern) > _LONGEST or any(sign not in _SIGNS for sign, plain in signs if not plain):
        raise QuestionRefused(
            "STRFTIME writes %Y, %m and %d, such as '%Y-%m': for the rest use DATE_TRUNC, QUARTER(d), WEEK(d), "
            "DAYNAME(d) or MONTHNAME(d)."
        )
    return signs


def _cut(whole: exp.Expr, start: int, length: int) -> exp.Expr:
    return exp.Substring(this=whole.copy(), start=exp.Literal.number(start), length=exp.Literal.number(length))


def _spelled(when: date, signs: list[tuple[str, str]]) -> str:
    whole = when.isoformat()
    return "".join(plain or whole[_SIGNS[sign][0] - 1 :][: _SIGNS[sign][1]] for sign, plain in signs)


def _spellings(extent: ExpressionDomain, spell: Callable[[date], str]) -> list[str] | None:
    """Return how the days of a range are written, each once; None if they are many."""
    known = extent.values
    if known is None:
        low, high = (day(int(end)) for end in extent.ends)
        if (high - low).days > _MOST_DAYS:
            return None
        known = tuple(low + timedelta(days=number) for number in range((high - low).days + 1))
    return list(dict.fromkeys(spell(each) for each in known if isinstance(each, date)))


FUNCTIONS = (
    SqlFunction("ISODOW", exp.DayOfWeekIso, _weekday),
    SqlFunction("DAYNAME", exp.Dayname, _named),
    SqlFunction("MONTHNAME", exp.Monthname, _named),
    SqlFunction(
        "STRFTIME",
        exp.TimeToStr,
        _written,
        ("this", "format"),
        ("TO_CHAR",),
        on_answers=answers.written,
        types=AnswerTypes(Type.DATE, Type.TEXT),
    ),
)
