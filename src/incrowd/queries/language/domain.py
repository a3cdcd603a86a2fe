"""Domain: the public set in which the values of an expression lie, known before a row is read."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from incrowd.core.domain import Type

if TYPE_CHECKING:
    from sqlglot import exp

Constant = int | float | str | bool | date
"""A value that is not missing, as Python writes it."""

EPOCH = date(1970, 1, 1)
FIRST, LAST = date.min, date.max

LISTED = 4096
"""An expression that can take more values than this is known by its range alone."""

NUMERIC = (Type.INTEGER, Type.DECIMAL)


@dataclass(frozen=True)
class ExpressionDomain:
    """What an expression can be: its type, its range, its values where they can be listed; and whether it can lack one.

    Numbers lie in [low, high]; None means that side is open.  Dates are counted in days since 1970-01-01 there.
    `values` lists all that are not missing, sorted; `rest` is the one that stands for all values which nobody declared.
    `longest` bounds the characters of a text.

    >>> whole(3, 5).members()
    (3, 4, 5)
    """

    type: Type
    low: Fraction | None = None
    high: Fraction | None = None
    values: tuple[Constant, ...] | None = None
    optional: bool = True
    longest: int | None = None
    rest: Constant | None = None

    @property
    def bounded(self) -> bool:
        """Whether both ends of its range are known."""
        return self.low is not None and self.high is not None

    @property
    def numeric(self) -> bool:
        """Whether it is a number."""
        return self.type in NUMERIC

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Both ends of a bounded range."""
        if self.low is None or self.high is None:
            raise AssertionError
        return self.low, self.high

    def members(self, at_most: int = LISTED) -> tuple[Constant, ...] | None:
        """Return all values that are not missing, or None where there are too many, or no end of them."""
        if self.values is not None:
            return self.values if len(self.values) <= at_most else None
        if self.type is Type.BOOLEAN:
            return (False, True)
        if self.type not in (Type.INTEGER, Type.DATE) or self.low is None or self.high is None:
            return None
        numbers = range(math.ceil(self.low), math.floor(self.high) + 1)
        if len(numbers) > at_most:
            return None
        return tuple(numbers) if self.type is Type.INTEGER else tuple(day(number) for number in numbers)


@dataclass(frozen=True)
class BoundTree:
    """A bound expression: a tree that no row can make fail, and the set in which its values lie."""

    tree: exp.Expr
    extent: ExpressionDomain

    @property
    def type(self) -> Type:
        """The type of its values."""
        return self.extent.type

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Both ends of the range of its values."""
        return self.extent.ends

    @property
    def optional(self) -> bool:
        """Whether its value can be missing."""
        return self.extent.optional

    @property
    def values(self) -> tuple[Constant, ...] | None:
        """The values that it can have, where they are listed."""
        return self.extent.values

    @classmethod
    def of(
        cls,
        tree: exp.Expr,
        extent: ExpressionDomain,
        parts: Sequence[BoundTree],
        compute: Callable[..., Constant | None],
    ) -> BoundTree:
        """Return a function of parts: of values that can be listed, its values are computed from theirs."""
        return cls(tree, listed(extent, parts, compute))


MIDNIGHT = re.compile(r"(?P<day>\d{4}-\d{2}-\d{2})(?:[T ]00:00(?::00(?:\.0+)?)?(?:Z|[+-]00(?::?00)?)?)?", re.ASCII)
"""A day as it is written, also with the time at which it begins."""


def day(number: int) -> date:
    """Return the date that many days after 1970-01-01.

    >>> day(-1)
    datetime.date(1969, 12, 31)
    """
    return EPOCH + timedelta(days=number)


def days(when: date) -> int:
    """Return the number of days from 1970-01-01 to a date.

    >>> days(date(1970, 1, 11))
    10
    """
    return (when - EPOCH).days


def whole(low: int | None, high: int | None, *, optional: bool = False) -> ExpressionDomain:
    """Return the domain of whole numbers between two ends.

    >>> whole(None, 5).bounded
    False
    """
    start, end = (None if side is None else Fraction(side) for side in (low, high))
    return ExpressionDomain(Type.INTEGER, start, end, optional=optional)


def decimals(low: Fraction, high: Fraction, *, optional: bool) -> ExpressionDomain:
    """Return the domain of decimals between two ends, each taken as its nearest double.

    An operation of doubles returns the double nearest to the exact result, and rounding to the nearest is monotone.
    So if the arguments lie between doubles, the result lies between the rounded ends of the exact range: the range
    holds what the engine computes, not only what mathematics would.

    >>> float(decimals(Fraction(1, 10), Fraction(1, 3), optional=False).ends[0])
    0.1
    """
    return ExpressionDomain(Type.DECIMAL, Fraction(float(low)), Fraction(float(high)), optional=optional)


def truth(*, optional: bool) -> ExpressionDomain:
    """Return the domain of a condition.

    >>> truth(optional=False).members()
    (False, True)
    """
    return ExpressionDomain(Type.BOOLEAN, values=(False, True), optional=optional)


def calendar(*, optional: bool) -> ExpressionDomain:
    """Return the domain of any date of the calendar, from year 1 to 9999.

    >>> day(int(calendar(optional=True).ends[1]))
    datetime.date(9999, 12, 31)
    """
    return ExpressionDomain(Type.DATE, Fraction(days(FIRST)), Fraction(days(LAST)), optional=optional)


def texts(longest: int | None, *, optional: bool) -> ExpressionDomain:
    """Return the domain of any text up to a length.

    >>> texts(5, optional=True).members() is None
    True
    """
    return ExpressionDomain(Type.TEXT, optional=optional, longest=longest)


def among(kind: Type, values: Sequence[Constant], *, optional: bool) -> ExpressionDomain:
    """Return the domain of a list of values.

    >>> among(Type.TEXT, ("b", "a"), optional=False).values
    ('a', 'b')
    """
    unique: tuple[Any, ...] = tuple(sorted(set(values)))
    low = high = longest = None
    if unique and kind in NUMERIC:
        low, high = Fraction(unique[0]), Fraction(unique[-1])
    if unique and kind is Type.DATE:
        low, high = Fraction(days(unique[0])), Fraction(days(unique[-1]))
    if kind is Type.TEXT:
        longest = max((len(str(value)) for value in unique), default=0)
    return ExpressionDomain(kind, low, high, unique, optional, longest)


def listed(
    extent: ExpressionDomain, parts: Sequence[BoundTree], compute: Callable[..., Constant | None]
) -> ExpressionDomain:
    """Return the domain narrowed to the values that a function takes on the listed values of its arguments.

    `compute` does in Python what the engine does from arguments that are all present.  Should the two differ
    on some value, that value is met by no declared group: an answer loses rows by it, nobody's privacy.
    """
    members = [part.extent.members() for part in parts]
    choices = [values for values in members if values is not None]
    if len(choices) < len(members) or math.prod(len(values) for values in choices) > LISTED:
        return extent
    results = [compute(*arguments) for arguments in itertools.product(*choices)]
    values = [value for value in results if value is not None]
    if not values:
        return replace(extent, optional=True)
    return among(extent.type, values, optional=extent.optional or len(values) < len(results))


def hull(extents: Sequence[ExpressionDomain], *, optional: bool) -> ExpressionDomain:
    """Return the least domain that holds several of one kind; whole numbers and decimals together are decimals.

    >>> hull([whole(1, 2), whole(5, 9)], optional=False).ends
    (Fraction(1, 1), Fraction(9, 1))
    """
    kinds = {extent.type for extent in extents}
    kind = next(iter(kinds)) if len(kinds) == 1 else Type.DECIMAL
    members = [extent.members() for extent in extents]
    lists = [values for values in members if values is not None]
    if len(lists) == len(members) and sum(len(values) for values in lists) <= LISTED:
        values = [float(value) if kind is Type.DECIMAL else value for value in itertools.chain(*lists)]  # type: ignore[arg-type]
        return among(kind, values, optional=optional)
    lows, highs = [extent.low for extent in extents], [extent.high for extent in extents]
    lengths = [extent.longest for extent in extents]
    return ExpressionDomain(
        kind,
        None if None in lows else min(low for low in lows if low is not None),
        None if None in highs else max(high for high in highs if high is not None),
        optional=optional,
        longest=None if None in lengths else max(length for length in lengths if length is not None),
    )
