"""Declared: each value of a table is brought into what was declared about its column, row by row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import Any

import pyarrow as pa
from sqlglot import exp

from incrowd.core.domain import Categories, Dates, Numbers, Type
from incrowd.core.reading import parse
from incrowd.core.schema import OTHER, Column, Missing, Outside
from incrowd.queries.language.casts import GREATEST_DOUBLE
from incrowd.queries.language.extent import FIRST, LAST, BoundTree, Constant, Extent, among, days, texts, truth
from incrowd.queries.language.trees import between, case, column, constant, missing, null, operand, operation

BASE = "t0"
"""The name of a table as it was before its columns were brought into what was declared."""


@dataclass(frozen=True)
class Cleaned:
    """What a column means, and the conditions on which its row takes part at all."""

    meaning: BoundTree
    keeps: tuple[exp.Expr, ...] = ()


def cleaned(declared: Column) -> Cleaned:
    """Return a column after its own rules for missing values and for values outside its domain.

    The engine delivers whole numbers as BIGINT, decimals as DOUBLE, dates as DATE, truth values as BOOLEAN and texts
    as VARCHAR, NULL where a value is missing or cannot be read.  Infinite and undefined decimals count as missing, as
    do dates outside the years 1 to 9999.  A value outside the domain whose rule is `other` is the text other; where
    the type has no such value, it is missing.

    >>> from incrowd.core.hierarchy.flat import Flat
    >>> cleaned(Column("age", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 99)))).meaning.extent.ends
    (Fraction(0, 1), Fraction(99, 1))
    """
    raw = column(declared.name, BASE)
    absent = _absent(raw, declared)
    outside = _outside(raw, declared)
    keeps: list[exp.Expr] = [exp.Not(this=operand(absent))] if declared.missing == Missing.DROP else []
    if outside is not None and declared.rule_outside is Outside.DROP:
        keeps.append(exp.Or(this=operand(absent), expression=exp.Not(this=operand(outside))))
    branches = [*_filled(absent, declared), *_moved(outside, declared)]
    tree = case(*branches, default=raw) if branches else raw
    return Cleaned(BoundTree(tree, _extent(declared, open_ended=outside is not None)), tuple(keeps))


def value_of(written: str, kind: Type) -> Constant:
    """Return a value that was declared as text, in its type.

    >>> value_of("5", Type.INTEGER), value_of("true", Type.BOOLEAN)
    (5, True)
    """
    stored = parse(written, kind)
    if kind is Type.BOOLEAN:
        return stored == "true"
    found: Any = pa.scalar(stored, kind.storage).as_py()
    constant_value: Constant = found
    return constant_value


def _absent(raw: exp.Expr, declared: Column) -> exp.Expr:
    """Return the condition that nothing usable is there."""
    gone = missing(raw)
    if declared.type is Type.DECIMAL:
        endless = operation(exp.GT, exp.Abs(this=raw.copy()), constant(GREATEST_DOUBLE))
        return exp.Or(this=gone, expression=endless)
    if declared.type is Type.DATE:
        return exp.Or(this=gone, expression=exp.Not(this=operand(between(raw, constant(FIRST), constant(LAST)))))
    return gone


def _inside(declared: Column) -> Extent:
    """Return the extent of a column's domain."""
    domain, kind = declared.domain, declared.type
    if isinstance(domain, Categories):
        return among(kind, [value_of(value, kind) for value in domain.values], optional=True)
    if isinstance(domain, Numbers):
        return Extent(kind, *domain.bounds)
    if isinstance(domain, Dates):
        low, high = domain.bounds
        return Extent(kind, Fraction(days(low or FIRST)), Fraction(days(high or LAST)))
    return truth(optional=True) if kind is Type.BOOLEAN else texts(None, optional=True)


def _outside(raw: exp.Expr, declared: Column) -> exp.Expr | None:
    """Return the condition that a present value is outside the domain, or None if none can be."""
    domain, kind = declared.domain, declared.type
    if isinstance(domain, Categories):
        if kind is Type.BOOLEAN and len(domain.values) == 2:
            return None
        values = [constant(value_of(value, kind)) for value in domain.values]
        return exp.Not(this=exp.In(this=raw.copy(), expressions=values))
    if not isinstance(domain, Numbers | Dates) or not domain.closed:
        return None
    low, high = _ends(declared)
    sides = [operation(exp.LT, raw, constant(low))] if low is not None else []
    sides += [operation(exp.GT, raw, constant(high))] if high is not None else []
    return sides[0] if len(sides) == 1 else exp.Or(this=sides[0], expression=sides[1])


def _ends(declared: Column) -> tuple[int | float | date | None, int | float | date | None]:
    domain = declared.domain
    if isinstance(domain, Dates):
        return domain.bounds
    if not isinstance(domain, Numbers):
        raise TypeError
    kind = int if declared.type is Type.INTEGER else float
    low, high = domain.bounds
    return (None if low is None else kind(low)), (None if high is None else kind(high))


def _filled(absent: exp.Expr, declared: Column) -> list[tuple[exp.Expr, exp.Expr]]:
    """Return what stands for a missing value."""
    if declared.fill is not None:
        return [(absent, constant(value_of(declared.fill, declared.type)))]
    return [] if isinstance(absent, exp.Is) else [(absent, null())]


def _moved(outside: exp.Expr | None, declared: Column) -> list[tuple[exp.Expr, exp.Expr]]:
    """Return what stands for a value outside the domain."""
    if outside is None or declared.rule_outside is Outside.DROP:
        return []
    if declared.rule_outside is Outside.OTHER:
        return [(outside, constant(OTHER) if declared.type is Type.TEXT else null())]
    raw = column(declared.name, BASE)
    ends = zip(_ends(declared), (exp.LT, exp.GT), strict=True)
    return [(operation(kind, raw, constant(end)), constant(end)) for end, kind in ends if end is not None]


def _extent(declared: Column, *, open_ended: bool) -> Extent:
    """Return what a column can be after its rules."""
    extent = replace(_inside(declared), optional=declared.missing != Missing.DROP and declared.fill is None)
    if not open_ended or declared.rule_outside is not Outside.OTHER:
        return extent
    if declared.type is Type.TEXT:
        return among(Type.TEXT, (*(extent.values or ()), OTHER), optional=extent.optional)
    return replace(extent, optional=True)
