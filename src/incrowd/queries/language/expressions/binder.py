"""Expressions: what each part of a row means; every function on the list is total, every other is refused."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.core.rounding import exact
from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.language.domain import BoundTree, among
from incrowd.queries.language.expressions.function import LARGEST, Mean
from incrowd.queries.language.expressions.table import BY_NAME, BY_NODE, FUNCTIONS, NAMES
from incrowd.queries.language.trees import constant, fixed

_SMALL, _GROWTH = 500, 20
"""A tree has at most so many parts, and so many more for each part of what was asked."""


def binder(resolve: Callable[[exp.Column], BoundTree]) -> Mean:
    """Return what expressions mean where columns mean what `resolve` says.

    >>> binder(lambda _: None)(exp.Add(this=exp.Literal.number(1), expression=exp.Literal.number(2))).extent.values
    (3,)
    """

    def mean(node: exp.Expr) -> BoundTree:
        if isinstance(node, exp.Paren):
            return mean(node.this)
        if isinstance(node, exp.Column):
            return resolve(node)
        if isinstance(node, exp.Literal):
            return _literal(node)
        if isinstance(node, exp.Boolean):
            return fixed(bool(node.this), Type.BOOLEAN)
        named = isinstance(node, exp.Anonymous)
        function = BY_NAME.get(str(node.this).upper()) if named else BY_NODE.get(type(node))
        if function is None:
            raise refusal(node)
        if any(value and name not in function.arguments for name, value in node.args.items()):
            raise QuestionRefused(
                f"{title(node)} is answered in its plain form only: leave out what follows its arguments."
            )
        return _small(function.on_rows(node, mean), node)

    return mean


def _literal(node: exp.Literal) -> BoundTree:
    """Return what a number or a text that is written out means."""
    written = str(node.this)
    if node.args.get("is_string"):
        if len(written) > 1000:
            raise InvalidParameter("a text in a question has at most 1,000 characters.")
        return BoundTree(constant(written), among(Type.TEXT, (written,), optional=False))
    value = exact(written, "a number in the question")
    if abs(value) > LARGEST:
        raise InvalidParameter("numbers in a question lie within ±10^15: write a smaller one.")
    if value.denominator == 1 and written.isdigit():
        return BoundTree(constant(int(value)), among(Type.INTEGER, (int(value),), optional=False))
    return BoundTree(constant(float(value)), among(Type.DECIMAL, (float(value),), optional=False))


def _small(meaning: BoundTree, node: exp.Expr) -> BoundTree:
    """Return a meaning, unless its tree has outgrown what was asked.

    What is made safe can name its argument several times, so that what is nested n deep would be written 3^n times.
    """
    size = _size(meaning.tree)
    if size > _SMALL and size > _SMALL + _GROWTH * _size(node):
        raise QuestionRefused(
            f"{title(node)} is nested so that its parts would be computed again and again: "
            "compute the inner part in a subquery under a name, and go on with that name."
        )
    return meaning


def _size(tree: exp.Expr) -> int:
    return sum(1 for _ in tree.walk())


def title(node: exp.Expr) -> str:
    """Return the name under which a part of a question is known.

    >>> title(exp.Sqrt(this=exp.column("x")))
    'SQRT'
    """
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper()[:40]
    if isinstance(node, exp.Func):
        return node.sql_name().upper()
    return type(node).__name__.upper()


def refusal(node: exp.Expr) -> Exception:
    """Return why a kind of expression is not understood, with the nearest that is.

    >>> type(refusal(exp.Window())).__name__
    'QuestionRefused'
    """
    if isinstance(node, exp.Null):
        return InvalidParameter("NULL stands in CASE and COALESCE only: ask whether something is missing by x IS NULL.")
    if isinstance(node, exp.Window):
        return QuestionRefused("OVER shows rows beside each other: GROUP BY first, windows go over the groups.")
    if isinstance(node, exp.AggFunc):
        return QuestionRefused(
            f"{title(node)} cannot stand here: aggregates stand in SELECT, HAVING and ORDER BY, not inside each other."
        )
    if isinstance(node, exp.Query | exp.Subquery | exp.Exists):
        return QuestionRefused(
            "a query inside an expression is computed with after the noise, in SELECT, HAVING and ORDER BY of a "
            "question that is asked alone: where it decides about rows, ask it before and write its number there; for "
            "people use x IN (SELECT …)."
        )
    if isinstance(node, exp.RegexpExtract | exp.RegexpReplace):
        return QuestionRefused(
            "a part of a text is taken by SPLIT_PART(x, '/', 2), LEFT(x, n) or SUBSTRING(x, 2, n), and cases are told "
            "apart by CASE WHEN REGEXP_MATCHES(x, '^…') THEN …: use these instead of a regular expression."
        )
    if isinstance(node, exp.Star):
        return QuestionRefused("* stands for rows, which never leave: name what to count, sum or average.")
    name = title(node)
    near = difflib.get_close_matches(name, [function.name for function in FUNCTIONS], 1)
    hint = f" Did you mean {near[0]}?" if near else f" There are: {', '.join(NAMES)}."
    return QuestionRefused(f"{name} is not among the functions that no row can make fail.{hint}")
