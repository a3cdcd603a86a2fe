"""Spellings: other ways to write what the language has, in its own words; each is exact, or is left as it is."""

from __future__ import annotations

import re
from functools import reduce

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from incrowd.errors import QueryRefused
from incrowd.queries.language.domain import MIDNIGHT

_AROUND = (exp.Binary, exp.Paren, exp.Between, exp.Subquery)
"""Around what is a value, not a source of rows."""
_MOMENTS = (
    exp.DType.TIMESTAMP,
    exp.DType.TIMESTAMPNTZ,
    exp.DType.TIMESTAMPTZ,
    exp.DType.TIMESTAMPLTZ,
    exp.DType.DATETIME,
)
_NOW = ("NOW", "GETDATE", "SYSDATE", "SYSDATETIME")
_BESIDE_NOW: dict[type[exp.Expr], type[exp.Binary]] = {exp.LT: exp.LTE, exp.GTE: exp.GT}
"""What a comparison of a day with a moment after midnight is as one with the day of that moment."""
_TURNED: dict[type[exp.Expr], type[exp.Binary]] = {exp.GT: exp.GTE, exp.LTE: exp.LT}
"""The same where the moment stands on the left."""
_FORMATS = ("YYYY-MM-DD", "%Y-%m-%d")
_PLAIN = re.compile(r"[\w\s%-]*")
"""Patterns that mean the same after SIMILAR TO and after LIKE: no sign in them means more."""
_ITEM = re.compile(r'("(?:[^"\\]|\\.)*")|((?!NULL\b)[^\s"{},\\]+)')
_ARRAY = re.compile(rf"\{{(?:{_ITEM.pattern})(?:,(?:{_ITEM.pattern}))*\}}")
"""A list of texts in braces, as drivers send it; one with a missing value or another list inside is left."""
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
    words = tuple(token.text.upper() for token in tokens[:5])
    brackets = words[2:3] == ("(",) and words[4:] == (")",)
    number = tokens[3:4] if brackets else tokens[2:3]
    if words[:2] != _TOP or not number or number[0].token_type is not TokenType.NUMBER:
        return sql
    if any(token.token_type in _CUTTING for token in tokens) or _combined(tokens):
        return sql
    end = tokens[-1].start if tokens[-1].token_type is TokenType.SEMICOLON else tokens[-1].end + 1
    rest = sql[tokens[4 if brackets else 2].end + 1 : end].lstrip()
    return f"{sql[: tokens[1].start]}{rest} LIMIT {number[0].text}"


def _combined(tokens: list[Token]) -> bool:
    """Tell whether a query is made of several, outside of parentheses."""
    depth = 0
    for token in tokens:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if not depth and token.token_type in (TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT):
            return True
    return False


def respelled(tree: exp.Expr) -> None:
    """Write pairs, moments at midnight, patterns, sets of people and other spellings in words of the language.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("SELECT COUNT(*) FROM t WHERE (a, b) IN ((1, 2), (3, 4)) AND d < NOW()", dialect="duckdb")
    >>> respelled(tree)
    >>> tree.sql()
    'SELECT COUNT(*) FROM t WHERE (a = 1 AND b = 2 OR a = 3 AND b = 4) AND d <= CURRENT_DATE'
    """
    _compare_with_now(tree)
    for node in reversed(list(tree.walk())):  # parts before what they are parts of
        if isinstance(node, exp.CTE | exp.Subquery):
            _name_columns(node)
        if isinstance(node, exp.Select):
            _order_all(node)
            _turn_join(node)
        new = _respelled(node)
        if new is not None and new is not node:
            node.replace(new)


def _compare_with_now(tree: exp.Expr) -> None:
    """Keep what comparisons with NOW() mean once it is a day: today is before now, and a day is never equal to it.

    >>> from sqlglot import parse_one
    >>> sql = "SELECT 1 FROM t WHERE d >= NOW() - INTERVAL 7 DAY AND NOW() BETWEEN a AND b"
    >>> tree = parse_one(sql, dialect="duckdb")
    >>> _compare_with_now(tree)
    >>> tree.args["where"].this.sql("duckdb")
    "d > NOW() - INTERVAL '7' DAY AND (NOW() >= a AND NOW() < b)"
    """
    for between in list(tree.find_all(exp.Between)):
        if any(map(_is_now, (between.this, between.args["low"], between.args["high"]))):
            ends = (
                exp.GTE(this=between.this.copy(), expression=between.args["low"]),
                exp.LTE(this=between.this, expression=between.args["high"]),
            )
            between.replace(exp.Paren(this=exp.And(this=ends[0], expression=ends[1])))
    for node in list(tree.find_all(exp.EQ, exp.NEQ, *_BESIDE_NOW, *_TURNED)):
        left, right = _is_now(node.this), _is_now(node.expression)
        if left is right:
            continue
        if isinstance(node, exp.EQ | exp.NEQ):
            raise QueryRefused("NOW() is a moment of this day, and no day is equal to it: write CURRENT_DATE.")
        other = (_TURNED if left else _BESIDE_NOW).get(type(node))
        if other is not None:
            node.replace(other(this=node.this, expression=node.expression))


def _is_now(node: exp.Expr) -> bool:
    """Return whether a value is this moment, or a moment some days before or after it."""
    match node:
        case exp.Paren():
            return _is_now(node.this)
        case exp.Add() | exp.Sub() if isinstance(node.expression, exp.Interval):
            return _is_now(node.this)
        case exp.Cast() if node.to.this in _MOMENTS:
            return _is_now(node.this)
        case exp.Anonymous():
            name, parts = str(node.this).upper(), node.expressions
            return name in _NOW or (name == "DATEADD" and len(parts) == 3 and _is_now(parts[2]))
    return isinstance(node, exp.CurrentTimestamp | exp.Localtimestamp)


def _respelled(node: exp.Expr) -> exp.Expr | None:
    match node:
        case exp.In() if isinstance(node.this, exp.Tuple) and node.expressions:
            return _pairs(node, node.expressions)
        case exp.EQ() if isinstance(node.this, exp.Tuple):
            return _pairs(node, [node.expression])
        case exp.EQ() if isinstance(node.expression, exp.Any) and isinstance(node.expression.this.unnest(), exp.Array):
            return exp.In(this=node.this, expressions=node.expression.this.unnest().expressions)
        case exp.EQ() if (
            isinstance(node.expression, exp.Any) and (texts := array_texts(node.expression.this)) is not None
        ):
            return exp.In(this=node.this, expressions=[exp.Literal.string(text) for text in texts])
        case exp.Subquery() if isinstance(node.parent, _AROUND) and _is_constant(node.this):
            return exp.Paren(this=node.this.expressions[0].unalias())
        case exp.Escape():
            return _escaped(node)
        case exp.SimilarTo() if isinstance(node.expression, exp.Literal):
            return _similar(node)
        case exp.RegexpILike():
            raise QueryRefused("~* differs between dialects: write REGEXP_MATCHES(LOWER(x), '^w.*').")
        case exp.Intersect() | exp.Except():
            return _members(node)
        case exp.Anonymous():
            return _function(node)
    return _of_days(node)


def array_texts(node: exp.Expr) -> list[str] | None:
    """Return the texts of an array as PostgreSQL writes it, as drivers send lists; None of anything else.

    >>> array_texts(exp.Literal.string('{web,"Köln, Mitte"}'))
    ['web', 'Köln, Mitte']
    """
    inner = node.unnest()
    if not isinstance(inner, exp.Literal) or not inner.is_string or not _ARRAY.fullmatch(inner.name):
        return None
    parts = _ITEM.findall(inner.name[1:-1])
    return [re.sub(r"\\(.)", r"\1", quoted[1:-1]) if quoted else bare for quoted, bare in parts]


def _is_constant(query: exp.Expr) -> bool:
    """Return whether a query is one value that is written out, as in (SELECT 7)."""
    parts = [name for name, value in query.args.items() if value]
    return (
        isinstance(query, exp.Select)
        and parts == ["expressions"]
        and len(query.expressions) == 1
        and (query.expressions[0].find(exp.Column, exp.Query, exp.AggFunc, exp.Star) is None)
    )


def _of_days(node: exp.Expr) -> exp.Expr | None:
    """Return a moment as the day that it is."""
    match node:
        case exp.CurrentTimestamp() | exp.Localtimestamp():
            return exp.CurrentDate()
        case exp.Cast() if node.to.this in _MOMENTS:
            return _at_midnight(node)
        case exp.StrToDate() | exp.TsOrDsToDate() | exp.StrToTime() | exp.UnixToTime():
            return _day(node)
        case exp.DateFromParts() if all(isinstance(part, exp.Literal) for part in node.iter_expressions()):
            return exp.cast(
                exp.Literal.string("-".join(part.name.zfill(2) for part in node.iter_expressions())), "DATE"
            )
        case exp.Func() if node.sql_name() == "TO_DATE":
            return _day(node)
    return None


def _function(node: exp.Anonymous) -> exp.Expr | None:
    """Return what a function of another dialect is in the language."""
    parts: list[exp.Expr] = node.expressions
    match str(node.this).upper(), len(parts):
        case name, 0 if name in _NOW:
            return exp.CurrentDate()
        case "TO_DATE", 2:
            return _day(node)
        case "COUNT_BIG", 1:
            return exp.Count(this=parts[0])
        case "ISNULL", 1:
            return exp.Paren(this=exp.Is(this=parts[0], expression=exp.Null()))
        case "ISNULL", 2:
            return exp.Coalesce(this=parts[0], expressions=parts[1:])
        case "DATEADD", 3:
            return exp.Paren(
                this=exp.Add(this=parts[2], expression=exp.Interval(this=parts[1], unit=exp.var(parts[0].name)))
            )
        case (("GEOMEAN" | "GEOMETRIC_MEAN"), 1):
            return exp.Exp(this=exp.Avg(this=exp.Ln(this=parts[0])))
    return None


def _at_midnight(node: exp.Cast) -> exp.Expr | None:
    """Return a moment as a day: one that is written out at midnight, or any expression that is a day already."""
    if not isinstance(node.this, exp.Literal):
        return exp.func("DATE_TRUNC", exp.Literal.string("day"), node.this, dialect="duckdb")
    match = MIDNIGHT.fullmatch(node.this.name)
    return exp.cast(exp.Literal.string(match["day"]), "DATE") if match else None


def _escaped(node: exp.Escape) -> exp.Expr | None:
    """Return LIKE with escaped signs as LIKE without them, as equality, or as what a text begins with or contains."""
    like, sign = node.this, node.expression.name
    if not isinstance(like, exp.Like) or not isinstance(like.expression, exp.Literal) or len(sign) != 1:
        return None
    parts = re.findall(f"{re.escape(sign)}.|[^{re.escape(sign)}]", like.expression.name, re.DOTALL)
    if "".join(parts) != like.expression.name:
        return None
    plain = [part for part in parts if len(part) == 1]
    text = "".join(part[-1] for part in parts)
    bare, wild = exp.Literal.string(text.strip("%")), [part for part in plain if part in "%_"]
    new: exp.Expr | None = None
    if not any(len(part) == 2 for part in parts):
        new = exp.Like(this=like.this, expression=like.expression)
    elif not wild:
        new = exp.EQ(this=like.this, expression=exp.Literal.string(text))
    elif wild == ["%"] and parts[-1] == "%" and not text.startswith("%"):
        new = exp.StartsWith(this=like.this, expression=exp.Literal.string(text[:-1]))
    elif wild == ["%", "%"] and parts[0] == parts[-1] == "%" and bare.name == text[1:-1]:
        new = exp.Contains(this=like.this, expression=bare)
    return exp.Not(this=exp.Paren(this=new)) if new is not None and like.args.get("negate") else new


def _similar(node: exp.SimilarTo) -> exp.Expr | None:
    """Return SIMILAR TO of plain words, with % and _ and alternatives between |, as LIKE."""
    written = node.expression.name
    words = (written[1:-1] if written.startswith("(") and written.endswith(")") else written).split("|")
    if not all(_PLAIN.fullmatch(word) for word in words):
        return None
    either: list[exp.Expr] = [exp.Like(this=node.this.copy(), expression=exp.Literal.string(word)) for word in words]
    return exp.Paren(this=reduce(lambda one, two: exp.Or(this=one, expression=two), either))


def _members(node: exp.Intersect | exp.Except) -> exp.Expr | None:
    """Return the people of one query who are in another, or are not, by IN; people have no missing values."""
    sides = [node.this.unnest(), node.expression.unnest()]
    columns = [side.expressions for side in sides if isinstance(side, exp.Select)]
    names = [part[0].unalias() for part in columns if len(part) == 1]
    parts = ("order", "limit", "offset", "with_")
    if len(names) < 2 or not all(isinstance(name, exp.Column) for name in names) or node.args.get("distinct") is False:
        return None
    if any(side.args.get(part) for part in (*parts, "group", "having") for side in (*sides, node)):
        return None
    people, others = sides[0].copy(), sides[1].copy()
    member: exp.Expr = exp.In(this=names[0].copy(), query=exp.Subquery(this=others))
    people.set("distinct", exp.Distinct())
    return people.where(exp.Not(this=member) if isinstance(node, exp.Except) else member, copy=False)  # type: ignore[no-any-return]


def _name_columns(node: exp.CTE | exp.Subquery) -> None:
    """Write the names of columns after the name of a query, as in t(a, b), into its SELECT by AS."""
    names, inner = node.args.get("alias"), node.this.unnest()
    while isinstance(inner, exp.SetOperation):
        inner = inner.this.unnest()
    columns = [] if names is None else names.args.get("columns") or []
    if (
        names is None
        or not columns
        or not isinstance(inner, exp.Select)
        or inner.is_star
        or len(columns) > len(inner.expressions)
    ):
        return
    for item, name in zip(inner.expressions, columns, strict=False):
        item.replace(exp.alias_(item.unalias().copy(), name.name, quoted=True))
    node.args["alias"].set("columns", None)


def _pairs(node: exp.In | exp.EQ, pairs: list[exp.Expr]) -> exp.Expr | None:
    """Return which of several pairs equal the columns, as AND and OR."""
    left = node.this.expressions
    if not all(isinstance(pair, exp.Tuple) and len(pair.expressions) == len(left) for pair in pairs):
        return None
    either: list[exp.Expr] = []
    for pair in pairs:
        equal: list[exp.Expr] = [
            exp.EQ(this=a.copy(), expression=b) for a, b in zip(left, pair.expressions, strict=True)
        ]
        either.append(reduce(lambda one, two: exp.And(this=one, expression=two), equal))
    return exp.Paren(this=reduce(lambda one, two: exp.Or(this=one, expression=two), either))


def _day(node: exp.Expr) -> exp.Expr | None:
    """Return the day that is written out at midnight, if it is written as 2020-12-31 and said to be."""
    parts = [part for part in node.iter_expressions() if isinstance(part, exp.Literal)]
    match = MIDNIGHT.fullmatch(parts[0].name) if len(parts) == 2 else None
    if match is None or not parts[1].name.startswith(_FORMATS):
        return None
    return exp.cast(exp.Literal.string(match["day"]), "DATE")


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
