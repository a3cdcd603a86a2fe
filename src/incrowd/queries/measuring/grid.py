"""IntegerGrid: bounded numbers as whole numbers, so that sums are exact and noise can be added to them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter
from incrowd.queries.language.trees import copied
from incrowd.queries.question import Value

WIDEST = 2**30
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
            if reach / step <= WIDEST:
                return cls(center, step, int(reach / step))
        return cls(center, reach / DECIMALS, DECIMALS)


def grid_of(value: Value, *, centered: bool) -> IntegerGrid:
    """Return the grid of a value.

    >>> grid_of(Value("x", Type.INTEGER, Fraction(1), Fraction(5)), centered=True)
    IntegerGrid(center=Fraction(3, 1), step=Fraction(1, 1), width=2)
    """
    if value.low is None or value.high is None:
        raise InvalidParameter(
            f"{value.name} has no bounds, so one person could move its sum without limit. Write CLAMP(x, low, high)."
        )
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
