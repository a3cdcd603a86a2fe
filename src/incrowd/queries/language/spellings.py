"""Spellings: other ways to write what the language has, in its own words; each is exact, or is left as it is."""

from __future__ import annotations

import re
from functools import reduce

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FORMATS = ("YYYY-MM-DD", "%Y-%m-%d")
_PLAIN = re.compile(r"[\w\s%-]*")
"""Patterns that mean the same after SIMILAR TO and after LIKE: no sign in them means more."""
_TOP = ("SELECT", "TOP")
_CUTTING = (TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH)


def limited(sql: str, tokens: list[Token]) -> str:
    """Return a query that begins with SELECT TOP n with LIMIT n at its end, before a comment there.

    Before UNION and the like TOP is about the first part alone: it is left as it is, and refused where it is read.

    >>> import sqlglot
    >>> sql = "SELECT TOP 5 sex FROM births;"
    >>> limited(sql, sqlglot.tokenize(sql))
    'SELECT sex FROM births LIMIT 5'
    >>> sql = "SELECT TOP 5 sex FROM births -- the first"
    >>> limited(sql, sqlglot.tokenize(sql))
    'SELECT sex FROM births LIMIT 5'
    >>> sql = "SELECT TOP 5 sex FROM births UNION ALL SELECT sex FROM deaths"
    >>> limited(sql, sqlglot.tokenize(sql)) == sql
    True
    """
    words = [token.text.upper() for token in tokens[:3]]
    if tuple(words[:2]) != _TOP or tokens[2:3] == [] or tokens[2].token_type is not TokenType.NUMBER:
        return sql
    if any(token.token_type in _CUTTING for token in tokens) or _combined(tokens):
        return sql
    end = tokens[-1].start if tokens[-1].token_type is TokenType.SEMICOLON else tokens[-1].end + 1
    return f"{sql[: tokens[1].start]}{sql[tokens[2].end + 1 : end].lstrip()} LIMIT {tokens[2].text}"


def _combined(tokens: list[Token]) -> bool:
    """Tell whether a query is made of several, outside of parentheses."""
    depth = 0
    for token in tokens:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if not depth and token.token_type in (TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT):
            return True
    return False


def respelled(tree: exp.Expr) -> None:
    """Write pairs after IN, TO_DATE of a literal, SIMILAR TO, ORDER BY ALL and RIGHT JOIN in words of the language.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("SELECT COUNT(*) FROM t WHERE (a, b) IN ((1, 2), (3, 4))", dialect="duckdb")
    >>> respelled(tree)
    >>> tree.sql()
    'SELECT COUNT(*) FROM t WHERE (a = 1 AND b = 2 OR a = 3 AND b = 4)'
    """
    for node in list(tree.walk()):
        new = _respelled(node)
        if new is not None:
            node.replace(new)
        if isinstance(node, exp.Select):
            _order_all(node)
            _turn_join(node)


def _respelled(node: exp.Expr) -> exp.Expr | None:
    match node:
        case exp.In() if isinstance(node.this, exp.Tuple) and node.expressions:
            return _pairs(node)
        case exp.SimilarTo() if isinstance(node.expression, exp.Literal) and _PLAIN.fullmatch(node.expression.name):
            return exp.Like(this=node.this, expression=node.expression)
        case exp.Func() if node.sql_name() == "TO_DATE" or (
            isinstance(node, exp.Anonymous) and node.name.upper() == "TO_DATE"
        ):
            return _day(node)
        case exp.StrToDate() | exp.TsOrDsToDate() | exp.StrToTime():
            return _day(node)
    return None


def _pairs(node: exp.In) -> exp.Expr | None:
    """Return which of several pairs equal the columns, as AND and OR."""
    left = node.this.expressions
    if not all(isinstance(pair, exp.Tuple) and len(pair.expressions) == len(left) for pair in node.expressions):
        return None
    either: list[exp.Expr] = []
    for pair in node.expressions:
        equal: list[exp.Expr] = [
            exp.EQ(this=a.copy(), expression=b) for a, b in zip(left, pair.expressions, strict=True)
        ]
        either.append(reduce(lambda one, two: exp.And(this=one, expression=two), equal))
    return exp.Paren(this=reduce(lambda one, two: exp.Or(this=one, expression=two), either))


def _day(node: exp.Expr) -> exp.Expr | None:
    """Return the day that is written out, if it is written as 2020-12-31 and said to be."""
    parts = [part for part in node.iter_expressions() if isinstance(part, exp.Literal)]
    if len(parts) != 2 or not _DAY.fullmatch(parts[0].name) or parts[1].name not in _FORMATS:
        return None
    return exp.cast(parts[0].copy(), "DATE")


def _order_all(query: exp.Select) -> None:
    """Let ORDER BY ALL name every column of the answer by its place."""
    order = query.args.get("order")
    if order is None or len(order.expressions) != 1 or query.is_star:
        return
    (term,) = order.expressions
    quoted = isinstance(term.this, exp.Column) and term.this.this.args.get("quoted")
    if term.this.name.upper() == "ALL" and not quoted and not isinstance(term.this, exp.Literal):
        places = range(1, len(query.expressions) + 1)
        terms = [exp.Ordered(**{**term.args, "this": exp.Literal.number(place)}) for place in places]
        query.set("order", exp.Order(expressions=terms))


def _turn_join(query: exp.Select) -> None:
    """Let a single RIGHT JOIN be the LEFT JOIN from the other side."""
    joins: list[exp.Join] = query.args.get("joins") or []
    origin = query.args.get("from_")
    if len(joins) != 1 or joins[0].side != "RIGHT" or origin is None or query.is_star:
        return
    left, right = origin.this, joins[0].this
    joins[0].set("side", "LEFT")
    joins[0].set("this", left.copy())
    origin.set("this", right.copy())
