"""Dialects: trees of queries, rewritten for PostgreSQL and Spark so that they mean exactly the same there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from sqlglot import exp

from incrowd.errors import QueryRefused

Rewriting = Callable[[exp.Expr], exp.Expr]
"""Returns the replacement of a node whose parts are rewritten already."""

_MOST_NODES = 200_000  # rewriting may multiply a query: this bounds memory and what the database must parse
_TEXTS = (exp.DataType.Type.VARCHAR, exp.DataType.Type.TEXT)


def rewrite(query: exp.Query, rules: Mapping[type[exp.Expr], Rewriting]) -> exp.Query:
    """Return a copy of a tree in which every node with a rule is rewritten, from inside out.

    A replacement has the type of its node.

    >>> from sqlglot import parse_one
    >>> rewrite(parse_one("SELECT ABS(ABS(x))"), {exp.Abs: lambda node: exp.Neg(this=node.this)}).sql()
    'SELECT - -x'
    """
    whole = query.copy()
    for node in reversed(list(whole.dfs())):
        rule = rules.get(type(node))
        if rule is not None:
            place, kind = exp.Placeholder(), node.type
            node.replace(place)
            replacement = rule(node)
            replacement.type = replacement.type or kind
            place.replace(replacement)
    if sum(1 for _ in whole.walk()) > _MOST_NODES:
        raise QueryRefused("this query becomes too long for the database: ask for less at once.")
    return whole


def replace_tables(query: exp.Query, places: Mapping[str, exp.Expr]) -> exp.Query:
    """Return a copy of a tree in which these tables are replaced.

    >>> from sqlglot import parse_one
    >>> replace_tables(parse_one("SELECT x FROM people AS p"), {"people": exp.to_table("view_1")}).sql()
    'SELECT x FROM view_1 AS "p"'
    """
    whole = query.copy()
    for table in list(whole.find_all(exp.Table)):
        if table.name in places:
            alias = exp.TableAlias(this=exp.to_identifier(table.alias or table.name, quoted=True))
            replacement = places[table.name].copy()
            replacement.set("alias", alias)
            table.replace(replacement)
    return whole


def _refused(message: str) -> Rewriting:
    def refuse(_: exp.Expr) -> exp.Expr:
        raise QueryRefused(message)

    return refuse


_NO_TRY_CAST = _refused(
    "only the local engine reads texts as numbers or dates, since engines accept different spellings. Ask the data "
    "holder to declare the column as integer, decimal or date."
)
"""Engines accept different spellings of numbers and dates."""
_NO_LETTERS = _refused(
    "UPPER and LOWER are not computed in PostgreSQL, where they depend on the locale of the database. Compare "
    "with both spellings, or ask the data holder to leave pushdown out."
)
_NO_VANISHING = _refused(
    "EXP and POWER are not computed in PostgreSQL, which raises an error where their value is too small. Multiply "
    "instead, or ask the data holder to leave pushdown out."
)


def no_decimal_as_text(node: exp.Expr) -> exp.Expr:
    """Refuse to write a decimal number as text: engines spell them differently."""
    inner = node.this
    if node.args["to"].this in _TEXTS and isinstance(inner, exp.Cast) and inner.is_type(exp.DataType.Type.DOUBLE):
        raise QueryRefused(
            "only the local engine writes decimals as texts, since engines spell them differently. Round the number to "
            "a whole one first."
        )
    return node


def round_at_digits(node: exp.Expr, half_away: Rewriting) -> exp.Expr:
    """Return ROUND(x, digits) as a whole number of steps, halves away from zero, in the same operations everywhere."""
    digits = node.args.get("decimals")
    many = 0 if digits is None else int(digits.sql())
    if many == 0:
        return half_away(node.this)
    scale = exp.cast(exp.Literal.number(f"{float(10 ** abs(many))!r}"), "DOUBLE")
    first, last = (exp.Mul, exp.Div) if many > 0 else (exp.Div, exp.Mul)
    scaled = first(this=exp.paren(node.this), expression=scale)
    return exp.paren(last(this=half_away(scaled), expression=scale.copy()))


_FLOOD = 1e-140  # see `_flooded`
_SAFE_DAYS = 1_700_000  # from no year of 1 to 9999 do so few days lead before −4713, where PostgreSQL's dates begin
_EPOCH = "1970-01-01"
_CALENDAR = (-719_163, 2_932_897)
"""The days before and after the years 1 to 9999, counted from 1970."""


def in_postgres(query: exp.Query) -> exp.Query:
    """Return a tree for PostgreSQL; it selects from subqueries that cast their columns.

    >>> from sqlglot import parse_one
    >>> in_postgres(parse_one("SELECT CONTAINS(x, 'a')", dialect="duckdb")).sql("postgres")
    "SELECT (STRPOS(x, 'a') > 0)"
    """
    from sqlglot.optimizer.annotate_types import annotate_types

    return rewrite(annotate_types(query.copy(), dialect="duckdb"), _POSTGRES)


def _flooded(number: exp.Expr) -> exp.Expr:
    """Return x + c − c for c = 10⁻¹⁴⁰: x itself if it is far above c, else 0 or at least 10⁻¹⁵⁷.

    PostgreSQL raises an error where a product or a quotient of numbers other than 0 is too small for a double.  After
    this, none is: a product of two is at least 10⁻³¹⁴, and a quotient by at most 10¹⁵ is at least 10⁻¹⁷².
    """
    flood = exp.cast(exp.Literal.number(repr(_FLOOD)), "DOUBLE")
    return exp.paren(exp.Sub(this=exp.paren(exp.Add(this=number, expression=flood)), expression=flood.copy()))


def _product(node: exp.Expr) -> exp.Expr:
    """Multiply; whole numbers unchanged, decimals after tiny ones became 0."""
    if node.is_type(exp.DataType.Type.BIGINT, exp.DataType.Type.INT) or _of_whole_steps(node):
        return node
    sides = [side if _constant(side) else _flooded(side) for side in (node.this, node.expression)]
    return exp.Mul(this=sides[0], expression=sides[1])


def _quotient(node: exp.Expr) -> exp.Expr:
    """Divide; queries divide decimals only."""
    above = node.this if _constant(node.this) else _flooded(node.this)
    return exp.Div(this=above, expression=node.expression, typed=True, safe=False)


def _of_whole_steps(node: exp.Expr) -> bool:
    """Whether a column of whole steps is multiplied: it has no table, and its values are never too small."""
    return isinstance(node.expression, exp.Column) and not node.expression.table


def _constant(node: exp.Expr) -> bool:
    inner = node.unnest()
    return isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal)


def _rounded_in_postgres(node: exp.Expr) -> exp.Expr:
    """Round halves away from zero, as exact decimals do; doubles would round to the even neighbor."""

    def half_away(number: exp.Expr) -> exp.Expr:
        exact = exp.cast(exp.cast(number, "TEXT"), "DECIMAL")
        return exp.cast(exp.Round(this=exact), "DOUBLE")

    return round_at_digits(node, half_away)


def _sum(node: exp.Expr) -> exp.Expr:
    """Sum 64-bit numbers, which gives exact numbers of any length."""
    return exp.Sum(this=exp.cast(node.this, "BIGINT"))


def _contains(node: exp.Expr) -> exp.Expr:
    position = exp.Anonymous(this="STRPOS", expressions=[node.this, node.expression])
    return exp.paren(exp.GT(this=position, expression=exp.Literal.number(0)))


def _part(name: str) -> Rewriting:
    return lambda node: exp.Extract(this=exp.var(name), expression=node.this)


def _later(node: exp.Expr) -> exp.Expr:
    """Add days to a date; before the year −4713, where other engines return null, PostgreSQL raises an error."""
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


_POSTGRES: dict[type[exp.Expr], Rewriting] = {
    exp.TryCast: _NO_TRY_CAST,
    exp.Cast: no_decimal_as_text,
    exp.Upper: _NO_LETTERS,
    exp.Lower: _NO_LETTERS,
    exp.Exp: _NO_VANISHING,
    exp.Pow: _NO_VANISHING,
    exp.Mul: _product,
    exp.Div: _quotient,
    exp.Sum: _sum,
    exp.Round: _rounded_in_postgres,
    exp.Contains: _contains,
    exp.DayOfWeek: _part("DOW"),
    exp.WeekOfYear: _part("WEEK"),
    exp.DayOfYear: _part("DOY"),
    exp.Quarter: _part("QUARTER"),
    exp.Month: _part("MONTH"),
    exp.Day: _part("DAY"),
    exp.Year: _part("YEAR"),
    exp.Add: _later,
}


_LOW_BITS = 20  # see `_total`: either sum of parts stays within 64 bits


def in_spark(query: exp.Query) -> exp.Query:
    """Return a tree for Spark.

    >>> from sqlglot import parse_one
    >>> in_spark(parse_one("SELECT ROUND(x, 1)", dialect="duckdb")).sql("spark")
    'SELECT (ROUND((x) * CAST(10.0 AS DOUBLE)) / CAST(10.0 AS DOUBLE))'
    """
    return rewrite(query, _SPARK)


def _total(node: exp.Expr) -> exp.Expr:
    """Sum whole numbers without overflow, as 64-bit sums of their low 20 bits and of the rest.

    Addends are below 2^50, so either sum stays within 64 bits for 2^33 addends of that size, and for 2^43 of the
    numbers that queries sum over all rows, which are below 2^30.  x = (x >> 20) · 2^20 + (x & (2^20 − 1)) holds for
    negative numbers, too.
    """
    addend = node.this
    shifted = exp.Anonymous(this="SHIFTRIGHT", expressions=[addend.copy(), exp.Literal.number(_LOW_BITS)])
    low = exp.BitwiseAnd(this=exp.paren(addend.copy()), expression=exp.Literal.number(2**_LOW_BITS - 1))
    wide = [exp.cast(exp.Sum(this=part), "DECIMAL(38, 0)") for part in (shifted, low)]
    scaled = exp.Mul(this=wide[0], expression=exp.Literal.number(2**_LOW_BITS))
    return exp.paren(exp.Add(this=scaled, expression=wide[1]))


def _rounded_in_spark(node: exp.Expr) -> exp.Expr:
    """Round as Spark does without digits: exact halves away from zero."""
    return round_at_digits(node, lambda number: exp.Round(this=number))


def _day_of_week(node: exp.Expr) -> exp.Expr:
    """Count days of the week from 0, Sunday, where Spark begins with 1."""
    return exp.paren(exp.Sub(this=node, expression=exp.Literal.number(1)))


def _first_day(node: exp.Expr) -> exp.Expr:
    """Return the first day of a period as a date, which no time zone affects."""
    unit, when = node.args["unit"].name.upper(), exp.paren(node.this)
    if unit == "DAY":
        return when
    return exp.Anonymous(this="TRUNC", expressions=[when, exp.Literal.string(unit)])


_SPARK: dict[type[exp.Expr], Rewriting] = {
    exp.TryCast: _NO_TRY_CAST,
    exp.Cast: no_decimal_as_text,
    exp.Sum: _total,
    exp.Round: _rounded_in_spark,
    exp.DayOfWeek: _day_of_week,
    exp.TimestampTrunc: _first_day,
    exp.DateTrunc: _first_day,
}
