"""Limiting: of each person only so many rows, or groups, chosen by that person's own rows alone.

Whoever has more than may take part keeps those that come first by a hash of the person and the row, or of the person
and the group.  So the choice differs from person to person and prefers no value: of many people with the same groups,
each group keeps about the same share.  It is a function of that person's rows alone, and the same on every engine.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.queries.language.trees import alias, case, cast, column, constant, operation, select, subquery
from incrowd.queries.question import PERSON

PLACE, TWIN = "_place", "_twin"
"""The columns in which rows or groups are numbered, and rows that are alike."""


def first_rows(query: exp.Query, by: Sequence[str], order: Sequence[exp.Expr], most: int) -> exp.Query:
    """Return a query with at most so many rows for each value of `by`, the first in the order given.

    >>> first_rows(select([alias(column("x"), "x")], exp.Table(this="t")), ["x"], [column("x")], 2).named_selects
    ['x']
    """
    return _first(query, _numbered(query, exp.RowNumber(), by, order), most)


def own_rows(query: exp.Query, names: Sequence[str], most: int, decimals: Collection[str] = frozenset()) -> exp.Query:
    """Return a query with at most so many rows of each person, whichever rows come first by a hash of their own.

    A row is told by the columns in `names`.  Rows of a person that are alike in all of them are numbered, and the
    number is hashed with them: so every row has the same chance, however often it occurs, and which of two rows that
    are alike has which number makes no difference.  The multiset that is taken is a function of the multiset of the
    person's own rows: neither other people nor the order of storage has any influence on it.

    >>> query = select([alias(column("x"), "x"), alias(column("p"), PERSON)], exp.Table(this="t"))
    >>> own_rows(query, ["x"], 1).named_selects
    ['x', '_person']
    """
    if not names:
        return first_rows(query, [PERSON], [column(PERSON)], most)
    twins = _numbered(query, exp.RowNumber(), [PERSON, *names], [column(PERSON)], TWIN)
    order = scrambled(names, decimals, (TWIN,))
    return _first(query, _numbered(twins, exp.RowNumber(), [PERSON], order), most)


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
    return _first(query, _numbered(query, exp.DenseRank(), [PERSON], scrambled(keys, decimals)), most)


def scrambled(
    names: Sequence[str], decimals: Collection[str] = frozenset(), beside: Sequence[str] = ()
) -> list[exp.Expr]:
    """Return an order by a hash of the person, of columns and of what stands `beside`, then by the columns themselves.

    It is the same on every engine: of decimals, which engines spell differently, the hash takes whole steps.

    >>> [type(tree).__name__ for tree in scrambled(["x", "y"], decimals={"y"})]
    ['MD5', 'Column', 'Column']
    """
    texts = [_steps(item) if item in decimals else cast(column(item), Type.TEXT) for item in (PERSON, *names, *beside)]
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


def _numbered(
    query: exp.Query, number: exp.Expr, by: Sequence[str], order: Sequence[exp.Expr], as_name: str = PLACE
) -> exp.Select:
    """Return the columns of a query, and beside them the number of each row among those with the same `by`."""
    ordered = exp.Order(expressions=[exp.Ordered(this=tree.copy(), nulls_first=False) for tree in order])
    window = exp.Window(this=number, partition_by=[column(item) for item in by], order=ordered)
    names = [column(item.alias_or_name) for item in query.expressions]
    return select([*names, alias(window, as_name)], subquery(query, "t1"))


def _first(query: exp.Query, numbered: exp.Select, most: int) -> exp.Select:
    """Return the columns of a query of the rows whose number is small enough."""
    few = exp.LTE(this=column(PLACE), expression=exp.Literal.number(most))
    return select([column(item.alias) for item in query.expressions], subquery(numbered, "t1"), few)
