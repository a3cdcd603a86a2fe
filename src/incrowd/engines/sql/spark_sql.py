"""Questions in the SQL of Spark, with the same results, and no error that a row could cause."""

from __future__ import annotations

from sqlglot import exp

from incrowd.engines.sql.dialect import (
    Rewriting,
    no_decimal_as_text,
    no_try_cast,
    rewritten,
    rounded_at_digits,
)

_LOW_BITS = 20


def in_spark(query: exp.Query) -> exp.Query:
    """Return a tree for Spark.

    >>> from sqlglot import parse_one
    >>> in_spark(parse_one("SELECT ROUND(x, 1)", dialect="duckdb")).sql("spark")
    'SELECT (ROUND((x) * CAST(10.0 AS DOUBLE)) / CAST(10.0 AS DOUBLE))'
    """
    return rewritten(query, _RULES)


def _total(node: exp.Expr) -> exp.Expr:
    """Add up whole numbers without overflow, as 64-bit sums of their low 20 bits and of the rest.

    Addends are below 2^50, so either sum stays within 64 bits for 2^33 addends of that size, and for 2^43 of the
    numbers that questions add up over all rows, which are below 2^30.  x = (x >> 20) · 2^20 + (x & (2^20 − 1)) for
    negative numbers, too.
    """
    addend = node.this
    shifted = exp.Anonymous(this="SHIFTRIGHT", expressions=[addend.copy(), exp.Literal.number(_LOW_BITS)])
    low = exp.BitwiseAnd(this=exp.paren(addend.copy()), expression=exp.Literal.number(2**_LOW_BITS - 1))
    wide = [exp.cast(exp.Sum(this=part), "DECIMAL(38, 0)") for part in (shifted, low)]
    scaled = exp.Mul(this=wide[0], expression=exp.Literal.number(2**_LOW_BITS))
    return exp.paren(exp.Add(this=scaled, expression=wide[1]))


def _rounded(node: exp.Expr) -> exp.Expr:
    """Round as Spark does without digits: halves away from zero, and nothing but halves is taken for one."""
    return rounded_at_digits(node, lambda number: exp.Round(this=number))


def _day_of_week(node: exp.Expr) -> exp.Expr:
    """Count days of the week from 0, Sunday, where Spark begins with 1."""
    return exp.paren(exp.Sub(this=node, expression=exp.Literal.number(1)))


def _first_day(node: exp.Expr) -> exp.Expr:
    """Return the first day of a period, as a date: no time zone has a say in it."""
    unit, when = node.args["unit"].name.upper(), exp.paren(node.this)
    if unit == "DAY":
        return when
    return exp.Anonymous(this="TRUNC", expressions=[when, exp.Literal.string(unit)])


_RULES: dict[type[exp.Expr], Rewriting] = {
    exp.TryCast: no_try_cast,
    exp.Cast: no_decimal_as_text,
    exp.Sum: _total,
    exp.Round: _rounded,
    exp.DayOfWeek: _day_of_week,
    exp.TimestampTrunc: _first_day,
    exp.DateTrunc: _first_day,
}
