"""Sources: what stands after FROM: tables, subqueries, UNION ALL."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.language.aggregates import has_aggregate
from incrowd.queries.language.domain import hull
from incrowd.queries.language.expressions.binder import binder
from incrowd.queries.language.expressions.function import condition
from incrowd.queries.language.joins import JoinedRows, join_rows, same_unit
from incrowd.queries.language.memberships import conjuncts, is_own, join_memberships
from incrowd.queries.language.people import person_rows
from incrowd.queries.language.row_query import Context, Field, RowQuery
from incrowd.queries.language.tables import table_rows
from incrowd.queries.language.trees import alias, cast, column, every, select, subquery
from incrowd.queries.question import PERSON

_CLAUSES = {
    "distinct": "DISTINCT compares rows with each other: use GROUP BY in the outermost query.",
    "having": "HAVING goes with GROUP BY: use WHERE.",
    "order": "ORDER BY stands in the outermost query: rows have no order.",
    "limit": "LIMIT stands in the outermost query: which rows it takes would depend on all others.",
    "offset": "OFFSET stands in the outermost query: which rows it skips would depend on all others.",
    "sample": "samples are drawn in secret, on demand: leave out the sampling clause and ask for a rate.",
    "qualify": "QUALIFY shows rows beside each other: GROUP BY first, windows go over the groups of an answer.",
    "windows": "OVER shows rows beside each other: GROUP BY first, windows go over the groups of an answer.",
    "laterals": "LATERAL looks at rows one by one: JOIN on equality instead.",
    "pivots": "PIVOT is not answered: use GROUP BY, or CASE WHEN … THEN ….",
}


def sources_of(query: exp.Select, context: Context) -> JoinedRows:
    """Return the sources of a query, joined."""
    from_ = query.args.get("from_")
    if from_ is None:
        raise QuestionRefused("a question is about a table: write SELECT … FROM ….")
    first = source_rows(from_.this, context)
    others = [(join, source_rows(join.this, context)) for join in query.args.get("joins") or ()]
    where = query.args.get("where")
    return join_rows(first, others, [] if where is None else list(conjuncts(where.this)))


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
        raise QuestionRefused(_CLAUSES["sample"])
    raise QuestionRefused("after FROM stand tables of the catalog and subqueries, nothing else: name one of them.")


def query_rows(query: exp.Expr, context: Context) -> RowQuery:
    """Return the rows of a subquery."""
    while isinstance(query, exp.Subquery) and not any(query.args[part] for part in query.args if part != "this"):
        query = query.this
    if isinstance(query, exp.Union):
        check_clauses(query, ("this", "expression", "distinct"), skip=("distinct",))
        if query.args.get("distinct") is not False:
            raise QuestionRefused("UNION compares rows with each other: write UNION ALL.")
        return _stacked(query_rows(query.this, context), query_rows(query.expression, context))
    if not isinstance(query, exp.Select):
        raise QuestionRefused("a subquery is a SELECT, or several joined by UNION ALL.")
    check_clauses(query, ("expressions", "from_", "joins", "where", "group", "having", "distinct"))
    query = join_memberships(query, context.catalog)
    found = sources_of(query, context)
    if found.padded is not None:
        raise QuestionRefused("LEFT JOIN from a public table stands in the outermost query: use JOIN here.")
    query = _grouped(query, found)
    if query.args.get("distinct") is not None:
        return _different(query, found)
    if any(item.find(exp.Window) for item in query.expressions):
        raise QuestionRefused(_CLAUSES["windows"])
    if query.args.get("group") is not None or any(has_aggregate(item) for item in query.expressions):
        check_clauses(query, ("expressions", "from_", "joins", "where", "group", "having"))
        return person_rows(query, found, filter_rows(query, found, []))
    check_clauses(query, ("expressions", "from_", "joins", "where"))
    items = _items(query, found)
    trees = [alias(tree, item.name) for item, tree in items if not item.person]
    fields = tuple(item for item, _ in items)
    return replace(
        found.rows, query=filter_rows(query, found, trees), fields=fields, withheld={}, names=(), relation=None
    )


def filter_rows(query: exp.Select, found: JoinedRows, trees: list[exp.Expr]) -> exp.Select:
    """Return columns, and whose each row is, FROM the sources of a query WHERE its condition holds."""
    mean = binder(found.scope.resolve)
    where = query.args.get("where")
    person = [alias(found.person, PERSON)] if found.rows.personal else []
    result = select([*trees, *person], found.source)
    result.set("joins", [join.copy() for join in found.joins])
    if where is not None:
        kept = [part for part in conjuncts(where.this) if part not in found.used]
        met = [condition(mean(found.scope.mark(part)), "WHERE").tree for part in kept] if found.used else None
        whole = every(met) if met is not None else condition(mean(found.scope.mark(where.this)), "WHERE").tree
        result.set("where", None if whole is None else exp.Where(this=whole))
    return result


def _grouped(query: exp.Select, found: JoinedRows) -> exp.Select:
    """Return SELECT DISTINCT of private rows as GROUP BY: one row for each person and value, if the person is there."""
    distinct = query.args.get("distinct")
    if distinct is None or not found.rows.private:
        return query
    if distinct.args.get("on") is not None or query.args.get("group") is not None:
        raise QuestionRefused(_CLAUSES["distinct"])
    if any(isinstance(each, exp.Star) or isinstance(each.this, exp.Star) for each in query.expressions):
        raise QuestionRefused("SELECT DISTINCT names its columns: write them instead of *.")
    grouped: exp.Select = query.copy()
    grouped.set("distinct", None)
    grouped.set("group", exp.Group(expressions=[item.unalias().copy() for item in query.expressions]))
    return grouped


def _different(query: exp.Select, found: JoinedRows) -> RowQuery:
    """Return the different values of a public table, of which each is there once."""
    relation = found.rows.relation
    if relation is None or query.args.get("group") is not None or query.args.get("having") is not None:
        raise QuestionRefused("of a public table, SELECT DISTINCT takes columns under WHERE, and no more: JOIN it.")
    items = _items(query, found)
    rows = filter_rows(query, found, [alias(tree, item.name) for item, tree in items])
    rows.set("distinct", exp.Distinct())
    once = replace(relation, most={frozenset(item.name for item, _ in items): 1})
    return replace(found.rows, query=rows, fields=tuple(item for item, _ in items), names=(), relation=once)


def check_clauses(query: exp.Expr, allowed: tuple[str, ...], skip: tuple[str, ...] = ()) -> None:
    """Raise for a clause of a query that is not answered."""
    for part, value in query.args.items():
        if value and part not in allowed and part not in skip:
            raise QuestionRefused(
                _CLAUSES.get(
                    part,
                    "this query has a clause that is not answered: keep to SELECT, FROM, JOIN, WHERE and GROUP BY.",
                )
            )


def _items(query: exp.Select, found: JoinedRows) -> list[tuple[Field, exp.Expr]]:
    """Return the columns of a subquery over rows."""
    mean = binder(found.scope.resolve)
    items: list[tuple[Field, exp.Expr]] = []
    for node in query.expressions:
        plain = node.this if isinstance(node, exp.Alias) else node
        if isinstance(plain, exp.Star) or (isinstance(plain, exp.Column) and isinstance(plain.this, exp.Star)):
            items += _all(plain, found)
        elif isinstance(plain, exp.Column) and found.scope.find(plain)[1].person:
            source, item = found.scope.find(plain)
            items.append((replace(item, name=node.alias_or_name), column(PERSON, source)))
        else:
            meaning = mean(plain)
            items.append((Field(node.alias_or_name or f"column{len(items) + 1}", meaning.extent), meaning.tree))
    names = [item.name.casefold() for item, _ in items]
    if len(set(names)) < len(names) or any(item.startswith("_") for item in names):
        raise InvalidParameter("the columns of a subquery need different names that do not begin with an underscore.")
    return items


def _all(star: exp.Expr, found: JoinedRows) -> list[tuple[Field, exp.Expr]]:
    if any(star.args.get(part) for part in ("except_", "replace", "rename")):
        raise QuestionRefused("* stands for all columns: name the columns instead of leaving some out.")
    table = star.args.get("table")
    items: list[tuple[Field, exp.Expr]] = []
    for source, rows in found.scope.sources:
        if table is None or table.name == source:
            for item in (each for each in rows.fields if not is_own(each.name)):
                extent = replace(item.extent, optional=item.extent.optional or source in found.scope.optional)
                items.append((replace(item, extent=extent), column(item.stored, source)))
    return items


def _stacked(above: RowQuery, below: RowQuery) -> RowQuery:
    """Return the rows of both; a unit that is in both changes both."""
    if not (above.private and below.private):
        raise QuestionRefused("UNION ALL puts private tables together: join a public table by JOIN.")
    unit = same_unit(above, below)
    if above.person is not below.person:
        raise InvalidParameter("the columns that tell people apart are of different types in these tables.")
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
        fields.append(Field(one.name, extent, person=one.person))
        if not one.person:
            for side, item in ((tops, one), (bottoms, other)):
                side.append(alias(cast(column(item.stored), extent.type), one.name))
    if above.personal:
        tops.append(alias(column(PERSON), PERSON))
        bottoms.append(alias(column(PERSON), PERSON))
    left, right = (select(items, subquery(rows.query, "t1")) for items, rows in ((tops, above), (bottoms, below)))
    return RowQuery(
        query=exp.Union(this=left, expression=right, distinct=False),
        fields=tuple(fields),
        tables=(*above.tables, *below.tables),
        unit=unit,
        person=above.person,
        most=above.most + below.most,
        datasets=(*above.datasets, *below.datasets),
    )
