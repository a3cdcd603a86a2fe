"""Limiting: of each person only so many rows, or groups, chosen by that person's own rows alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.queries.language.trees import alias, case, cast, column, constant, operation, present, select, subquery
from incrowd.queries.question import PERSON

PLACE = "_place"
"""The column in which rows or groups are numbered."""


def first_rows(query: exp.Query, by: Sequence[str], order: Sequence[exp.Expr], most: int) -> exp.Query:
    """Return a query with at most so many rows for each value of `by`, the first in the order given.

    >>> first_rows(select([alias(column("x"), "x")], exp.Table(this="t")), ["x"], [column("x")], 2).named_selects
    ['x']
    """
    return _numbered(query, exp.RowNumber(), by, order, most)


def with_owned(table: exp.Table, names: Sequence[str], person: exp.Column) -> exp.Select:
    """Return columns of the rows of a table that say whose they are, each with how many of them that person has.

    >>> table = exp.Table(this=exp.to_identifier("t"), alias=exp.TableAlias(this=exp.to_identifier("t0")))
    >>> with_owned(table, ["x", "p"], column("p", "t0")).named_selects
    ['x', 'p', '_place']
    """
    owned = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[person.copy()])
    return select([*(alias(column(each), each) for each in names), alias(owned, PLACE)], table, present(person.copy()))


def first_groups(
    query: exp.Query, keys: Sequence[str], most: int, decimals: Collection[str] = frozenset()
) -> exp.Query:
    """Return a query with the rows of at most so many groups of each person, whichever groups come first by a hash.

    Which groups these are depends on the person's own rows alone: rows are ranked among the rows of one person, by
    their keys, and equal keys have equal ranks.

    >>> query = select([alias(column("x"), "k1"), alias(column("p"), PERSON)], exp.Table(this="t"))
    >>> first_groups(query, ["k1"], 1).named_selects
    ['k1', '_person']
    """
    return _numbered(query, exp.DenseRank(), [PERSON], scrambled(keys, decimals), most)


def scrambled(names: Sequence[str], decimals: Collection[str] = frozenset()) -> list[exp.Expr]:
    """Return an order by a hash of columns, then by the columns themselves, so that no value is preferred.

    It is the same on every engine: of decimals, which engines spell differently, the hash takes whole steps.

    >>> [type(tree).__name__ for tree in scrambled(["x", "y"], decimals={"y"})]
    ['MD5', 'Column', 'Column']
    """
    if not names:
        return [column(PERSON)]
    texts = [_steps(item) if item in decimals else cast(column(item), Type.TEXT) for item in names]
    written = [exp.Coalesce(this=text, expressions=[exp.Literal.string("")]) for text in texts]
    together: exp.Expr = written[0]
    for other in written[1:]:
        bar = exp.DPipe(this=together, expression=exp.Literal.string("|"), safe=True)
        together = exp.DPipe(this=bar, expression=other, safe=True)
    return [exp.MD5(this=together), *(column(item) for item in names)]


def _steps(item: str) -> exp.Expr:
    """Return in how many steps of 1/1024 a decimal lies from zero, as text; NULL where it lies far off."""
    near = operation(exp.LT, exp.Abs(this=column(item)), constant(2.0**40))
    steps = exp.Floor(this=operation(exp.Mul, column(item), constant(2.0**10)))
    return case((near, cast(cast(steps, Type.INTEGER), Type.TEXT)))


def _numbered(query: exp.Query, number: exp.Expr, by: Sequence[str], order: Sequence[exp.Expr], most: int) -> exp.Query:
    ordered = exp.Order(expressions=[exp.Ordered(this=tree.copy(), nulls_first=False) for tree in order])
    window = exp.Window(this=number, partition_by=[column(item) for item in by], order=ordered)
    names = [item.alias for item in query.expressions]
    inner = select([*(column(item) for item in names), alias(window, PLACE)], subquery(query, "t1"))
    first = exp.LTE(this=column(PLACE), expression=exp.Literal.number(most))
    return select([column(item) for item in names], subquery(inner, "t1"), first)
