"""Dialect: trees written for one engine, rewritten for another so that they mean exactly the same there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from incrowd.errors import QuestionRefused

Rewriting = Callable[[exp.Expr], exp.Expr]
"""Makes of a node, whose parts are rewritten already, what stands in its place."""

_MOST_NODES = 200_000
_TEXTS = (exp.DataType.Type.VARCHAR, exp.DataType.Type.TEXT)


def rewritten(query: exp.Query, rules: Mapping[type[exp.Expr], Rewriting]) -> exp.Query:
    """Return a copy of a tree in which every node of a kind that has a rule is rewritten by it, from inside out.

    What is known of a node's type holds for what stands in its place.

    >>> from sqlglot import parse_one
    >>> rewritten(parse_one("SELECT ABS(ABS(x))"), {exp.Abs: lambda node: exp.Neg(this=node.this)}).sql()
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


def placed(query: exp.Query, places: Mapping[str, exp.Expr]) -> exp.Query:
    """Return a copy of a tree that reads, instead of each of these tables, what stands for it.

    >>> from sqlglot import parse_one
    >>> placed(parse_one("SELECT x FROM people AS p"), {"people": exp.to_table("view_1")}).sql()
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


def rounded_at_digits(node: exp.Expr, half_away: Rewriting) -> exp.Expr:
    """Return ROUND(x, digits) as a whole number of steps, halves away from zero, in the same operations everywhere."""
    digits = node.args.get("decimals")
    many = 0 if digits is None else int(digits.sql())
    if many == 0:
        return half_away(node.this)
    scale = exp.cast(exp.Literal.number(f"{float(10 ** abs(many))!r}"), "DOUBLE")
    first, last = (exp.Mul, exp.Div) if many > 0 else (exp.Div, exp.Mul)
    scaled = first(this=exp.paren(node.this), expression=scale)
    return exp.paren(last(this=half_away(scaled), expression=scale.copy()))
