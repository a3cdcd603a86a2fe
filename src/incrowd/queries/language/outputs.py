"""Outputs: what is made of the noisy answer: arithmetic, conditions, order; rows have no say in it any more."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.language.expressions import title

_NUMERIC = (
    exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Sqrt, exp.Ln,
    exp.Exp, exp.Sign,
)  # fmt: skip
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between)
_LOGIC = (exp.And, exp.Or, exp.Not)
_CHOICES = (exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Least, exp.Greatest)
_PLAIN = (exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Is)

ALLOWED = (*_PLAIN, *_NUMERIC, *_COMPARISONS, *_LOGIC, *_CHOICES)
"""The kinds of nodes of which expressions over the answer are made."""


def output(tree: exp.Expr, types: Mapping[str, Type]) -> exp.Expression:
    """Return an expression over keys and aggregates in the few kinds of nodes that answers are computed with.

    Preconditions: every column in it is in `types`.

    >>> output(exp.Neg(this=exp.column("a1")), {"a1": Type.DECIMAL}).sql()
    '-a1'
    """
    plain = tree.transform(_plain)
    for node in plain.walk():
        if not isinstance(node, ALLOWED):
            raise QuestionRefused(
                f"{title(node)} is not computed on noisy answers: use arithmetic, CASE, ROUND and comparisons there, "
                "or apply it to the rows, inside the aggregate or after GROUP BY."
            )
        if isinstance(node, exp.In) and not node.expressions:
            raise QuestionRefused("IN takes a list of values such as ('a', 'b'), not another query.")
    if not isinstance(plain, exp.Expression):
        raise TypeError
    _kind(plain, types)
    return plain


def truth(tree: exp.Expression, types: Mapping[str, Type]) -> exp.Expression:
    """Return the expression if it is a condition.

    >>> truth(exp.GT(this=exp.column("a1"), expression=exp.Literal.number(5)), {"a1": Type.DECIMAL}).sql()
    'a1 > 5'
    """
    if _kind(tree, types) not in (Type.BOOLEAN, None):
        raise InvalidParameter("HAVING takes a condition such as COUNT(*) > 10.")
    return tree


def _kind(node: exp.Expr, types: Mapping[str, Type]) -> Type | None:
    """Return the type of an expression, or raise if its parts do not fit; numbers count as decimals, NULL as None."""
    if isinstance(node, exp.Column):
        kind = types[node.name]
        return Type.DECIMAL if kind is Type.INTEGER else kind
    if isinstance(node, exp.Literal):
        return Type.TEXT if node.is_string else Type.DECIMAL
    if isinstance(node, exp.Boolean):
        return Type.BOOLEAN
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Paren):
        return _kind(node.this, types)
    if isinstance(node, exp.Is):
        _kind(node.this, types)
        return Type.BOOLEAN
    if isinstance(node, exp.Case | exp.If):
        return _chosen(node, types)
    parts = {_kind(part, types) for part in node.iter_expressions()} - {None}
    wanted = Type.DECIMAL if isinstance(node, _NUMERIC) else Type.BOOLEAN if isinstance(node, _LOGIC) else None
    if len(parts) > 1 or (wanted is not None and not parts <= {wanted}):
        raise InvalidParameter(
            f"the parts of {title(node)} are of different types, or not of the type it works on: compare and compute "
            "numbers with numbers and texts with texts here; put conditions on dates into WHERE."
        )
    return Type.BOOLEAN if isinstance(node, _COMPARISONS) else wanted or next(iter(parts), None)


def _chosen(node: exp.Expr, types: Mapping[str, Type]) -> Type | None:
    branches = node.args.get("ifs") or [node]
    tests = {_kind(branch.this, types) for branch in branches} - {None}
    base = node.this if isinstance(node, exp.Case) else None
    results = [branch.args["true"] for branch in branches]
    results += [node.args[part] for part in ("default", "false") if node.args.get(part) is not None]
    kinds = {_kind(result, types) for result in results} - {None}
    wanted = {Type.BOOLEAN} if base is None else {_kind(base, types)}
    if len(kinds) > 1 or not tests <= wanted:
        raise InvalidParameter("CASE needs conditions after WHEN, and results of one type.")
    return next(iter(kinds), None)


def _plain(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and str(node.this).upper() == "CLAMP":
        if len(node.expressions) != 3:
            raise InvalidParameter("write CLAMP(x, low, high).")
        value, low, high = node.expressions
        ifs = [
            exp.If(this=exp.LT(this=value.copy(), expression=low.copy()), true=low.copy()),
            exp.If(this=exp.GT(this=value.copy(), expression=high.copy()), true=high.copy()),
        ]
        return exp.Case(ifs=ifs, default=value.copy())
    if isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
        return exp.Case(ifs=[exp.If(this=node.this, true=node.args["true"])], default=node.args.get("false"))
    return node
