"""Casts: a value as another type; what cannot be read as one is NULL, and no row can make a cast fail."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import QuestionRefused
from incrowd.queries.language.domain import FIRST, LAST, BoundTree, ExpressionDomain, calendar, listed, texts, whole
from incrowd.queries.language.expressions import answers
from incrowd.queries.language.expressions.arithmetic import rounded
from incrowd.queries.language.expressions.dates import written
from incrowd.queries.language.expressions.function import Mean, NodeRule, SqlFunction
from incrowd.queries.language.trees import (
    as_decimal,
    between,
    case,
    cast,
    constant,
    fixed,
    function,
    only_type,
    operation,
    try_cast,
)

GREATEST_DOUBLE = 1.7976931348623157e308

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
    if kind is None or target.args.get("nested"):
        raise QuestionRefused("values are cast to INTEGER, DOUBLE, TEXT, DATE or BOOLEAN: choose one of them.")
    if kind is Type.DATE and isinstance(node.this, exp.Literal) and node.this.is_string:
        return fixed(written(str(node.this.this)), Type.DATE)
    part = mean(node.this)
    if kind is Type.DECIMAL and target.expressions and part.extent.numeric:
        digits = [each.this for each in target.expressions][1:] or [exp.Literal.number(0)]
        return rounded(exp.Round(this=node.this.copy(), decimals=digits[0].copy()), mean)
    if part.extent.type is kind:
        return part
    found = _cast(part, kind)
    if found is None:
        raise QuestionRefused(
            f"{only_type(part.extent)} is not cast to {kind}: use CASE WHEN … THEN … to say what it means."
        )
    return found


def _cast(part: BoundTree, kind: Type) -> BoundTree | None:
    extent = part.extent
    match extent.type, kind:
        case Type.INTEGER, Type.DECIMAL:
            return BoundTree(
                as_decimal(part),
                listed(ExpressionDomain(kind, extent.low, extent.high, optional=extent.optional), (part,), float),
            )
        case Type.DECIMAL, Type.INTEGER:
            return rounded(exp.Round(this=exp.Null()), lambda _: part)
        case Type.BOOLEAN, Type.INTEGER:
            tree = case((part.tree, constant(1)), (exp.Not(this=exp.Paren(this=part.tree.copy())), constant(0)))
            return BoundTree(tree, listed(whole(0, 1, optional=extent.optional), (part,), int))
        case Type.INTEGER, Type.BOOLEAN:
            tree = operation(exp.NEQ, part.tree, constant(0))
            return BoundTree(tree, ExpressionDomain(kind, values=(False, True), optional=extent.optional))
        case Type.BOOLEAN, Type.TEXT:
            tree = case(
                (part.tree, constant("true")), (exp.Not(this=exp.Paren(this=part.tree.copy())), constant("false"))
            )
            return BoundTree(
                tree, listed(texts(5, optional=extent.optional), (part,), lambda value: str(value).lower())
            )
        case ((Type.INTEGER | Type.DATE | Type.DECIMAL), Type.TEXT):
            found = texts(40, optional=extent.optional)
            if extent.type is Type.DECIMAL:  # said to be one, since engines spell them differently
                zero = operation(exp.EQ, part.tree, constant(0.0))  # which zero of a group an engine shows is chance
                return BoundTree(
                    case((zero, constant("0.0")), default=cast(cast(part.tree, Type.DECIMAL), kind)), found
                )
            return BoundTree(cast(part.tree, kind), listed(found, (part,), str))
        case Type.TEXT, _:
            return _read(part, kind)
    return None


def _read(part: BoundTree, kind: Type) -> BoundTree | None:
    """Return a text read as a number or a date; not a number, infinite or beyond the calendar is NULL."""
    tree = try_cast(part.tree, kind)
    match kind:
        case Type.INTEGER:
            return BoundTree(tree, ExpressionDomain(kind))
        case Type.DECIMAL:
            finite = operation(exp.LTE, function(exp.Abs, tree), constant(GREATEST_DOUBLE))
            limit = Fraction(GREATEST_DOUBLE)
            return BoundTree(case((finite, tree)), ExpressionDomain(kind, -limit, limit))
        case Type.DATE:
            return BoundTree(case((between(tree, constant(FIRST), constant(LAST)), tree)), calendar(optional=True))
    return None


def _rounded_answer(node: exp.Expr) -> exp.Expr:
    """Return a cast of an answer to DECIMAL(p, s) as ROUND(x, s), any other as it is."""
    if not (node.args["to"].expressions and node.is_type(exp.DataType.Type.DECIMAL)):
        return node
    digits = [part.this for part in node.args["to"].expressions][1:] or [exp.Literal.number(0)]
    return exp.Round(this=exp.cast(node.this.copy(), "DOUBLE"), decimals=digits[0].copy())


def _function(name: str, node: type[exp.Expr], *arguments: str, in_postgres: bool) -> SqlFunction:
    return SqlFunction(
        name,
        node,
        _recast,
        ("this", "to", *arguments),
        on_answers=NodeRule(answers.cast),
        rewritten=_rounded_answer,
        range=answers.increasing_range,
        in_postgres=in_postgres,
    )


FUNCTIONS = (
    _function("CAST", exp.Cast, in_postgres=True),
    _function("TRY_CAST", exp.TryCast, "safe", in_postgres=False),
)
