"""Sources: what stands after FROM: tables, subqueries, UNION ALL."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.language import trees as sql
from incrowd.queries.language.aggregates import aggregate_call, has_aggregate, qualify, split
from incrowd.queries.language.domain import BoundTree, ExpressionDomain, decimals, hull, whole
from incrowd.queries.language.expressions.function import condition, title, within
from incrowd.queries.language.expressions.table import binder
from incrowd.queries.language.joins import JoinedRows, is_own, join_memberships, join_rows, same_unit
from incrowd.queries.language.reading import SAMPLED, UNANSWERED
from incrowd.queries.language.restriction import block_of, blocks, remaining
from incrowd.queries.language.row_query import Context, Field, RowQuery, first_rows, hash_order
from incrowd.queries.language.tables import table_rows
from incrowd.queries.query import PERSON, AggregateKind

_CLAUSES = {
    "distinct": "DISTINCT compares rows with each other: use GROUP BY in the outermost query.",
    "having": "HAVING goes with GROUP BY: use WHERE.",
    "order": "ORDER BY stands in the outermost query: rows have no order.",
    "limit": "LIMIT stands in the outermost query: which rows it takes would depend on all others.",
    "offset": "OFFSET stands in the outermost query: which rows it skips would depend on all others.",
    "sample": SAMPLED,
    "qualify": "QUALIFY shows rows beside each other: GROUP BY first, windows go over the groups of an answer.",
    "windows": "OVER shows rows beside each other: GROUP BY first, windows go over the groups of an answer.",
    "laterals": "LATERAL looks at rows one by one: JOIN on equality instead.",
    "pivots": "PIVOT is not answered: use GROUP BY, or CASE WHEN … THEN ….",
}


def sources_of(query: exp.Select, context: Context) -> JoinedRows:
    """Return the sources of a query, joined."""
    from_ = query.args.get("from_")
    if from_ is None:
        call = query.find(exp.Anonymous)
        if call is not None:
            raise QueryRefused(f"{call.name.upper()} is not answered without a table: ask about a table.")
        raise QueryRefused("a query is about a table: write SELECT … FROM ….")
    first = source_rows(from_.this, context)
    others = [(join, source_rows(join.this, context)) for join in query.args.get("joins") or ()]
    where = query.args.get("where")
    return join_rows(first, others, list(sql.conjuncts(where and where.this)))


def source_rows(node: exp.Expr, context: Context) -> RowQuery:
    """Return the rows of one source."""
    odd = [part for part, value in node.args.items() if value and part not in ("this", "alias")]
    if isinstance(node, exp.Subquery) and not odd:
        return query_rows(node.this, context)
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not odd:
        return table_rows(context.catalog[node.name], context)
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and (set(odd) & {"db", "catalog"}):
        raise InvalidParameter("write a table by its name alone, without a schema before it.")
    if isinstance(node, exp.TableSample) or "sample" in odd:
        raise QueryRefused(_CLAUSES["sample"])
    raise QueryRefused("after FROM stand tables of the catalog and subqueries, nothing else: name one of them.")


def query_rows(query: exp.Expr, context: Context) -> RowQuery:
    """Return the rows of a subquery."""
    query = sql.unwrapped(query)
    if isinstance(query, exp.Union):
        check_clauses(query, ("this", "expression", "distinct"), skip=("distinct",))
        if query.args.get("distinct") is not False:
            raise QueryRefused("UNION compares rows with each other: write UNION ALL.")
        return _stacked(query_rows(query.this, context), query_rows(query.expression, context))
    if not isinstance(query, exp.Select):
        raise QueryRefused("a subquery is a SELECT, or several joined by UNION ALL.")
    check_clauses(query, ("expressions", "from_", "joins", "where", "group", "having", "distinct"))
    query = join_memberships(query, context.catalog)
    joined = sources_of(query, context)
    if joined.padded is not None:
        raise QueryRefused("LEFT JOIN from a public table stands in the outermost query: use JOIN here.")
    query = _grouped(query, joined)
    if query.args.get("distinct") is not None:
        return _different(query, joined)
    if any(item.find(exp.Window) for item in query.expressions):
        raise QueryRefused(_CLAUSES["windows"])
    if query.args.get("group") is not None or any(has_aggregate(item) for item in query.expressions):
        check_clauses(query, ("expressions", "from_", "joins", "where", "group", "having"))
        return person_rows(query, joined, filter_rows(query, joined, []))
    check_clauses(query, ("expressions", "from_", "joins", "where"))
    items = _items(query, joined)
    trees = [sql.alias(tree, item.name) for item, tree in items if not item.person]
    fields = tuple(item for item, _ in items)
    return replace(
        joined.rows,
        query=filter_rows(query, joined, trees),
        fields=fields,
        withheld={},
        names=(),
        relation=None,
        blocks=blocks(query, joined.scope),
    )


def filter_rows(query: exp.Select, joined: JoinedRows, trees: list[exp.Expr]) -> exp.Select:
    """Return columns, and whose each row is, FROM the sources of a query WHERE its condition holds."""
    mean = binder(joined.scope.resolve)
    where = query.args.get("where")
    person = [sql.alias(joined.person, PERSON)] if joined.rows.personal else []
    result = sql.select([*trees, *person], joined.source)
    result.set("joins", [join.copy() for join in joined.joins])
    if where is not None:
        left = [part for part in sql.conjuncts(where.this) if part not in joined.used]
        met = [condition(mean(joined.scope.mark(part)), "WHERE").tree for part in left] if joined.used else None
        whole = sql.every(met) if met is not None else condition(mean(joined.scope.mark(where.this)), "WHERE").tree
        result.set("where", None if whole is None else exp.Where(this=whole))
    return result


def _grouped(query: exp.Select, joined: JoinedRows) -> exp.Select:
    """Return SELECT DISTINCT of private rows as GROUP BY: one row for each person and value, if the person is there."""
    distinct = query.args.get("distinct")
    if distinct is None or not joined.rows.private:
        return query
    if distinct.args.get("on") is not None or query.args.get("group") is not None:
        raise QueryRefused(_CLAUSES["distinct"])
    if any(isinstance(item, exp.Star) or isinstance(item.this, exp.Star) for item in query.expressions):
        raise QueryRefused("SELECT DISTINCT names its columns: write them instead of *.")
    grouped: exp.Select = query.copy()
    grouped.set("distinct", None)
    grouped.set("group", exp.Group(expressions=[item.unalias().copy() for item in query.expressions]))
    return grouped


def _different(query: exp.Select, joined: JoinedRows) -> RowQuery:
    """Return the different values of a public table, of which each is there once."""
    relation = joined.rows.relation
    if relation is None or query.args.get("group") is not None or query.args.get("having") is not None:
        raise QueryRefused("of a public table, SELECT DISTINCT takes columns under WHERE, and no more: JOIN it.")
    items = _items(query, joined)
    rows = filter_rows(query, joined, [sql.alias(tree, item.name) for item, tree in items])
    rows.set("distinct", exp.Distinct())
    once = replace(relation, most={frozenset(item.name for item, _ in items): 1})
    return replace(joined.rows, query=rows, fields=tuple(item for item, _ in items), names=(), relation=once)


def check_clauses(query: exp.Expr, allowed: tuple[str, ...], skip: tuple[str, ...] = ()) -> None:
    """Raise for a clause of a query that is not answered."""
    for part, value in query.args.items():
        if value and part not in allowed and part not in skip:
            raise QueryRefused(_CLAUSES.get(part, UNANSWERED))


def _items(query: exp.Select, joined: JoinedRows) -> list[tuple[Field, exp.Expr]]:
    """Return the columns of a subquery over rows, with the values that its conditions leave."""
    mean = binder(joined.scope.resolve)
    items: list[tuple[Field, exp.Expr]] = []
    nodes: list[exp.Expr] = []
    for node in query.expressions:
        plain = node.this if isinstance(node, exp.Alias) else node
        if isinstance(plain, exp.Star) or (isinstance(plain, exp.Column) and isinstance(plain.this, exp.Star)):
            items += _all(plain, joined)
        elif isinstance(plain, exp.Column) and joined.scope.find(plain)[1].person:
            source, item = joined.scope.find(plain)
            items.append((replace(item, name=node.alias_or_name), sql.column(PERSON, source)))
        else:
            meaning = mean(plain)
            items.append((Field(node.alias_or_name or f"column{len(items) + 1}", meaning.extent), meaning.tree))
        nodes += [plain] if len(items) == len(nodes) + 1 else [tree for _, tree in items[len(nodes) :]]
    names = [item.name.casefold() for item, _ in items]
    if len(set(names)) < len(names) or any(item.startswith("_") for item in names):
        raise InvalidParameter("the columns of a subquery need different names that do not begin with an underscore.")
    plain = [node for (item, _), node in zip(items, nodes, strict=True) if not item.person]
    left = iter(remaining(query, joined.scope, plain))
    return [
        (item if item.person else replace(item, within=next(left), block=block_of(node, joined.scope)), tree)
        for (item, tree), node in zip(items, nodes, strict=True)
    ]


def _all(star: exp.Expr, joined: JoinedRows) -> list[tuple[Field, exp.Expr]]:
    if any(star.args.get(part) for part in ("except_", "replace", "rename")):
        raise QueryRefused("* stands for all columns: name the columns instead of leaving some out.")
    table = star.args.get("table")
    items: list[tuple[Field, exp.Expr]] = []
    for source, rows in joined.scope.sources:
        if table is None or table.name == source:
            for item in (field for field in rows.fields if not is_own(field.name)):
                extent = replace(item.extent, optional=item.extent.optional or source in joined.scope.optional)
                items.append((replace(item, extent=extent), sql.column(item.stored, source)))
    return items


def _stacked(above: RowQuery, below: RowQuery) -> RowQuery:
    """Return the rows of both; a unit that is in both changes both."""
    if not (above.private and below.private):
        raise QueryRefused("UNION ALL puts private tables together: join a public table by JOIN.")
    unit = same_unit(above, below)
    if above.person is not below.person:
        raise InvalidParameter("the person ID columns of these tables have different types: use CAST in a subquery.")
    if len(above.fields) != len(below.fields):
        raise InvalidParameter("both sides of UNION ALL need the same number of columns.")
    fields: list[Field] = []
    tops: list[exp.Expr] = []
    bottoms: list[exp.Expr] = []
    for one, other in zip(above.fields, below.fields, strict=True):
        kinds = {one.extent.type, other.extent.type}
        if one.person != other.person or (len(kinds) > 1 and kinds != {Type.INTEGER, Type.DECIMAL}):
            raise InvalidParameter("the columns of both sides of UNION ALL need the same types, in the same order.")
        extent = hull([one.extent, other.extent], optional=one.extent.optional or other.extent.optional)
        within = None if one.within is None or other.within is None else one.within | other.within
        fields.append(Field(one.name, extent, one.person, within))
        if not one.person:
            for side, item in ((tops, one), (bottoms, other)):
                side.append(sql.alias(sql.cast(sql.column(item.stored), extent.type), one.name))
    if above.personal:
        tops.append(sql.alias(sql.column(PERSON), PERSON))
        bottoms.append(sql.alias(sql.column(PERSON), PERSON))
    left, right = (
        sql.select(items, sql.subquery(rows.query, "t1")) for items, rows in ((tops, above), (bottoms, below))
    )
    return RowQuery(
        query=exp.Union(this=left, expression=right, distinct=False),
        fields=tuple(fields),
        tables=(*above.tables, *below.tables),
        unit=unit,
        person=above.person,
        most=above.most + below.most,
        datasets=(*above.datasets, *below.datasets),
        blocks=(*above.blocks, *below.blocks),
    )


_BITS = 52  # units of a sum stay below 2⁵²: exact in whole numbers and in a float, whatever the order


def person_rows(query: exp.Select, joined: JoinedRows, inner: exp.Select) -> RowQuery:
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
    _check_datasets(joined)
    nodes, keys = _person_keys(query, joined)
    means = {f"k{place}": binder(joined.scope.resolve)(node) for place, node in enumerate(nodes, 1) if node in keys}
    exacts: dict[str, BoundTree] = {}
    texts: dict[str, str] = {}

    def name(node: exp.Expr) -> str:
        meaning = _exact(node, joined)
        text = meaning.tree.sql("duckdb")
        if text not in texts:
            texts[text] = f"a{len(texts) + 1}"
            exacts[texts[text]] = meaning
        return texts[text]

    items = _person_items(query, joined, nodes, name)
    having = query.args.get("having")
    having_tree = None if having is None else split(qualify(having.this, joined.scope), nodes, name)
    columns = means | exacts
    resolve = binder(lambda named: BoundTree(sql.column(named.name, "t1"), columns[named.name].extent))
    bound = [(item, None if item.person else resolve(tree)) for item, tree in items]
    test = None if having_tree is None else condition(resolve(having_tree), "HAVING").tree
    grouped = inner.copy()
    grouped.set("expressions", [*(sql.alias(m.tree, n) for n, m in columns.items()), sql.alias(joined.person, PERSON)])
    grouped.set("group", exp.Group(expressions=[*(m.tree.copy() for m in means.values()), joined.person]))
    most = _most(joined.rows.most, [meaning.extent for meaning in means.values()])
    few = bool(means) and most < joined.rows.most
    parts = joined.rows.decimal_person | {item for item, m in means.items() if m.type is Type.DECIMAL}
    limited = first_rows(grouped, [PERSON], hash_order(list(means), parts), most) if few else grouped
    trees = [sql.alias(meaning.tree, item.name) for item, meaning in bound if meaning is not None]
    fields = tuple(item if meaning is None else replace(item, extent=meaning.extent) for item, meaning in bound)
    return replace(
        joined.rows,
        query=sql.select([*trees, sql.alias(sql.column(PERSON, "t1"), PERSON)], sql.subquery(limited, "t1"), test),
        fields=fields,
        most=most,
        withheld={},
        names=(),
        relation=None,
        blocks=blocks(query, joined.scope),
    )


def _check_datasets(joined: JoinedRows) -> None:
    """Raise where somebody who leaves one dataset would leave rows behind in a source of another."""
    if any(len(set(rows.datasets)) > 1 for _, rows in joined.scope.sources):
        raise QueryRefused("rows of several datasets are not aggregated by person: GROUP BY in a subquery of each.")


def _person_keys(query: exp.Select, joined: JoinedRows) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Return all that a subquery groups by, and which of it is no person ID."""
    group = query.args.get("group")
    nodes = [qualify(node, joined.scope) for node in group.expressions] if group is not None else []
    people = [node for node in nodes if isinstance(node, exp.Column) and joined.scope.find(node)[1].person]
    if not joined.rows.private:
        raise QueryRefused("a public table is joined as it is: aggregate in the outermost query.")
    if not people or (group is not None and any(v for part, v in group.args.items() if part != "expressions")):
        raise QueryRefused("a subquery aggregates by person: GROUP BY the person ID column, or aggregate outside.")
    return nodes, [node for node in nodes if node not in people]


def _person_items(
    query: exp.Select, joined: JoinedRows, nodes: list[exp.Expr], name: Callable[[exp.Expr], str]
) -> list[tuple[Field, exp.Expr]]:
    items: list[tuple[Field, exp.Expr]] = []
    for item in query.expressions:
        plain = item.unalias()
        called = item.alias_or_name
        if not called or called.startswith("_"):
            raise InvalidParameter("give every column of a subquery a name by AS, not beginning with an underscore.")
        if isinstance(plain, exp.Column) and not isinstance(plain.this, exp.Star):
            source = joined.scope.find(plain)[1]
            if source.person:
                items.append((Field(called, source.extent, person=True), plain))
                continue
        tree = split(qualify(plain, joined.scope), nodes, name)
        items.append((Field(called, whole(None, None)), tree))
    names = [item.name.casefold() for item, _ in items]
    if len(set(names)) < len(names):
        raise InvalidParameter("the columns of a subquery need different names.")
    return items


def _exact(node: exp.Expr, joined: JoinedRows) -> BoundTree:
    """Return an aggregate of the rows of one person, of whom there are at most as many as declared."""
    most = joined.rows.most
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct) and len(node.this.expressions) == 1:
        different = binder(joined.scope.resolve)(node.this.expressions[0])
        return BoundTree(exp.Count(this=exp.Distinct(expressions=[different.tree.copy()])), whole(0, most))
    wish = aggregate_call(node, joined.scope)
    if wish.kind is AggregateKind.ROWS:
        return BoundTree(exp.Count(this=exp.Star()), whole(1, most))
    if wish.value is None or wish.kind not in (
        AggregateKind.COUNT,
        AggregateKind.SUM,
        AggregateKind.MEAN,
        AggregateKind.QUANTILE,
    ):
        raise QueryRefused(f"{title(node)} is not computed person by person: COUNT, SUM, AVG, MIN and MAX are.")
    value = wish.value
    counted = exp.Count(this=value.tree.copy())
    if wish.kind is AggregateKind.COUNT:
        return BoundTree(counted, whole(0, most))
    if wish.kind is AggregateKind.QUANTILE:
        kinds = {Fraction(0): exp.Min, Fraction(1): exp.Max}
        if wish.at not in kinds:
            raise QueryRefused("quantiles are not computed person by person: MIN and MAX are.")
        return BoundTree(kinds[wish.at](this=value.tree.copy()), value.extent)
    low, high = value.ends
    ends = within(min(low, most * low), max(high, most * high), "SUM")
    total = _total(value, most)
    if wish.kind is AggregateKind.SUM:
        kind = value.type
        extent = ExpressionDomain(kind, *ends) if kind is Type.INTEGER else decimals(*ends, optional=True)
        return BoundTree(total, replace(extent, optional=value.optional))
    exact_total = sql.cast(total, Type.DECIMAL) if value.type is Type.INTEGER else total
    divided = exp.Div(
        this=exact_total, expression=exp.Nullif(this=counted, expression=exp.Literal.number(0)), typed=False, safe=False
    )
    mean = sql.clamped(divided, float(low), float(high))
    return BoundTree(mean, decimals(low, high, optional=value.optional))


def _total(value: BoundTree, most: int) -> exp.Expr:
    """Return a sum that is exact whatever the order: of whole numbers, or of whole multiples of a power of two."""
    if value.type is Type.INTEGER:
        return sql.cast(exp.Sum(this=value.tree.copy()), Type.INTEGER)
    low, high = value.ends
    largest = max(abs(low), abs(high)) * most
    steps = _BITS - max(0, math.frexp(float(largest))[1]) if largest else 0
    scale = sql.constant(math.ldexp(1.0, steps))
    units = sql.cast(exp.Round(this=sql.operation(exp.Mul, sql.as_decimal(value), scale)), Type.INTEGER)
    total = sql.cast(sql.cast(exp.Sum(this=units), Type.INTEGER), Type.DECIMAL)
    return exp.Div(this=total, expression=scale.copy(), typed=False, safe=False)


def _most(most: int, extents: list[ExpressionDomain]) -> int:
    members = [extent.members() for extent in extents]
    sizes = [
        len(values) + extent.optional for values, extent in zip(members, extents, strict=True) if values is not None
    ]
    return min(most, math.prod(sizes)) if len(sizes) == len(members) else most
