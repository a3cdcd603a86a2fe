"""Questions in the SQL of PostgreSQL, with the same results, and no error that a row could cause."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from incrowd.engines.sql.dialect import (
    Rewriting,
    no_decimal_as_text,
    no_try_cast,
    rewritten,
    rounded_at_digits,
)
from incrowd.errors import QuestionRefused

_FLOOD = 1e-140
_SAFE_DAYS = 1_700_000
_EPOCH = "1970-01-01"
_CALENDAR = (-719_163, 2_932_897)
"""The days before and after the calendar of years 1 to 9999, counted from 1970."""


def in_postgres(query: exp.Query) -> exp.Query:
    """Return a tree for PostgreSQL; it selects from subqueries that say the types of their columns.

    >>> from sqlglot import parse_one
    >>> in_postgres(parse_one("SELECT CONTAINS(x, 'a')", dialect="duckdb")).sql("postgres")
    "SELECT (STRPOS(x, 'a') > 0)"
    """
    from sqlglot.optimizer.annotate_types import annotate_types

    return rewritten(annotate_types(query.copy(), dialect="duckdb"), _RULES)


def _flooded(number: exp.Expr) -> exp.Expr:
    """Return x + c − c for c = 10⁻¹⁴⁰: x itself if it is far above c, else 0 or at least 10⁻¹⁵⁷.

    PostgreSQL reports an error where a product or a quotient of numbers that are not 0 is too small for a double.
    After this, none is: the product of two is at least 10⁻³¹⁴, and a quotient by at most 10¹⁵ at least 10⁻¹⁷².
    """
    flood = exp.cast(exp.Literal.number(repr(_FLOOD)), "DOUBLE")
    return exp.paren(exp.Sub(this=exp.paren(exp.Add(this=number, expression=flood)), expression=flood.copy()))


def _product(node: exp.Expr) -> exp.Expr:
    """Multiply; whole numbers as they are, decimals after what would vanish has been taken for 0."""
    if node.is_type(exp.DataType.Type.BIGINT, exp.DataType.Type.INT) or _of_whole_steps(node):
        return node
    sides = [side if _constant(side) else _flooded(side) for side in (node.this, node.expression)]
    return exp.Mul(this=sides[0], expression=sides[1])


def _quotient(node: exp.Expr) -> exp.Expr:
    """Divide; questions divide decimals only."""
    above = node.this if _constant(node.this) else _flooded(node.this)
    return exp.Div(this=above, expression=node.expression, typed=True, safe=False)


def _of_whole_steps(node: exp.Expr) -> bool:
    """Return whether a column is multiplied that holds whole steps: those are nameless, and never too small."""
    return isinstance(node.expression, exp.Column) and not node.expression.table


def _constant(node: exp.Expr) -> bool:
    inner = node.unnest()
    return isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal)


def _rounded(node: exp.Expr) -> exp.Expr:
    """Round halves away from zero, as exact decimals do; doubles by themselves would go to the even neighbor."""

    def half_away(number: exp.Expr) -> exp.Expr:
        exact = exp.cast(exp.cast(number, "TEXT"), "DECIMAL")
        return exp.cast(exp.Round(this=exact), "DOUBLE")

    return rounded_at_digits(node, half_away)


def _sum(node: exp.Expr) -> exp.Expr:
    """Add up 64-bit numbers, which gives exact numbers of any length."""
    return exp.Sum(this=exp.cast(node.this, "BIGINT"))


def _contains(node: exp.Expr) -> exp.Expr:
    found = exp.Anonymous(this="STRPOS", expressions=[node.this, node.expression])
    return exp.paren(exp.GT(this=found, expression=exp.Literal.number(0)))


def _part(name: str) -> Rewriting:
    return lambda node: exp.Extract(this=exp.var(name), expression=node.this)


def _later(node: exp.Expr) -> exp.Expr:
    """Add days to a date; PostgreSQL reports an error before the year −4713, where there is no such day in ours."""
    days = node.expression
    if not (isinstance(days, exp.Cast) and days.is_type(exp.DataType.Type.INT)):
        return node
    if _constant(days.this) and abs(Fraction(days.this.this.name)) < _SAFE_DAYS:
        return node
    since = exp.Sub(this=exp.paren(node.this.copy()), expression=exp.cast(exp.Literal.string(_EPOCH), "DATE"))
    lands = exp.paren(exp.Add(this=exp.paren(since), expression=days.copy()))
    low, high = (exp.Literal.number(abs(end)) for end in _CALENDAR)
    inside = exp.Between(this=lands, low=exp.Neg(this=low), high=high)
    return exp.Case(ifs=[exp.If(this=inside, true=node.copy())])


def _letters(node: exp.Expr) -> exp.Expr:
    del node
    raise QuestionRefused(
        "UPPER and LOWER are not computed in PostgreSQL, where letters depend on how the database was made. Compare "
        "with both spellings, or let the owner of the data leave pushdown out."
    )


def _vanishing(node: exp.Expr) -> exp.Expr:
    del node
    raise QuestionRefused(
        "EXP and POWER are not computed in PostgreSQL, which reports an error where their value is too small for it. "
        "Multiply instead, or let the owner of the data leave pushdown out."
    )


_RULES: dict[type[exp.Expr], Rewriting] = {
    exp.TryCast: no_try_cast,
    exp.Cast: no_decimal_as_text,
    exp.Upper: _letters,
    exp.Lower: _letters,
    exp.Exp: _vanishing,
    exp.Pow: _vanishing,
    exp.Mul: _product,
    exp.Div: _quotient,
    exp.Sum: _sum,
    exp.Round: _rounded,
    exp.Contains: _contains,
    exp.DayOfWeek: _part("DOW"),
    exp.Quarter: _part("QUARTER"),
    exp.Month: _part("MONTH"),
    exp.Day: _part("DAY"),
    exp.Year: _part("YEAR"),
    exp.Add: _later,
}
