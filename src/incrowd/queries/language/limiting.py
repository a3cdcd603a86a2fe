"""Limiting: of each person only so many rows, or groups, chosen by that person's own rows alone."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.queries.language.trees import alias, cast, column, select, subquery
from incrowd.queries.question import PERSON

PLACE = "_place"
"""The column in which rows or groups are numbered."""


def first_rows(query: exp.Query, by: Sequence[str], order: Sequence[exp.Expr], most: int) -> exp.Query:
    """Return a query with at most so many rows for each value of `by`, the first in the order given.

    >>> first_rows(select([alias(column("x"), "x")], exp.Table(this="t")), ["x"], [column("x")], 2).named_selects
    ['x']
    """
    return _numbered(query, exp.RowNumber(), by, order, most)


def first_groups(query: exp.Query, keys: Sequence[str], most: int) -> exp.Query:
    """Return a query with the rows of at most so many groups of each person, whichever groups come first by a hash.

    Which groups these are depends on the person's own rows alone: rows are ranked among the rows of one person, by
    their keys, and equal keys have equal ranks.

    >>> query = select([alias(column("x"), "k1"), alias(column("p"), PERSON)], exp.Table(this="t"))
    >>> first_groups(query, ["k1"], 1).named_selects
    ['k1', '_person']
    """
    return _numbered(query, exp.DenseRank(), [PERSON], scrambled(keys), most)


def scrambled(names: Sequence[str]) -> list[exp.Expr]:
    """Return an order by a hash of columns, then by the columns themselves, so that no value is preferred.

    >>> [type(tree).__name__ for tree in scrambled(["x", "y"])]
    ['MD5', 'Column', 'Column']
    """
    if not names:
        return [column(PERSON)]
    written = [exp.Coalesce(this=cast(column(item), Type.TEXT), expressions=[exp.Literal.string("")]) for item in names]
    together: exp.Expr = written[0]
    for other in written[1:]:
        bar = exp.DPipe(this=together, expression=exp.Literal.string("|"), safe=True)
        together = exp.DPipe(this=bar, expression=other, safe=True)
    return [exp.MD5(this=together), *(column(item) for item in names)]


def _numbered(query: exp.Query, number: exp.Expr, by: Sequence[str], order: Sequence[exp.Expr], most: int) -> exp.Query:
    ordered = exp.Order(expressions=[exp.Ordered(this=tree.copy(), nulls_first=False) for tree in order])
    window = exp.Window(this=number, partition_by=[column(item) for item in by], order=ordered)
    names = [item.alias for item in query.expressions]
    inner = select([*(column(item) for item in names), alias(window, PLACE)], subquery(query, "t1"))
    first = exp.LTE(this=column(PLACE), expression=exp.Literal.number(most))
    return select([column(item) for item in names], subquery(inner, "t1"), first)
