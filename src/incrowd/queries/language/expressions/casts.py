"""Casts: a value as another type, and a date in writing; what cannot be read is NULL, and no row makes a cast fail."""

from __future__ import annotations

import re
from datetime import date, timedelta
from fractions import Fraction
from functools import partial

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import QueryRefused
from incrowd.queries.language import trees as sql
from incrowd.queries.language.domain import FIRST, LAST, BoundTree, ExpressionDomain, among, calendar, day, texts, whole
from incrowd.queries.language.expressions import answers
from incrowd.queries.language.expressions.arithmetic import rounded
from incrowd.queries.language.expressions.dates import written
from incrowd.queries.language.expressions.function import (
    AnswerTypes,
    Mean,
    NodeRule,
    SqlFunction,
    TextWork,
    Width,
    moment,
    sole,
)

GREATEST_DOUBLE = 1.7976931348623157e308
_MOST_LISTED_DAYS = 40_000  # a century of days: the months and weeks that occur are listed from them
_LONGEST_PATTERN = 40  # longer than any format of a date

_TYPES = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), Type.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), Type.DECIMAL),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR"), Type.TEXT),
    "DATE": Type.DATE,
    "BOOLEAN": Type.BOOLEAN,
}


def _recast(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand CAST, TRY_CAST and DATE '2020-12-31'."""
    target: exp.DataType = node.args["to"]
    kind = _TYPES.get(target.this.value)
    if kind is None and target.this.value.startswith(("TIMESTAMP", "DATETIME", "TIME")):
        raise QueryRefused("dates have no time of day here: write DATE '2025-12-31', or a moment at 00:00:00.")
    if kind is None or target.args.get("nested"):
        raise QueryRefused("values are cast to INTEGER, DOUBLE, TEXT, DATE or BOOLEAN: choose one of them.")
    if kind is Type.DATE and isinstance(node.this, exp.Literal) and node.this.is_string:
        return sql.fixed(written(str(node.this.this)), Type.DATE)
    part = mean(node.this)
    if kind is Type.DECIMAL and target.expressions and part.extent.numeric:
        return rounded(exp.Round(this=node.this.copy(), decimals=_digits(target)), mean)
    if part.type is kind:
        return part
    made = _cast(part, kind)
    if made is None:
        raise QueryRefused(f"{sql.only_type(part.extent)} is not cast to {kind}: use CASE WHEN … THEN ….")
    return made


def _digits(target: exp.DataType) -> exp.Expr:
    """Return the s of DECIMAL(p, s), 0 where it is left out."""
    scales = [part.this for part in target.expressions][1:] or [exp.Literal.number(0)]
    digits: exp.Expr = scales[0].copy()
    return digits


def _cast(part: BoundTree, kind: Type) -> BoundTree | None:
    extent, optional = part.extent, part.optional
    match extent.type, kind:
        case Type.INTEGER, Type.DECIMAL:
            decimals = ExpressionDomain(kind, extent.low, extent.high, optional=optional)
            return BoundTree.of(sql.as_decimal(part), decimals, (part,), float)
        case Type.DECIMAL, Type.INTEGER:
            return rounded(exp.Round(this=exp.Null()), lambda _: part)
        case Type.BOOLEAN, Type.INTEGER:
            return BoundTree.of(_of_truth(part, 1, 0), whole(0, 1, optional=optional), (part,), int)
        case Type.INTEGER, Type.BOOLEAN:
            tree = sql.operation(exp.NEQ, part.tree, sql.constant(0))
            return BoundTree(tree, ExpressionDomain(kind, values=(False, True), optional=optional))
        case Type.BOOLEAN, Type.TEXT:
            tree, extent = _of_truth(part, "true", "false"), texts(5, optional=optional)
            return BoundTree.of(tree, extent, (part,), lambda value: str(value).lower())
        case Type.DECIMAL, Type.TEXT:  # the type is written into the tree, since engines spell decimals differently
            zero = sql.operation(
                exp.EQ, part.tree, sql.constant(0.0)
            )  # which zero of a group an engine shows is chance
            tree = sql.case((zero, sql.constant("0.0")), default=sql.cast(sql.cast(part.tree, Type.DECIMAL), kind))
            return BoundTree(tree, texts(40, optional=optional))
        case ((Type.INTEGER | Type.DATE), Type.TEXT):
            return BoundTree.of(sql.cast(part.tree, kind), texts(40, optional=optional), (part,), str)
        case Type.TEXT, _:
            return _read(part, kind)
    return None


def _of_truth(part: BoundTree, yes: int | str, no: int | str) -> exp.Expr:
    """Return one value for true and one for false."""
    return sql.case((part.tree, sql.constant(yes)), (exp.Not(this=exp.Paren(this=part.tree.copy())), sql.constant(no)))


def _read(part: BoundTree, kind: Type) -> BoundTree | None:
    """Return a text read as a number or a date; not a number, infinite or beyond the calendar is NULL."""
    tree = sql.try_cast(part.tree, kind)
    match kind:
        case Type.INTEGER:
            return BoundTree(tree, ExpressionDomain(kind))
        case Type.DECIMAL:
            finite = sql.operation(exp.LTE, sql.function(exp.Abs, tree), sql.constant(GREATEST_DOUBLE))
            limit = Fraction(GREATEST_DOUBLE)
            return BoundTree(sql.case((finite, tree)), ExpressionDomain(kind, -limit, limit))
        case Type.DATE:
            return BoundTree(
                sql.case((sql.between(tree, sql.constant(FIRST), sql.constant(LAST)), tree)), calendar(optional=True)
            )
    return None


def _rounded_answer(node: exp.Expr) -> exp.Expr:
    """Return a cast of an answer to DECIMAL(p, s) as ROUND(x, s), any other as it is."""
    if not (node.args["to"].expressions and node.is_type(exp.DataType.Type.DECIMAL)):
        return node
    return exp.Round(this=exp.cast(node.this.copy(), "DOUBLE"), decimals=_digits(node.args["to"]))


_SIGNS: dict[str, tuple[int, int]] = {"Y": (1, 4), "m": (6, 2), "d": (9, 2)}
"""Where the parts of a date stand in 2020-12-31."""
_PATTERN = re.compile(r"%(.)|([^%]+)|(%)$", re.DOTALL)


def _written_date(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand STRFTIME(d, '%Y-%m'): a date in writing, of %Y, %m, %d and what stands between them."""
    when = moment(mean(node.this), "STRFTIME")
    signs = check_pattern(str(sole(mean(node.args["format"]), "the pattern of STRFTIME")))
    whole_date = sql.cast(when.tree, Type.TEXT)
    first, *others = (sql.constant(plain) if plain else _cut(whole_date, *_SIGNS[sign]) for sign, plain in signs)
    tree = first
    for part in others:
        tree = exp.DPipe(this=tree, expression=part, safe=True)
    spellings = _spellings(when.extent, signs)
    if spellings is not None:
        return BoundTree(tree, among(Type.TEXT, spellings, optional=when.optional))
    return BoundTree(tree, texts(sum(len(plain) or _SIGNS[sign][1] for sign, plain in signs), optional=when.optional))


def check_pattern(pattern: str) -> list[tuple[str, str]]:
    """Return the parts of a pattern: a letter after %, or a text as it is; refuse one of other letters.

    >>> check_pattern("%Y/%m")
    [('Y', ''), ('', '/'), ('m', '')]
    """
    signs = [(sign, plain or end) for sign, plain, end in _PATTERN.findall(pattern)]
    if not signs or len(pattern) > _LONGEST_PATTERN or any(sign not in _SIGNS for sign, plain in signs if not plain):
        raise QueryRefused("STRFTIME writes %Y, %m and %d, such as '%Y-%m': or use WEEK(d) and the like.")
    return signs


def _cut(text: exp.Expr, start: int, length: int) -> exp.Expr:
    return exp.Substring(this=text.copy(), start=exp.Literal.number(start), length=exp.Literal.number(length))


def spelled(when: date, signs: list[tuple[str, str]]) -> str:
    """Return a date in writing.

    >>> spelled(date(2024, 2, 29), check_pattern("%m/%Y"))
    '02/2024'
    """
    text = when.isoformat()
    return "".join(plain or text[_SIGNS[sign][0] - 1 :][: _SIGNS[sign][1]] for sign, plain in signs)


def _spellings(extent: ExpressionDomain, signs: list[tuple[str, str]]) -> list[str] | None:
    """Return how the days of a range are written, each once; None if they are many."""
    values = extent.values
    if values is None:
        low, high = (day(int(end)) for end in extent.ends)
        if (high - low).days > _MOST_LISTED_DAYS:
            return None
        values = tuple(low + timedelta(days=number) for number in range((high - low).days + 1))
    return list(dict.fromkeys(spelled(value, signs) for value in values if isinstance(value, date)))


_casting = partial(
    SqlFunction,
    on_rows=_recast,
    on_answers=NodeRule(answers.cast),
    rewritten=_rounded_answer,
    range=answers.increasing_range,
    work=TextWork(Width.WRITTEN),
)

FUNCTIONS = (
    _casting("CAST", exp.Cast, arguments=("this", "to")),
    _casting("TRY_CAST", exp.TryCast, arguments=("this", "to", "safe"), in_postgres=False),
    SqlFunction(
        "STRFTIME",
        exp.TimeToStr,
        _written_date,
        ("this", "format"),
        ("TO_CHAR",),
        on_answers=lambda when, pattern: spelled(when, check_pattern(pattern)),
        types=AnswerTypes(Type.DATE, Type.TEXT),
        work=TextWork(Width.LONGEST, growth=3),
    ),
)
