"""Splitting: an expression over groups is taken apart into the keys and aggregates it is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from incrowd.errors import QuestionRefused
from incrowd.queries.language.expressions import NAMED, refusal
from incrowd.queries.language.plan import Scope
from incrowd.queries.language.trees import column

_AGGREGATES = ("MEAN", "HISTOGRAM")


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is one aggregate, with its FILTER if it has one.

    >>> is_aggregate(exp.Filter(this=exp.Count(this=exp.Star())))
    True
    """
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper() in _AGGREGATES
    return isinstance(
        node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls | exp.Window
    )


def has_aggregate(node: exp.Expr) -> bool:
    """Return whether an aggregate stands somewhere in a node.

    >>> has_aggregate(exp.Neg(this=exp.Count(this=exp.Star())))
    True
    """
    return any(is_aggregate(part) for part in node.walk())


def qualified(node: exp.Expr, scope: Scope) -> exp.Expr:
    """Return an expression in which every column says the source it is from, by the name declared for it."""

    def change(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or isinstance(part.this, exp.Star):
            return part
        source, found = scope.find(part)
        return column(found.name, source)

    return node.copy().transform(change)


def split(node: exp.Expr, keys: Sequence[exp.Expr], aggregate: Callable[[exp.Expr], str]) -> exp.Expr:
    """Return an expression over k1, k2, … for keys, and over the names that `aggregate` gives to aggregates.

    Preconditions: the node and the keys are qualified.

    >>> split(exp.Neg(this=exp.column("x")), [exp.column("x")], lambda _: "a1").sql()
    '-k1'
    """
    node = node.unnest()
    if is_aggregate(node):
        return exp.column(aggregate(node))
    for place, key in enumerate(keys, 1):
        if node == key:
            return exp.column(f"k{place}")
    if isinstance(node, exp.Column):
        raise QuestionRefused(
            f"{node.name!r} is a value of single rows, which never leave: put it after GROUP BY, or into COUNT or AVG."
        )
    if isinstance(node, exp.Query) or (isinstance(node, exp.Anonymous) and str(node.this).upper() not in NAMED):
        raise refusal(node)
    found = node.copy()
    for part, value in node.args.items():
        if isinstance(value, exp.Expr):
            found.set(part, _again(node, value, keys, aggregate))
        elif isinstance(value, list):
            found.set(part, [split(v, keys, aggregate) if isinstance(v, exp.Expr) else v for v in value])
    return found


def _again(
    parent: exp.Expr,
    child: exp.Expr,
    keys: Sequence[exp.Expr],
    aggregate: Callable[[exp.Expr], str],
) -> exp.Expr:
    found = split(child, keys, aggregate)
    plain = isinstance(found, exp.Column | exp.Literal | exp.Func | exp.Paren | exp.Boolean | exp.Null)
    loose = isinstance(parent, exp.Binary | exp.Unary | exp.Predicate) and (
        not plain or isinstance(found, exp.Connector)
    )
    return exp.Paren(this=found) if loose else found
