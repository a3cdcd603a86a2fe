"""People: a subquery grouped by person makes rows of each person's own rows, exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.language.aggregates import aggregate_call, qualify, split
from incrowd.queries.language.domain import BoundTree, ExpressionDomain, decimals, whole
from incrowd.queries.language.expressions.binder import binder, title
from incrowd.queries.language.expressions.function import condition, within
from incrowd.queries.language.joins import JoinedRows
from incrowd.queries.language.row_query import Field, RowQuery, first_rows, hash_order
from incrowd.queries.language.trees import (
    alias,
    as_decimal,
    cast,
    clamped,
    column,
    constant,
    operation,
    select,
    subquery,
)
from incrowd.queries.question import PERSON, AggregateKind

_BITS = 52


def person_rows(query: exp.Select, found: JoinedRows, inner: exp.Select) -> RowQuery:
    """Return one row for each person (and each value of further keys) with exact aggregates of that person's rows.

    Rows of a group are all of one person, so each row of the result is a function of that person's rows alone.  Sums
    are sums of whole numbers, decimals in fixed point, so that the order of rows plays no part.  There is one row a
    person, or with further keys as many as there are values of them, and never more than rows before: of keys that
    can be listed, no more are taken than were listed, the first by a hash, should the engine find others.

    Each dataset has a guarantee of its own, for somebody who leaves it and stays in all others.  That must take away
    rows of the result and change none: so it must take away all rows of that person before, as it does from sources of
    one dataset each, joined; and not only some of them, as it would from a UNION ALL of several datasets.

    Preconditions: `inner` selects from the sources of the query under its condition.
    """
    _check_datasets(found)
    nodes, keys = _keys(query, found)
    means = {f"k{place}": binder(found.scope.resolve)(node) for place, node in enumerate(nodes, 1) if node in keys}
    exacts: dict[str, BoundTree] = {}
    texts: dict[str, str] = {}

    def name(node: exp.Expr) -> str:
        meaning = _exact(node, found)
        text = meaning.tree.sql("duckdb")
        if text not in texts:
            texts[text] = f"a{len(texts) + 1}"
            exacts[texts[text]] = meaning
        return texts[text]

    items = _items(query, found, nodes, name)
    having = query.args.get("having")
    wanted = None if having is None else split(qualify(having.this, found.scope), nodes, name)
    columns = means | exacts
    resolve = binder(lambda asked_: BoundTree(column(asked_.name, "t1"), columns[asked_.name].extent))
    bound = [(item, None if item.person else resolve(tree)) for item, tree in items]
    kept = None if wanted is None else condition(resolve(wanted), "HAVING").tree
    grouped = inner.copy()
    grouped.set("expressions", [*(alias(m.tree, n) for n, m in columns.items()), alias(found.person, PERSON)])
    grouped.set("group", exp.Group(expressions=[*(m.tree.copy() for m in means.values()), found.person]))
    most = _most(found.rows.most, [meaning.extent for meaning in means.values()])
    few = bool(means) and most < found.rows.most
    parts = found.rows.decimal_person | {item for item, m in means.items() if m.extent.type is Type.DECIMAL}
    each = first_rows(grouped, [PERSON], hash_order(list(means), parts), most) if few else grouped
    trees = [alias(meaning.tree, item.name) for item, meaning in bound if meaning is not None]
    fields = tuple(item if meaning is None else replace(item, extent=meaning.extent) for item, meaning in bound)
    return replace(
        found.rows,
        query=select([*trees, alias(column(PERSON, "t1"), PERSON)], subquery(each, "t1"), kept),
        fields=fields,
        most=most,
        withheld={},
        names=(),
        relation=None,
    )


def _check_datasets(found: JoinedRows) -> None:
    """Raise where somebody who leaves one dataset would leave rows behind in a source of another."""
    if any(len(set(rows.datasets)) > 1 for _, rows in found.scope.sources):
        raise QuestionRefused(
            "rows of several datasets are not aggregated person by person: somebody who leaves one of them would "
            "change the result of the others. GROUP BY the person in a subquery of each dataset, and JOIN these."
        )


def _keys(query: exp.Select, found: JoinedRows) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Return all that a subquery groups by, and what of it does not tell people apart."""
    group = query.args.get("group")
    nodes = [qualify(node, found.scope) for node in group.expressions] if group is not None else []
    people = [node for node in nodes if isinstance(node, exp.Column) and found.scope.find(node)[1].person]
    if not found.rows.private:
        raise QuestionRefused(
            "a public table is joined as it is, not aggregated before: aggregate in the outermost query."
        )
    if not people or (group is not None and any(v for part, v in group.args.items() if part != "expressions")):
        raise QuestionRefused(
            "a subquery aggregates the rows of one person at a time: GROUP BY the column that tells people apart "
            "(and further columns, if wanted), or aggregate in the outermost query."
        )
    return nodes, [node for node in nodes if node not in people]


def _items(
    query: exp.Select, found: JoinedRows, nodes: list[exp.Expr], name: Callable[[exp.Expr], str]
) -> list[tuple[Field, exp.Expr]]:
    items: list[tuple[Field, exp.Expr]] = []
    for item in query.expressions:
        plain = item.unalias()
        called = item.alias_or_name
        if not called or called.startswith("_"):
            raise InvalidParameter("give every column of a subquery a name by AS, not beginning with an underscore.")
        if isinstance(plain, exp.Column) and not isinstance(plain.this, exp.Star):
            source = found.scope.find(plain)[1]
            if source.person:
                items.append((Field(called, source.extent, person=True), plain))
                continue
        tree = split(qualify(plain, found.scope), nodes, name)
        items.append((Field(called, whole(None, None)), tree))
    names = [item.name.casefold() for item, _ in items]
    if len(set(names)) < len(names):
        raise InvalidParameter("the columns of a subquery need different names.")
    return items


def _exact(node: exp.Expr, found: JoinedRows) -> BoundTree:
    """Return an aggregate of the rows of one person, of whom there are at most as many as declared."""
    most = found.rows.most
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct) and len(node.this.expressions) == 1:
        different = binder(found.scope.resolve)(node.this.expressions[0])
        return BoundTree(exp.Count(this=exp.Distinct(expressions=[different.tree.copy()])), whole(0, most))
    wish = aggregate_call(node, found.scope)
    if wish.kind is AggregateKind.ROWS:
        return BoundTree(exp.Count(this=exp.Star()), whole(1, most))
    if wish.value is None or wish.kind not in (
        AggregateKind.COUNT,
        AggregateKind.SUM,
        AggregateKind.MEAN,
        AggregateKind.QUANTILE,
    ):
        raise QuestionRefused(f"{title(node)} is not computed person by person: COUNT, SUM, AVG, MIN and MAX are.")
    value = wish.value
    counted = exp.Count(this=value.tree.copy())
    if wish.kind is AggregateKind.COUNT:
        return BoundTree(counted, whole(0, most))
    if wish.kind is AggregateKind.QUANTILE:
        kinds = {Fraction(0): exp.Min, Fraction(1): exp.Max}
        if wish.at not in kinds:
            raise QuestionRefused("quantiles are not computed person by person: MIN and MAX are.")
        return BoundTree(kinds[wish.at](this=value.tree.copy()), value.extent)
    low, high = value.extent.ends
    ends = within(min(low, most * low), max(high, most * high), "SUM")
    total = _total(value, most)
    if wish.kind is AggregateKind.SUM:
        kind = value.extent.type
        extent = ExpressionDomain(kind, *ends) if kind is Type.INTEGER else decimals(*ends, optional=True)
        return BoundTree(total, replace(extent, optional=value.extent.optional))
    exact_total = cast(total, Type.DECIMAL) if value.extent.type is Type.INTEGER else total
    divided = exp.Div(
        this=exact_total, expression=exp.Nullif(this=counted, expression=exp.Literal.number(0)), typed=False, safe=False
    )
    mean = clamped(divided, float(low), float(high))
    return BoundTree(mean, decimals(low, high, optional=value.extent.optional))


def _total(value: BoundTree, most: int) -> exp.Expr:
    """Return a sum that is exact whatever the order: of whole numbers, or of whole multiples of a power of two."""
    if value.extent.type is Type.INTEGER:
        return cast(exp.Sum(this=value.tree.copy()), Type.INTEGER)
    low, high = value.extent.ends
    largest = max(abs(low), abs(high)) * most
    steps = _BITS - max(0, math.frexp(float(largest))[1]) if largest else 0
    scale = constant(math.ldexp(1.0, steps))
    units = cast(exp.Round(this=operation(exp.Mul, as_decimal(value), scale)), Type.INTEGER)
    total = cast(cast(exp.Sum(this=units), Type.INTEGER), Type.DECIMAL)
    return exp.Div(this=total, expression=scale.copy(), typed=False, safe=False)


def _most(most: int, extents: list[ExpressionDomain]) -> int:
    members = [extent.members() for extent in extents]
    known = [
        len(values) + extent.optional for values, extent in zip(members, extents, strict=True) if values is not None
    ]
    return min(most, math.prod(known)) if len(known) == len(members) else most
