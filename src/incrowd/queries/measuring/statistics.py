"""Statistics: sums of bounded whole numbers over the rows of a group, from which counts, sums and means follow."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.core.unit import Kind, Unit
from incrowd.engines.sql.engine import is_stored
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.numbers import WIDEST
from incrowd.queries.language.trees import copied, name
from incrowd.queries.measuring.grid import WIDEST as WIDEST_STEP
from incrowd.queries.measuring.grid import (
    IntegerGrid,
    cast_to,
    clamp_number,
    double,
    grid_number,
    grid_of,
    round_number,
    whole_number,
)
from incrowd.queries.question import PERSON, Aggregate, AggregateKind, Question, Value

ROWS = "_rows"
"""What the rows of a question are called in the queries that collect statistics."""


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
    """The statistics of a question; a unit moves the vectors of all groups by `rows` widths in total at most.

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
        return next(i for i, each in enumerate(self.all) if each.of is Of.SUM and each.value == value)

    @property
    def widths(self) -> tuple[int, ...]:
        """How far one row moves each."""
        return tuple(each.width for each in self.all)


def statistics_of(question: Question, unit: Unit) -> Statistics:
    """Return what must be added up: each thing once, whatever number of aggregates is read off it.

    A sum of a value in [low, high] is held around the middle of the range where the number of rows is known anyway, and
    around zero where it is not: then one statistic is enough, and its noise is no larger.
    """
    needed: dict[Statistic, None] = {}
    sums: list[Value] = []
    for aggregate in question.aggregates:
        needed |= dict.fromkeys(_counts(aggregate, unit))
        if aggregate.kind is AggregateKind.SUM and aggregate.value not in sums:
            sums.append(_bounded(aggregate))
    counting = None if question.public_keys else _counting(needed, unit)
    if counting is not None:
        needed.setdefault(counting)
    centered = [_bounded(each) for each in question.aggregates if each.kind in _MOMENTS]
    centered += [value for value in sums if count_of(value) in needed]
    for value in dict.fromkeys([*centered, *sums]):
        needed.setdefault(Statistic(Of.SUM, value, grid_of(value, centered=value in centered)))
    for aggregate in question.aggregates:
        if aggregate.kind in (AggregateKind.VARIANCE, AggregateKind.DEVIATION):
            needed.setdefault(Statistic(Of.SQUARES, aggregate.value, grid_of(_bounded(aggregate), centered=True)))
    chosen = tuple(needed)
    only_people = all(each.of is Of.PEOPLE for each in chosen)
    reach = question.contribution.groups if only_people else question.contribution.rows
    return Statistics(chosen, reach, None if counting is None else chosen.index(counting))


def count_of(value: Value) -> Statistic:
    """Return the statistic that counts the rows where a value is not missing."""
    return Statistic(Of.PRESENT, value) if value.optional else Statistic(Of.ROWS)


def statistics_query(question: Question, statistics: Statistics) -> exp.Query:
    """Return the one query that adds up all statistics, group by group.

    From inside out: the rows; their numbers on the grid; these held within their widths; sums; sums held within 2^61.
    """
    inner, numbers = _numbered(question, statistics)
    sums = [
        exp.Alias(this=each.sql(copied(numbers.get(each.number, exp.Star()))), alias=name(f"_s{i}"))
        for i, each in enumerate(statistics.all)
    ]
    totals = exp.Select(expressions=[*_keys(question), *sums], from_=exp.From(this=_from(inner)))
    if question.keys:
        totals.set("group", exp.Group(expressions=_keys(question)))
    if all(each.counts for each in statistics.all):
        return totals
    last = [
        exp.column(f"_s{i}", quoted=True) if each.counts else _within_64_bits(f"_s{i}")
        for i, each in enumerate(statistics.all)
    ]
    return exp.Select(expressions=[*_keys(question), *last], from_=exp.From(this=_from(totals)))


def _numbered(
    question: Question, statistics: Statistics
) -> tuple[exp.Query, dict[tuple[Value, IntegerGrid] | None, exp.Expression]]:
    """Return the rows, and the SQL of their numbers on the grid, held within their widths.

    Numbers of a column that holds whole ones are computed where they are added up.
    """
    squares = {each.number for each in statistics.all if each.of is Of.SQUARES}
    numbers: dict[tuple[Value, IntegerGrid] | None, exp.Expression] = {}
    levels: tuple[list[exp.Expr], list[exp.Expr]] = ([], [])
    for pair in dict.fromkeys(each.number for each in statistics.all if each.number):
        value, grid = pair
        stored = value.type is Type.INTEGER and pair not in squares and is_stored(question.rows, value.name)
        whole = whole_number(value, grid) if stored else None
        raw, safe = f"_z{len(numbers)}", f"_c{len(numbers)}"
        numbers[pair] = exp.column(safe, quoted=True) if whole is None else whole
        if whole is None:
            z = exp.column(raw, quoted=True)
            levels[0].append(exp.Alias(this=grid_number(value, grid), alias=name(raw)))
            levels[1].append(exp.Alias(this=clamp_number(z, double(Fraction(grid.width))), alias=name(safe)))
    inner: exp.Query = copied(question.rows)
    for level in filter(None, levels):
        inner = exp.Select(expressions=[exp.Star(), *level], from_=exp.From(this=_from(inner)))
    return inner, numbers


def named(query: exp.Query) -> exp.Subquery:
    """Return a copy of a query as something to select from."""
    return _from(copied(query))


def _from(query: exp.Query) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(ROWS, quoted=True)))


def _keys(question: Question) -> list[exp.Expression]:
    return [exp.column(key.name, quoted=True) for key in question.keys]


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
            if unit.kind is not Kind.PERSON:
                raise InvalidParameter("people can be counted only where the unit of privacy is a person.")
            return (Statistic(Of.PEOPLE, aggregate.value),)
        case AggregateKind.DISTINCT:
            return (Statistic(Of.DISTINCT, _value_of(aggregate)),)
        case AggregateKind.COUNT | AggregateKind.MEAN | AggregateKind.VARIANCE | AggregateKind.DEVIATION:
            return (count_of(_value_of(aggregate)),)
    return ()


def _counting(needed: dict[Statistic, None], unit: Unit) -> Statistic:
    for known in (Statistic(Of.PEOPLE), Statistic(Of.ROWS)):
        if known in needed:
            return known
    return Statistic(Of.PEOPLE if unit.kind is Kind.PERSON else Of.ROWS)


def _value_of(aggregate: Aggregate) -> Value:
    if aggregate.value is None:
        raise InvalidParameter(f"{aggregate.kind} needs a value.")
    return aggregate.value


def _bounded(aggregate: Aggregate) -> Value:
    value = _value_of(aggregate)
    if value.low is None or value.high is None:
        raise InvalidParameter(
            f"the {aggregate.kind} of a value without bounds could show one person. Write CLAMP(x, low, high) in it."
        )
    return value
