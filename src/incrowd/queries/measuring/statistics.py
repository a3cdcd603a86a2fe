"""Statistics: sums of bounded whole numbers over the rows of a group, from which counts, sums and means follow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.core.unit import Unit
from incrowd.engines.sql.engine import is_stored
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.numbers import WIDEST
from incrowd.queries.language.trees import copied, name
from incrowd.queries.query import PERSON, Aggregate, AggregateKind, Query, Value

WIDEST_STEP = 2**30
"""Whole numbers up to this, on either side: a table of eight billion rows keeps its sums within 64 bits."""

DECIMALS = 2**24
"""Decimal numbers are held to this many steps on either side of the center."""

_EXACT = 2**50
"""Doubles hold whole numbers and halves up to this exactly, and their sums."""


@dataclass(frozen=True)
class IntegerGrid:
    """A number x in its range becomes z = (x − center) / step, rounded, a whole number between −width and width.

    Whole numbers keep their values exactly, unless their range is wider than 2^31.

    >>> IntegerGrid.of(Fraction(0), Fraction(1), whole=True, centered=True)
    IntegerGrid(center=Fraction(1, 2), step=Fraction(1, 2), width=1)
    >>> IntegerGrid.of(Fraction(0), Fraction(200_000), whole=True, centered=True).width
    100000
    """

    center: Fraction
    step: Fraction
    width: int

    @classmethod
    def of(cls, low: Fraction, high: Fraction, *, whole: bool, centered: bool) -> IntegerGrid:
        """Return the grid of a range, around its middle or around zero."""
        if low > high:
            raise InvalidParameter("bounds run from low to high.")
        center = (low + high) / 2 if centered else Fraction(0)
        reach = max(high - center, center - low)
        if reach == 0:
            return cls(center, Fraction(1), 1)
        if whole and low.denominator == 1 and high.denominator == 1:
            step = Fraction(1, center.denominator)
            if reach / step <= WIDEST_STEP:
                return cls(center, step, int(reach / step))
        return cls(center, reach / DECIMALS, DECIMALS)


def grid_of(value: Value, *, centered: bool) -> IntegerGrid:
    """Return the grid of a value.

    >>> grid_of(Value("x", Type.INTEGER, Fraction(1), Fraction(5)), centered=True)
    IntegerGrid(center=Fraction(3, 1), step=Fraction(1, 1), width=2)
    """
    if value.low is None or value.high is None:
        raise InvalidParameter(f"{value.name} has no bounds: write CLAMP(x, low, high).")
    return IntegerGrid.of(value.low, value.high, whole=value.type is not Type.DECIMAL, centered=centered)


def grid_number(value: Value, grid: IntegerGrid) -> exp.Expression:
    """Return the SQL of (x − center) / step, rounded to a whole double; NULL where the value is missing.

    Dates count days since 1970-01-01, truth values are 0 and 1.
    """
    number: exp.Expression = exp.column(value.name, quoted=True)
    if value.type is Type.DATE:
        start = exp.cast(exp.Literal.string("1970-01-01"), "DATE")
        number = exp.DateDiff(this=number, expression=start, unit=exp.var("DAY"))
    return round_number(exp.Sub(this=cast_to(number, "DOUBLE"), expression=double(grid.center)), grid.step)


def whole_number(value: Value, grid: IntegerGrid) -> exp.Expression | None:
    """Return the SQL of (x − center) / step, held between −width and width, for an x that is a BIGINT; NULL for NULL.

    It is computed in whole numbers, and is the number that `grid_number` and `clamp_number` give for every BIGINT: all
    that those compute for an x near the range is exact in doubles, and an x beyond is held at the same end.  An x
    outside the range is compared and not computed with, so nothing overflows.  None where the grid has no such form.

    >>> grid = IntegerGrid.of(Fraction(0), Fraction(99), whole=True, centered=True)
    >>> whole_number(Value("x", Type.INTEGER), grid).sql("duckdb")
    'CASE WHEN "x" > 99 THEN 99 WHEN "x" < 0 THEN -99 ELSE "x" * 2 - 99 END'
    """
    start, steps = grid.center / grid.step, 1 / grid.step
    if start.denominator != 1 or steps not in (1, 2) or abs(start) + grid.width > _EXACT:
        return None
    low, high = math.ceil((start - grid.width) / steps), math.floor((start + grid.width) / steps)
    x = exp.column(value.name, quoted=True)
    inside: exp.Expression = x.copy() if steps == 1 else exp.Mul(this=x.copy(), expression=_whole(2))
    if start:
        inside = (exp.Sub if start > 0 else exp.Add)(this=inside, expression=_whole(abs(int(start))))
    above = exp.If(this=exp.GT(this=x.copy(), expression=_whole(high)), true=_whole(grid.width))
    below = exp.If(this=exp.LT(this=x, expression=_whole(low)), true=_whole(-grid.width))
    return exp.Case(ifs=[above, below], default=inside)


def round_number(number: exp.Expression, step: Fraction) -> exp.Expression:
    """Return the SQL of a double divided by a step and rounded, halves up: engines differ on them in ROUND."""
    divided = exp.Div(this=exp.paren(number), expression=double(step), typed=False, safe=False)
    return exp.Floor(this=exp.Add(this=divided, expression=double(Fraction(1, 2))))


def clamp_number(number: exp.Expression, width: exp.Expression) -> exp.Expression:
    """Return the SQL of a number held between −width and width; NULL where it is missing.

    What is no number at all compares as the greatest, and is held at the width.
    """
    lowest = exp.Neg(this=width)
    sides = ((exp.GT, width), (exp.LT, lowest))
    ifs = [exp.If(this=kind(this=copied(number), expression=copied(end)), true=copied(end)) for kind, end in sides]
    return exp.Case(ifs=ifs, default=copied(number))


def _whole(number: int) -> exp.Expression:
    literal = exp.Literal.number(abs(number))
    return literal if number >= 0 else exp.Neg(this=literal)


def cast_to(number: exp.Expression, kind: str) -> exp.Expression:
    """Return the SQL of a number as another type; `exp.cast` would parse the name of the type each time."""
    return exp.Cast(this=number, to=exp.DataType(this=exp.DataType.Type[kind]))


def double(number: Fraction) -> exp.Expression:
    """Return the SQL of a number as a double."""
    literal = cast_to(exp.Literal.number(repr(float(abs(number)))), "DOUBLE")
    return literal if number >= 0 else exp.Neg(this=literal)


ROWS = "_rows"
"""What the rows of a query are called in the queries that collect statistics."""


class Of(StrEnum):
    """What a statistic adds up."""

    ROWS = "rows"
    PRESENT = "present"  # rows whose value is not missing
    PEOPLE = "people"  # with a row in which the value, if there is one, is not missing
    DISTINCT = "distinct"  # values that differ: one row more or less adds or takes away one of them at most
    SUM = "sum"  # of z
    SQUARES = "squares"  # of (2 z² − width²) / coarse


@dataclass(frozen=True)
class Statistic:
    """One whole number per group, moved by one row of a unit by at most `width`."""

    of: Of
    value: Value | None = None
    grid: IntegerGrid | None = None

    @property
    def width(self) -> int:
        """How far one row moves it at most."""
        if self.grid is None:
            return 1
        if self.of is Of.SQUARES:
            return int(self.grid.width**2 / self.coarse)
        return self.grid.width

    @property
    def number(self) -> tuple[Value, IntegerGrid] | None:
        """The number of each row that is added up, if it is one."""
        return None if self.value is None or self.grid is None else (self.value, self.grid)

    @property
    def coarse(self) -> Fraction:
        """The steps in which squares are counted, so that their sums stay within 64 bits."""
        width = 1 if self.grid is None else self.grid.width
        return max(Fraction(1), Fraction(width**2, WIDEST_STEP))

    @property
    def counts(self) -> bool:
        """Whether it counts: there are never 2^61 rows to count, while a sum is held within that."""
        return self.of not in (Of.SUM, Of.SQUARES)

    def sql(self, z: exp.Expression) -> exp.Expression:
        """Return the SQL that adds it up over the rows of a group, where `z` is a whole number, if it adds up such."""
        match self.of:
            case Of.ROWS:
                return exp.Count(this=exp.Star())
            case Of.PEOPLE:
                return exp.Count(this=exp.Distinct(expressions=[self._person]))
            case Of.PRESENT:
                return exp.Count(this=self._column)
            case Of.DISTINCT:
                return exp.Count(this=exp.Distinct(expressions=[self._column]))
        if self.of is Of.SQUARES:
            twice = exp.Mul(this=exp.Mul(this=double(Fraction(2)), expression=z), expression=z.copy())
            z = round_number(
                exp.Sub(this=twice, expression=double(Fraction((1 if self.grid is None else self.grid.width) ** 2))),
                self.coarse,
            )
        return exp.Sum(this=z if isinstance(z, exp.Case) else cast_to(z, "BIGINT"))

    @property
    def _column(self) -> exp.Column:
        return exp.column("" if self.value is None else self.value.name, quoted=True)

    @property
    def _person(self) -> exp.Expression:
        """The person of a row; nobody, where the value is missing."""
        person = exp.column(PERSON, quoted=True)
        if self.value is None:
            return person
        there = exp.Not(this=exp.Is(this=self._column, expression=exp.Null()))
        return exp.Case(ifs=[exp.If(this=there, true=person)])


@dataclass(frozen=True)
class Statistics:
    """The statistics of a query; a unit moves the vectors of all groups by `rows` widths in total at most.

    `counting` is the place of the statistic that tells whether a group that nobody listed has more than one person.
    """

    all: tuple[Statistic, ...]
    rows: int
    counting: int | None = None

    def place(self, statistic: Statistic) -> int:
        """Return the coordinate of a statistic."""
        return self.all.index(statistic)

    def present(self, value: Value) -> int:
        """Return the coordinate that counts the rows whose value is not missing."""
        return self.place(count_of(value))

    def total(self, value: Value) -> int:
        """Return the coordinate that adds up a value."""
        return next(i for i, statistic in enumerate(self.all) if statistic.of is Of.SUM and statistic.value == value)

    @property
    def widths(self) -> tuple[int, ...]:
        """How far one row moves each."""
        return tuple(statistic.width for statistic in self.all)


def statistics_of(query: Query, unit: Unit) -> Statistics:
    """Return what must be added up: each thing once, whatever number of aggregates is read off it.

    A sum of a value in [low, high] is held around the middle of the range where the number of rows is known anyway, and
    around zero where it is not: then one statistic is enough, and its noise is no larger.
    """
    needed: dict[Statistic, None] = {}
    sums: list[Value] = []
    for aggregate in query.aggregates:
        needed |= dict.fromkeys(_counts(aggregate, unit))
        if aggregate.kind is AggregateKind.SUM and aggregate.value not in sums:
            sums.append(_bounded(aggregate))
    counting = None if query.public_keys else _counting(needed, unit)
    if counting is not None:
        needed.setdefault(counting)
    centered = [_bounded(aggregate) for aggregate in query.aggregates if aggregate.kind in _MOMENTS]
    centered += [value for value in sums if count_of(value) in needed]
    for value in dict.fromkeys([*centered, *sums]):
        needed.setdefault(Statistic(Of.SUM, value, grid_of(value, centered=value in centered)))
    for aggregate in query.aggregates:
        if aggregate.kind in (AggregateKind.VARIANCE, AggregateKind.DEVIATION):
            needed.setdefault(Statistic(Of.SQUARES, aggregate.value, grid_of(_bounded(aggregate), centered=True)))
    chosen = tuple(needed)
    only_people = all(statistic.of is Of.PEOPLE for statistic in chosen)
    reach = query.contribution.groups if only_people else query.contribution.rows
    return Statistics(chosen, reach, None if counting is None else chosen.index(counting))


def count_of(value: Value) -> Statistic:
    """Return the statistic that counts the rows where a value is not missing."""
    return Statistic(Of.PRESENT, value) if value.optional else Statistic(Of.ROWS)


def statistics_query(query: Query, statistics: Statistics) -> exp.Query:
    """Return the one query that adds up all statistics, group by group.

    From inside out: the rows; their numbers on the grid; these held within their widths; sums; sums held within 2^61.
    """
    inner, numbers = _numbered(query, statistics)
    sums = [
        exp.Alias(this=statistic.sql(copied(numbers.get(statistic.number, exp.Star()))), alias=name(f"_s{i}"))
        for i, statistic in enumerate(statistics.all)
    ]
    totals = exp.Select(expressions=[*_keys(query), *sums], from_=exp.From(this=_from(inner)))
    if query.keys:
        totals.set("group", exp.Group(expressions=_keys(query)))
    if all(statistic.counts for statistic in statistics.all):
        return totals
    last = [
        exp.column(f"_s{i}", quoted=True) if statistic.counts else _within_64_bits(f"_s{i}")
        for i, statistic in enumerate(statistics.all)
    ]
    return exp.Select(expressions=[*_keys(query), *last], from_=exp.From(this=_from(totals)))


def _numbered(
    query: Query, statistics: Statistics
) -> tuple[exp.Query, dict[tuple[Value, IntegerGrid] | None, exp.Expression]]:
    """Return the rows, and the SQL of their numbers on the grid, held within their widths.

    Numbers of a column that holds whole ones are computed where they are added up.
    """
    squares = {statistic.number for statistic in statistics.all if statistic.of is Of.SQUARES}
    numbers: dict[tuple[Value, IntegerGrid] | None, exp.Expression] = {}
    levels: tuple[list[exp.Expr], list[exp.Expr]] = ([], [])
    for pair in dict.fromkeys(statistic.number for statistic in statistics.all if statistic.number):
        value, grid = pair
        stored = value.type is Type.INTEGER and pair not in squares and is_stored(query.rows, value.name)
        whole = whole_number(value, grid) if stored else None
        raw, safe = f"_z{len(numbers)}", f"_c{len(numbers)}"
        numbers[pair] = exp.column(safe, quoted=True) if whole is None else whole
        if whole is None:
            z = exp.column(raw, quoted=True)
            levels[0].append(exp.Alias(this=grid_number(value, grid), alias=name(raw)))
            levels[1].append(exp.Alias(this=clamp_number(z, double(Fraction(grid.width))), alias=name(safe)))
    inner: exp.Query = copied(query.rows)
    for level in filter(None, levels):
        inner = exp.Select(expressions=[exp.Star(), *level], from_=exp.From(this=_from(inner)))
    return inner, numbers


def named(query: exp.Query) -> exp.Subquery:
    """Return a copy of a query as something to select from."""
    return _from(copied(query))


def _from(query: exp.Query) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(ROWS, quoted=True)))


def _keys(query: Query) -> list[exp.Expression]:
    return [exp.column(key.name, quoted=True) for key in query.keys]


def _within_64_bits(total: str) -> exp.Alias:
    """Return the SQL of a sum that is held within 2^61; without any number to add up it is 0."""
    safe = clamp_number(exp.column(total, quoted=True), exp.Literal.number(WIDEST))
    whole = exp.Coalesce(this=safe, expressions=[exp.Literal.number(0)])
    return exp.Alias(this=cast_to(whole, "BIGINT"), alias=name(total))


_MOMENTS = (AggregateKind.MEAN, AggregateKind.VARIANCE, AggregateKind.DEVIATION)


def _counts(aggregate: Aggregate, unit: Unit) -> tuple[Statistic, ...]:
    match aggregate.kind:
        case AggregateKind.ROWS:
            return (Statistic(Of.ROWS),)
        case AggregateKind.PEOPLE:
            if not unit.kind.of_people:
                raise InvalidParameter("people can be counted only where the unit of privacy is a person.")
            return (Statistic(Of.PEOPLE, aggregate.value),)
        case AggregateKind.DISTINCT:
            return (Statistic(Of.DISTINCT, aggregate.needed_value),)
        case AggregateKind.COUNT | AggregateKind.MEAN | AggregateKind.VARIANCE | AggregateKind.DEVIATION:
            return (count_of(aggregate.needed_value),)
    return ()


def _counting(needed: dict[Statistic, None], unit: Unit) -> Statistic:
    for statistic in (Statistic(Of.PEOPLE), Statistic(Of.ROWS)):
        if statistic in needed:
            return statistic
    return Statistic(Of.PEOPLE if unit.kind.of_people else Of.ROWS)


def _bounded(aggregate: Aggregate) -> Value:
    value = aggregate.needed_value
    if value.low is None or value.high is None:
        raise InvalidParameter(f"the {aggregate.kind} needs a value with bounds: write CLAMP(x, low, high).")
    return value
