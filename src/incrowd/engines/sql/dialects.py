"""Dialects: trees of questions, rewritten for PostgreSQL and for Spark so that they mean exactly the same there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from sqlglot import exp

from incrowd.errors import QuestionRefused

Rewriting = Callable[[exp.Expr], exp.Expr]
"""Makes of a node, whose parts are rewritten already, what stands in its place."""

_MOST_NODES = 200_000
_TEXTS = (exp.DataType.Type.VARCHAR, exp.DataType.Type.TEXT)


def rewrite(query: exp.Query, rules: Mapping[type[exp.Expr], Rewriting]) -> exp.Query:
    """Return a copy of a tree in which every node of a kind that has a rule is rewritten by it, from inside out.

    What is known of a node's type holds for what stands in its place.

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
            found = rule(node)
            found.type = found.type or kind
            place.replace(found)
    if sum(1 for _ in whole.walk()) > _MOST_NODES:
        raise QuestionRefused("this question becomes too long where the rows are: ask for less at once.")
    return whole


def replace_tables(query: exp.Query, places: Mapping[str, exp.Expr]) -> exp.Query:
    """Return a copy of a tree that reads, instead of each of these tables, what stands for it.

    >>> from sqlglot import parse_one
    >>> replace_tables(parse_one("SELECT x FROM people AS p"), {"people": exp.to_table("view_1")}).sql()
    'SELECT x FROM view_1 AS "p"'
    """
    whole = query.copy()
    for table in list(whole.find_all(exp.Table)):
        if table.name in places:
            alias = exp.TableAlias(this=exp.to_identifier(table.alias or table.name, quoted=True))
            stands = places[table.name].copy()
            stands.set("alias", alias)
            table.replace(stands)
    return whole


def no_try_cast(node: exp.Expr) -> exp.Expr:
    """Refuse a text that is read as a number or a date: engines take different spellings for one."""
    del node
    raise QuestionRefused(
        "texts are read as numbers or dates by the local engine alone, since engines differ in what they take for one. "
        "Let the owner of the data declare the column as integer, decimal or date."
    )


def no_decimal_as_text(node: exp.Expr) -> exp.Expr:
    """Refuse a decimal number that is written as text: engines spell them differently."""
    inner = node.this
    if node.args["to"].this in _TEXTS and isinstance(inner, exp.Cast) and inner.is_type(exp.DataType.Type.DOUBLE):
        raise QuestionRefused(
            "decimals are written as texts by the local engine alone, since engines spell them differently. Round the "
            "number to a whole one first."
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

    return rewrite(annotate_types(query.copy(), dialect="duckdb"), _POSTGRES)


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


def _rounded_in_postgres(node: exp.Expr) -> exp.Expr:
    """Round halves away from zero, as exact decimals do; doubles by themselves would go to the even neighbor."""

    def half_away(number: exp.Expr) -> exp.Expr:
        exact = exp.cast(exp.cast(number, "TEXT"), "DECIMAL")
        return exp.cast(exp.Round(this=exact), "DOUBLE")

    return round_at_digits(node, half_away)


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


_POSTGRES: dict[type[exp.Expr], Rewriting] = {
    exp.TryCast: no_try_cast,
    exp.Cast: no_decimal_as_text,
    exp.Upper: _letters,
    exp.Lower: _letters,
    exp.Exp: _vanishing,
    exp.Pow: _vanishing,
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


_LOW_BITS = 20


def in_spark(query: exp.Query) -> exp.Query:
    """Return a tree for Spark.

    >>> from sqlglot import parse_one
    >>> in_spark(parse_one("SELECT ROUND(x, 1)", dialect="duckdb")).sql("spark")
    'SELECT (ROUND((x) * CAST(10.0 AS DOUBLE)) / CAST(10.0 AS DOUBLE))'
    """
    return rewrite(query, _SPARK)


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


def _rounded_in_spark(node: exp.Expr) -> exp.Expr:
    """Round as Spark does without digits: halves away from zero, and nothing but halves is taken for one."""
    return round_at_digits(node, lambda number: exp.Round(this=number))


def _day_of_week(node: exp.Expr) -> exp.Expr:
    """Count days of the week from 0, Sunday, where Spark begins with 1."""
    return exp.paren(exp.Sub(this=node, expression=exp.Literal.number(1)))


def _first_day(node: exp.Expr) -> exp.Expr:
    """Return the first day of a period, as a date: no time zone has a say in it."""
    unit, when = node.args["unit"].name.upper(), exp.paren(node.this)
    if unit == "DAY":
        return when
    return exp.Anonymous(this="TRUNC", expressions=[when, exp.Literal.string(unit)])


_SPARK: dict[type[exp.Expr], Rewriting] = {
    exp.TryCast: no_try_cast,
    exp.Cast: no_decimal_as_text,
    exp.Sum: _total,
    exp.Round: _rounded_in_spark,
    exp.DayOfWeek: _day_of_week,
    exp.TimestampTrunc: _first_day,
    exp.DateTrunc: _first_day,
}
