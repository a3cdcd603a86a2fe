"""Outputs: expressions over the names of a noisy answer, in the few kinds of nodes that are computed there."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.language.expressions.binder import title
from incrowd.queries.language.expressions.calendar import check_pattern
from incrowd.queries.language.expressions.dates import written
from incrowd.queries.language.expressions.function import COMPARED, AnswerTypes
from incrowd.queries.language.expressions.table import ANSWER_NAMES, BY_NODE, function_of
from incrowd.queries.language.reading import check_size
from incrowd.queries.language.trees import copied

_TYPES = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"), Type.DECIMAL),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR"), Type.TEXT),
    "DATE": Type.DATE,
}
_UNITS = ("YEAR", "QUARTER", "MONTH")
_PLAIN = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.DataType, exp.DataTypeParam, exp.Var,
)  # fmt: skip

_COMPUTED = tuple(node for node, function in BY_NODE.items() if function.on_answers is not None)
ALLOWED: tuple[type[exp.Expr], ...] = (*_PLAIN, *_COMPUTED)
"""The kinds of nodes of which expressions over the answer are made."""


def output(tree: exp.Expr, types: Mapping[str, Type]) -> exp.Expression:
    """Return an expression over keys and aggregates in the few kinds of nodes that answers are computed with.

    Preconditions: every column in it is in `types`.

    >>> output(exp.Neg(this=exp.column("a1")), {"a1": Type.DECIMAL}).sql()
    '-a1'
    """
    plain = copied(tree)
    if isinstance(plain, exp.Column) and isinstance(plain.this, exp.Identifier):
        kind_of(plain, types)
        return plain
    plain = _with_dates(plain.transform(_plain, copy=False), types)
    check_size(plain)
    for node in plain.walk():
        if not isinstance(node, ALLOWED):
            raise QuestionRefused(
                f"{title(node)} is not computed on noisy answers: apply it to the rows, inside the aggregate or after "
                f"GROUP BY. On answers there are arithmetic, comparisons, CASE, {', '.join(ANSWER_NAMES)}."
            )
        if isinstance(node, exp.Var) and not isinstance(node.parent, exp.TimestampTrunc | exp.DateTrunc):
            raise QuestionRefused("a word stands here that is no column of the answer: leave it out.")
        if isinstance(node, exp.In) and not node.expressions:
            raise QuestionRefused("IN takes a list of values such as ('a', 'b'), not another query.")
    if not isinstance(plain, exp.Expression):
        raise TypeError
    kind_of(plain, types)
    return plain


def _with_dates(tree: exp.Expr, types: Mapping[str, Type]) -> exp.Expr:
    """Let a text that is compared with a date be a date, and return the expression."""

    def change(node: exp.Expr) -> exp.Expr:
        function = function_of(node)
        sides = list(node.iter_expressions()) if function is not None and function.types == COMPARED else []
        plain = [side.unnest() for side in sides]
        dates = [side for side in plain if isinstance(side, exp.Column) and types.get(side.name) is Type.DATE]
        for side in sides if dates else ():
            if isinstance(side, exp.Literal) and side.is_string:
                side.replace(exp.cast(exp.Literal.string(written(str(side.this)).isoformat()), "DATE"))
        return node

    changed: exp.Expr = tree.transform(change, copy=False)
    return changed


def truth(tree: exp.Expression, types: Mapping[str, Type]) -> exp.Expression:
    """Return the expression if it is a condition.

    >>> truth(exp.GT(this=exp.column("a1"), expression=exp.Literal.number(5)), {"a1": Type.DECIMAL}).sql()
    'a1 > 5'
    """
    if kind_of(tree, types) not in (Type.BOOLEAN, None):
        raise InvalidParameter("HAVING takes a condition such as COUNT(*) > 10.")
    return tree


def kind_of(node: exp.Expr, types: Mapping[str, Type]) -> Type | None:
    """Return the type of an expression, or raise if its parts do not fit; numbers count as decimals, NULL as None.

    >>> kind_of(exp.column("k1"), {"k1": Type.INTEGER}).value
    'decimal'
    """
    if isinstance(node, exp.Column):
        if node.name not in types:
            raise QuestionRefused("GROUPING(x) goes with ROLLUP, CUBE or GROUPING SETS: leave it out.")
        kind = types[node.name]
        return Type.DECIMAL if kind is Type.INTEGER else kind
    if isinstance(node, exp.Literal):
        return Type.TEXT if node.is_string else Type.DECIMAL
    if isinstance(node, exp.Boolean):
        return Type.BOOLEAN
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Paren):
        return kind_of(node.this, types)
    if isinstance(node, exp.Is):
        kind_of(node.this, types)
        return Type.BOOLEAN
    if isinstance(node, exp.Case | exp.If):
        return _chosen(node, types)
    function = function_of(node)
    own = AnswerTypes() if function is None else function.types
    if isinstance(node, exp.DPipe | exp.Cast) or own.takes in (Type.TEXT, Type.DATE):
        return _made(node, own, types)
    parts = {kind_of(part, types) for part in node.iter_expressions()} - {None}
    if len(parts) > 1 or (own.takes is not None and not parts <= {own.takes}):
        raise InvalidParameter(
            f"the parts of {title(node)} are of different types, or not of the type it works on: compare and compute "
            "numbers with numbers and texts with texts here; put conditions on dates into WHERE."
        )
    return own.gives or next(iter(parts), None)


def _made(node: exp.Expr, own: AnswerTypes, types: Mapping[str, Type]) -> Type | None:
    """Return the type of a cast, of a text or of a part of a date, or raise if it is made of something else."""
    kind = kind_of(node.this, types)
    if isinstance(node, exp.Cast):
        target = _TYPES.get(node.args["to"].this.value)
        if target is None or (target is Type.DATE and kind not in (Type.DATE, Type.TEXT, None)):
            raise QuestionRefused("numbers of an answer are cast to INTEGER, DOUBLE or TEXT: choose one of them.")
        return target
    if isinstance(node, exp.DPipe):
        kind_of(node.expression, types)
        return Type.TEXT
    if kind not in (own.takes, None):
        words = "dates" if own.takes is Type.DATE else "texts"
        raise InvalidParameter(f"{title(node)} works on {words} of the answer.")
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        if node.args["unit"].name.upper() not in _UNITS:
            raise QuestionRefused("dates of an answer are truncated to year, quarter or month: or group by the others.")
        return Type.DATE
    for part in ("expression", "format"):
        if node.args.get(part) is not None and not isinstance(node.args[part], exp.Literal):
            raise QuestionRefused(f"what {title(node)} takes beside a column of the answer is written out.")
    if isinstance(node, exp.TimeToStr):
        check_pattern(str(node.args["format"].this))
    return own.gives


def _chosen(node: exp.Expr, types: Mapping[str, Type]) -> Type | None:
    branches = node.args.get("ifs") or [node]
    tests = {kind_of(branch.this, types) for branch in branches} - {None}
    base = node.this if isinstance(node, exp.Case) else None
    results = [branch.args["true"] for branch in branches]
    results += [node.args[part] for part in ("default", "false") if node.args.get(part) is not None]
    kinds = {kind_of(result, types) for result in results} - {None}
    required = {Type.BOOLEAN} if base is None else {kind_of(base, types)}
    if len(kinds) > 1 or not tests <= required:
        raise InvalidParameter("CASE needs conditions after WHEN, and results of one type.")
    return next(iter(kinds), None)


def _plain(node: exp.Expr) -> exp.Expr:
    function = function_of(node)
    return node if function is None or function.rewritten is None else function.rewritten(node)
