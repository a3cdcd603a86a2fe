"""Understanding: SQL text and a catalog in, a query out; not a row is read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.language.aggregates import WINDOW_OF_ROWS, qualify
from incrowd.queries.language.domain import BoundTree
from incrowd.queries.language.expressions.function import condition
from incrowd.queries.language.expressions.table import binder
from incrowd.queries.language.joins import JoinedRows, join_memberships
from incrowd.queries.language.normal import normal_text
from incrowd.queries.language.outer import answer_inside, ask_answer, ending, gathers
from incrowd.queries.language.outputs import has_window
from incrowd.queries.language.reading import read, read_query
from incrowd.queries.language.restriction import blocks, restricted
from incrowd.queries.language.results import AggregateRegister, Result, check_totals, has_sets, leaves, sets_of
from incrowd.queries.language.row_query import Context, first_groups
from incrowd.queries.language.sources import check_clauses, filter_rows, sources_of
from incrowd.queries.language.trees import alias, conjuncts, every, select, subquery
from incrowd.queries.operations import Keep, Operation, Take
from incrowd.queries.query import Catalog, Contribution, ContributionBounds, Key, ListedKeys, Query

MOST_GROUPS = 100_000
"""The most groups that are answered whether or not anybody is in them."""


def grouping_nodes(query: exp.Select, joined: JoinedRows) -> list[exp.Expr]:
    """Return the expressions by which rows are grouped, qualified, each once."""
    group = query.args.get("group")
    if query.args.get("distinct") is not None:
        if group is not None or query.args["distinct"].args.get("on") is not None:
            raise QueryRefused("SELECT DISTINCT goes without GROUP BY: leave one of them out.")
        nodes = [item.unalias() for item in query.expressions]
    elif group is None:
        return []
    else:
        check_clauses(group, ("expressions",))
        nodes = [_renamed(node, query, joined) for part in group.expressions for node in leaves(part)]
    unique: list[exp.Expr] = []
    for node in nodes:
        plain = qualify(node, joined.scope).unnest()
        if plain not in unique:
            unique.append(plain)
    return unique


def _sets(query: exp.Select, joined: JoinedRows, nodes: list[exp.Expr]) -> tuple[tuple[int, ...], ...]:
    """Return the sets of keys of ROLLUP, CUBE or GROUPING SETS; none where all rows are grouped by all keys."""
    group = query.args.get("group")
    if group is None or not has_sets(group.expressions):
        return ()
    return sets_of(
        group.expressions, lambda leaf: nodes.index(qualify(_renamed(leaf, query, joined), joined.scope).unnest())
    )


def keys_of(meanings: list[BoundTree]) -> tuple[Key, ...]:
    """Return the keys k1, k2, …, with their values where declarations tell them.

    Groups that can be listed are all answered, present or not.  If a key cannot be listed, it is private: which of its
    values occur is then decided by noise and a threshold.
    """
    keys = tuple(_key(f"k{place}", meaning) for place, meaning in enumerate(meanings, 1))
    groups = count_groups(keys)
    if groups is not None and groups > MOST_GROUPS:
        raise QueryRefused(f"{groups:,} groups are more than {MOST_GROUPS:,}: use coarser keys such as FLOOR(x / 10).")
    return keys


def count_groups(keys: tuple[Key, ...]) -> int | None:
    """Return how many groups there can be, or None where only rows can tell.

    >>> from incrowd.core.domain import Type
    >>> count_groups((Key("k1", Type.BOOLEAN, (False, True)), Key("k2", Type.TEXT, ("a", "b", None))))
    6
    """
    sizes = [len(key.values) for key in keys if key.values is not None]
    return math.prod(sizes) if len(sizes) == len(keys) else None


def _key(name: str, meaning: BoundTree) -> Key:
    members = meaning.extent.members(MOST_GROUPS)
    if members is None:
        return Key(name, meaning.type, None)
    values = (*members, None) if meaning.optional else members
    return Key(name, meaning.type, values, tuple(value for value in values if value in (None, meaning.extent.rest)))


def _renamed(node: exp.Expr, query: exp.Select, joined: JoinedRows) -> exp.Expr:
    """Return what a name after GROUP BY stands for: a column of the rows, or else what SELECT calls so."""
    if not isinstance(node, exp.Column) or node.table:
        return node
    try:
        joined.scope.find(node)
    except InvalidParameter:
        for item in query.expressions:
            if isinstance(item, exp.Alias) and item.alias.casefold() == node.name.casefold():
                meant: exp.Expr = item.this
                return meant
        raise
    return node


_LARGEST_LIMIT = 10**9  # LIMIT beyond it is as good as none, and still a number for every engine
_MOST_TABLES = 16  # joins multiply work
_CLAUSES = (
    "expressions",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "offset",
    "distinct",
    "qualify",
)


def understand(sql: str, catalog: Catalog, max_groups: int | None = None) -> Query:
    """Return what a text asks of the tables of a catalog.

    With `max_groups`, at most so many groups of each person are asked about: the noise of a number of people is then
    made for so many, instead of for as many as a person may have rows.

    Preconditions: any text.  `InvalidParameter` says that it cannot be read, or names what is not there;
    `QueryRefused` that it is understood and not answered.  Messages depend on the text and the catalog alone.

    >>> from incrowd.core.domain import Type
    >>> from incrowd.core.schema import Column, Schema
    >>> from incrowd.queries.query import Relation
    >>> births = Relation("births", Schema((Column("smokes", type=Type.BOOLEAN),)), dataset="births")
    >>> query = understand("SELECT smokes, COUNT(*) FROM births GROUP BY smokes", Catalog((births,)))
    >>> query.keys[0].values, query.aggregates[0].kind, query.contribution
    ((False, True, None), <AggregateKind.ROWS: 'rows'>, Contribution(rows=1, groups=1))
    """
    with understanding(max_groups):
        text = dated(normal_text(sql), catalog)
        return query_of(text, read(text), catalog, max_groups)


@contextmanager
def understanding(max_groups: int | None) -> Iterator[None]:
    """Refuse a limit of no groups, and a query that is nested deeper than Python can follow."""
    if max_groups is not None and max_groups < 1:
        raise InvalidParameter("a person is in at least one group: let max_groups be 1 or more.")
    try:
        yield
    except RecursionError:
        raise QueryRefused("the query is nested too deeply: simplify it.") from None


def dated(text: str, catalog: Catalog) -> str:
    """Return the text of a query in which CURRENT_DATE is the day that was declared for the tables it reads.

    What day it is where the query is asked plays no part: asked again, it is the same query, and its certificate
    says of which day it was.
    """
    if "CURRENT_DATE" not in text or read_query(text).find(exp.CurrentDate) is None:
        return text
    query = read_query(text)
    days = {catalog[table.name].today for table in query.find_all(exp.Table)} - {None}
    if len(days) != 1:
        raise QueryRefused("the policy (queries: today) has no single CURRENT_DATE for these tables: write the date.")
    (today,) = days
    literal = exp.cast(exp.Literal.string(str(today)), "DATE")
    dated: exp.Expr = query.transform(lambda node: literal.copy() if isinstance(node, exp.CurrentDate) else node)
    return normal_text(dated.sql("duckdb"))


def query_of(text: str, select_: exp.Select, catalog: Catalog, max_groups: int | None) -> Query:
    """Return what a query asks of rows, or of the answer to the query in its FROM."""
    context = Context(catalog, used_names(select_))
    inner = answer_inside(select_, context)
    if inner is not None:
        return ask_answer(query_of(text, inner, catalog, max_groups), select_, cut_of(select_))
    query = join_memberships(select_, catalog)
    joined = _sources(query, context if query is select_ else Context(catalog, used_names(query)))
    bound = _understood(text, query, joined, catalog)
    return bound if max_groups is None else _limited(bound, joined, max_groups)


def cut_of(query: exp.Expr) -> Take:
    """Return which rows of the answer LIMIT and OFFSET leave."""
    return Take(_count_of(query, "limit"), _count_of(query, "offset") or 0)


def _sources(query: exp.Select, context: Context) -> JoinedRows:
    check_clauses(query, _CLAUSES)
    if sum(1 for _ in query.find_all(exp.Table)) > _MOST_TABLES:
        raise QueryRefused(f"a query reads at most {_MOST_TABLES} tables, repeated ones counted: split it.")
    joined = sources_of(query, context)
    if not joined.rows.private:
        raise QueryRefused("a query needs a private table; public ones can be read as they are.")
    return joined


def _check_padding(query: exp.Select, joined: JoinedRows, keys: tuple[Key, ...], nodes: list[exp.Expr]) -> None:
    """Refuse LEFT JOIN from a public table unless every group is one of the declared values of that table's columns.

    A row of it without a partner exists only while nobody matches.  So such rows are left out, all declared groups get
    noise, and those that the public table has are shown: a count of the private table's columns is then the same, with
    noise, and nothing else would be.
    """
    if joined.padded is None:
        return
    public = all(part.table == joined.padded for node in nodes for part in node.find_all(exp.Column))
    own = [_of_partner(node, joined) for item in _outside(query) for node in item.find_all(exp.AggFunc)]
    if not keys or not public or any(key.values is None for key in keys) or not all(own):
        raise QueryRefused(
            "LEFT JOIN from a public table shows its groups and counts partners: GROUP BY columns of that table, with "
            "COUNT(v.x), SUM(v.x) or alike of the private table v, not COUNT(*)."
        )


def _listed(query: exp.Select, joined: JoinedRows, meanings: list[BoundTree]) -> ListedKeys | None:
    """Return the groups that a public table has from which LEFT JOIN leads, under what WHERE asks of it alone."""
    if joined.padded is None:
        return None
    public, mean = dict(joined.scope.sources)[joined.padded], binder(joined.scope.resolve)
    where = query.args.get("where")
    own = [
        condition(mean(part), "WHERE").tree
        for part in ([] if where is None else conjuncts(where.this))
        if all(joined.scope.find(column)[0] == joined.padded for column in part.find_all(exp.Column))
    ]
    items = [alias(meaning.tree, f"k{place}") for place, meaning in enumerate(meanings, 1)]
    rows = select(items, subquery(public.query, joined.padded))
    rows.set("distinct", exp.Distinct())
    rows.set("where", exp.Where(this=every(own)) if own else None)
    return ListedKeys(public.tables[0], rows)


def _outside(query: exp.Select) -> list[exp.Expr]:
    parts = [*query.expressions, *(query.args[name] for name in ("having", "order") if query.args.get(name))]
    return [part for part in parts if isinstance(part, exp.Expr)]


def _of_partner(node: exp.AggFunc, joined: JoinedRows) -> bool:
    """Return whether an aggregate is of a column of the private table, bare, so that a row without one adds nothing."""
    inner = node.this
    if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
        inner = inner.expressions[0]
    plain = isinstance(inner, exp.Column) and not isinstance(inner.this, exp.Star)
    return plain and not isinstance(node.parent, exp.Filter) and joined.scope.find(inner)[0] != joined.padded


def _understood(text: str, query: exp.Select, joined: JoinedRows, catalog: Catalog) -> Query:
    tables = tuple(sorted(set(joined.rows.tables)))
    nodes = grouping_nodes(query, joined)
    meanings = [binder(joined.scope.resolve)(node) for node in nodes]
    keys = keys_of(restricted(query, joined.scope, nodes, meanings))
    _check_padding(query, joined, keys, nodes)
    if not keys and any(map(has_window, query.expressions)) and not gathers(query):
        raise QueryRefused(WINDOW_OF_ROWS)
    register = AggregateRegister(joined.scope)
    sets = _sets(query, joined, nodes)
    result = Result(query, joined.scope, nodes, keys, register, totals=bool(sets))
    outputs, having, order = result.outputs(), result.having(), result.order()
    qualified = result.qualify()
    cut = cut_of(query)
    operations: list[Operation] = []
    if result.windows.columns or qualified is not None:
        operations = [] if having is None else [Keep(having)]
        operations += result.windows.columns.values()
        operations += [] if qualified is None else [Keep(qualified)]
        operations += ending(order, cut)
        having, order, cut = None, (), Take(None)
    if not register.aggregates and not keys:
        raise QueryRefused("this asks nothing of the rows: ask for COUNT(*), SUM(x), AVG(x) and the like.")
    if not register.aggregates:
        register.name(exp.Count(this=exp.Star()))
    if sets:
        check_totals(keys, list(register.aggregates.values()))
    columns = dict(zip((key.name for key in keys), meanings, strict=True)) | register.meanings
    return Query(
        text=text,
        rows=filter_rows(query, joined, [alias(meaning.tree, name) for name, meaning in columns.items()]),
        keys=keys,
        aggregates=tuple(register.aggregates.values()),
        outputs=outputs,
        contribution=_contribution(joined, keys),
        datasets=tuple(sorted(set(joined.rows.datasets))),
        tables=tables,
        having=having,
        order=order,
        limit=cut.limit,
        offset=cut.offset,
        operations=tuple(operations),
        totals=sets,
        listed=_listed(query, joined, meanings),
        caps=ContributionBounds(
            {name: catalog[name].unit.max_rows for name in tables if catalog[name].unit.column is not None}
        ),
        blocks=blocks(query, joined.scope),
    )


def _limited(query: Query, joined: JoinedRows, max_groups: int) -> Query:
    """Return a query about at most so many groups of each person; where that changes nothing, the same query.

    So is one about several datasets: somebody who leaves one of them alone would change which groups of the others are
    asked about, and each dataset has a guarantee of its own.
    """
    groups = max_groups * _sides(joined)
    if not joined.rows.personal or groups >= query.contribution.groups or len(query.datasets) > 1:
        return query
    return replace(
        query,
        text=f"{query.text} /* at most {max_groups} groups of each person */",
        rows=first_groups(
            query.rows,
            [key.name for key in query.keys],
            max_groups,
            joined.rows.decimal_person | {key.name for key in query.keys if key.type is Type.DECIMAL},
        ),
        contribution=replace(query.contribution, groups=groups),
        caps=replace(query.caps, groups=max_groups),
    )


def used_names(query: exp.Expr) -> frozenset[str] | None:
    """Return the names that occur in a query, or None where a star stands for all of them."""
    nodes = list(query.find_all(exp.Star, exp.Identifier))
    if any(isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count) for node in nodes):
        return None
    return frozenset(node.name.casefold() for node in nodes if isinstance(node, exp.Identifier))


def _contribution(joined: JoinedRows, keys: tuple[Key, ...]) -> Contribution:
    """Return how far one unit reaches; one that is replaced leaves rows and brings others."""
    rows = joined.rows.most * _sides(joined)
    groups = count_groups(keys)
    return Contribution(rows, rows if groups is None else min(rows, groups))


def _sides(joined: JoinedRows) -> int:
    unit = joined.rows.unit
    return 2 if unit is not None and unit.adjacency is Adjacency.REPLACE else 1


def _count_of(query: exp.Expr, clause: str) -> int | None:
    node = query.args.get(clause)
    if node is None:
        return None
    number = node.expression
    plain = isinstance(number, exp.Literal) and str(number.this).isdigit() and not node.args.get("limit_options")
    if not plain or int(str(number.this)) > _LARGEST_LIMIT:
        raise QueryRefused(f"{clause.upper()} takes a whole number, not above a thousand million.")
    return int(str(number.this))
