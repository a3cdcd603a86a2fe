"""Domain: counting queries as they are planned together, and which cells of a declared domain each of them counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from incrowd.core.unit import Unit
from incrowd.engines.sql.duckdb import collect_over
from incrowd.errors import QueryRefused
from incrowd.queries.language.reading import read
from incrowd.queries.language.row_query import Context
from incrowd.queries.language.sources import sources_of
from incrowd.queries.language.tables import table_rows
from incrowd.queries.language.trees import alias, column, name, unqualified
from incrowd.queries.language.understanding import MOST_GROUPS, grouping_nodes, understand
from incrowd.queries.measuring.groups import ARROW, Names, group_places, public_groups
from incrowd.queries.measuring.statistics import statistics_of
from incrowd.queries.query import PERSON, AggregateKind, Catalog, Query
from incrowd.queries.work import unit_steps
from incrowd.queries.workloads.atoms import MOST_ATOMS, MOST_NUMBERS, Atoms, Labels, atoms_of

_MOST_LOOKS, _MOST_STEPS = 2**22, 2**32
"""How many cells are looked up for all queries at most, and how much that may touch."""
_MOST_NODES, _NODES = 2**16, 2**12
"""The most nodes of the trees that are run over all cells, and those of one query."""
_CELLS = "cells"
_AFTER = ("having", "order", "limit", "offset", "distinct", "qualify", "windows", "group")


@dataclass(frozen=True, eq=False)
class CountQuery:
    """A query that counts rows, and the expressions by which it groups, in their order."""

    question: Query
    keys: tuple[exp.Expr, ...]

    @cached_property
    def query(self) -> exp.Select:
        """The query as it is read."""
        return read(self.question.text)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The texts of the keys: equal keys have equal texts."""
        return tuple(key.sql("duckdb") for key in self.keys)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many values each key has."""
        return tuple(len(key.values or ()) for key in self.question.keys)

    @property
    def number(self) -> int:
        """How many groups are answered."""
        return math.prod(self.sizes)

    @cached_property
    def groups(self) -> tuple[Names, ...]:
        """The groups that are answered."""
        return public_groups(self.question)

    @cached_property
    def source(self) -> tuple[str, int]:
        """What must agree for queries to be about the same rows, but for WHERE."""
        if self.single:
            return self.question.tables[0], self.question.contribution.rows
        from_, joins = self.query.args["from_"], self.query.args.get("joins") or ()
        return " ".join(part.sql("duckdb") for part in (from_, *joins)), self.question.contribution.rows

    @cached_property
    def where(self) -> str:
        """The condition on rows."""
        where = (self.question.rows if self.single else self.query).args.get("where")
        return "" if where is None else where.sql("duckdb")

    @property
    def single(self) -> bool:
        """Whether it reads one table, as it is."""
        return len(self.question.tables) == 1 and not self.question.rows.args.get("joins")


def counting(query: Query, unit: Unit, catalog: Catalog) -> CountQuery | None:
    """Return a query as one that counts rows by declared groups, None where it asks for anything else.

    People are counted like rows where each has one.  What is made of the answer afterwards plays no part.
    """
    special = query.totals or query.listed is not None or query.caps.groups is not None
    if len(query.aggregates) != 1 or not query.public_keys or special:
        return None
    aggregate, once = query.aggregates[0], query.caps.rows == dict.fromkeys(query.tables, 1)
    alike = once and len(query.tables) == 1 and statistics_of(query, unit).rows == query.contribution.rows
    people = aggregate.kind is AggregateKind.PEOPLE and aggregate.value is None and alike
    if aggregate.kind is not AggregateKind.ROWS and not people:
        return None
    if query.text.upper().count("SELECT") > 1:  # a query within, or a text that says so
        return None
    keys = _keys(read(query.text), catalog) if query.keys else ()
    return CountQuery(query, keys) if len(keys) == len(query.keys) else None


def _keys(query: exp.Select, catalog: Catalog) -> tuple[exp.Expr, ...]:
    """Return the expressions by which rows are grouped, each in one form whatever SELECT calls it."""
    nodes = grouping_nodes(query, sources_of(query, Context(catalog, None)))
    return tuple(nodes) if query.args.get("joins") else tuple(map(unqualified, nodes))


def table_of(like: CountQuery, keys: Sequence[exp.Expr], catalog: Catalog, *, filtered: bool) -> CountQuery:
    """Return the query that counts the same rows by other keys; with or without the condition on them."""
    query = like.query.copy()
    for part in _AFTER if filtered else (*_AFTER, "where"):
        query.set(part, None)
    query.set("expressions", [*(key.copy() for key in keys), exp.Count(this=exp.Star())])
    if keys:
        query.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return read_table(query.sql("duckdb"), catalog)


def read_table(text: str, catalog: Catalog) -> CountQuery:
    """Return the query that counts rows by keys, from its text.

    However many groups one person is in, all are counted: the noise is made for the rows of a person.
    """
    query = understand(text, catalog)
    return CountQuery(query, _keys(read(query.text), catalog))


@dataclass(frozen=True, eq=False)
class Domain:
    """The cells of the columns that queries name, all of them declared, and the atom of each cell."""

    table: CountQuery
    cells: Labels
    atoms: Atoms


def domain_of(queries: Sequence[CountQuery], catalog: Catalog) -> Domain | None:
    """Return the domain over which queries about one table count, None where it cannot be listed or is too large."""
    listed = listed_columns(queries[0].question.tables[0], catalog)
    listable = all(query.single and columns_of(query) <= listed for query in queries)
    table = cell_table(queries, catalog) if listable else None
    return None if table is None else domain_over(table, queries, catalog)


def domain_over(table: CountQuery, queries: Sequence[CountQuery], catalog: Catalog) -> Domain | None:
    """Return the domain of all cells of a table, over which queries count, None where that is too much work.

    Queries that differ in their groups alone tell nearly all cells apart: where there are many, they are planned by
    their keys.  Which cells a query counts is computed from its own trees, over a table with one row for each cell,
    by the engine that also reads rows: so it cannot differ from what the query means.
    """
    size, groups = table.number, tuple(query.number for query in queries)
    alike = len({query.where for query in queries}) == 1
    if (
        (alike and size > MOST_ATOMS)
        or sum(groups) > MOST_NUMBERS
        or size * (len(queries) + 1) > _MOST_LOOKS
        or size * _steps(queries, catalog) > _MOST_STEPS
        or sum(_nodes(tree) for query in queries for tree in _trees(query)) > _MOST_NODES
    ):
        return None
    labels = _labels(queries, table)
    cells = atoms_of(labels, size)
    number = int(cells.max(initial=-1)) + 1
    if not 0 < number <= MOST_ATOMS or number * sum(groups) > MOST_NUMBERS:
        return None
    _, first = np.unique(cells, return_index=True)
    first = first[cells[first] >= 0]
    return Domain(table, cells, Atoms(tuple(label[first] for label in labels), groups, number))


def _steps(queries: Sequence[CountQuery], catalog: Catalog) -> int:
    """Return how much the trees of all queries touch for one row at most."""
    rows = catalog[queries[0].question.tables[0]].unit.max_rows
    return sum(-(-unit_steps(query.question.rows, catalog) // rows) for query in queries)


def _nodes(tree: exp.Expr) -> int:
    return sum(1 for _ in tree.walk())


def columns_of(query: CountQuery) -> frozenset[str]:
    """Return the columns of rows that a query names, of one that reads one table."""
    return frozenset(part.name for tree in _trees(query) for part in tree.find_all(exp.Column))


def listed_columns(table: str, catalog: Catalog) -> frozenset[str]:
    """Return the columns of a table all of whose values are declared."""
    fields = table_rows(catalog[table], Context(catalog, None)).fields
    return frozenset(item.name for item in fields if not item.person and item.extent.members(MOST_GROUPS) is not None)


def cell_table(queries: Sequence[CountQuery], catalog: Catalog) -> CountQuery | None:
    """Return the query that counts rows by all columns that these queries name, in the order of the schema."""
    named = frozenset[str]().union(*map(columns_of, queries))
    schema = catalog[queries[0].question.tables[0]].schema
    keys = [exp.column(name(name_)) for name_ in schema.names if name_ in named]
    try:
        return table_of(queries[0], keys, catalog, filtered=False)
    except QueryRefused:  # too many groups
        return None


def _trees(query: CountQuery) -> list[exp.Expr]:
    """Return what a query computes of a row: its condition, then its keys."""
    rows = query.question.rows
    where = rows.args.get("where")
    keys = {item.alias: item.this for item in rows.expressions}
    return [exp.true() if where is None else where.this, *(keys[key.name] for key in query.question.keys)]


def _labels(queries: Sequence[CountQuery], table: CountQuery) -> list[Labels]:
    """Return for each query in which of its groups each cell is, −1 where it does not count it."""
    named = [key.this.name for key in table.keys]
    columns = list(zip(*public_groups(table.question), strict=True)) if table.keys else []
    arrays = [pa.array(column, ARROW[key.type]) for column, key in zip(columns, table.question.keys, strict=True)]
    places = pa.array(range(table.number), pa.int64())
    trees: dict[str, tuple[str, exp.Expr]] = {}
    texts = [[tree.sql("duckdb") for tree in _trees(query)] for query in queries]
    for query, written in zip(queries, texts, strict=True):
        for tree, text in zip(_trees(query), written, strict=True):
            own = tree.copy().transform(
                lambda node: column(node.name, _CELLS) if isinstance(node, exp.Column) else node
            )
            trees.setdefault(text, (f"t{len(trees)}", own))
    cells = pa.table([places, *arrays], names=[PERSON, *named])
    computed = {called: values for some in _some(trees.values()) for called, values in _computed(some, cells).items()}
    return [
        _placed(query, [computed[trees[text][0]] for text in written])
        for query, written in zip(queries, texts, strict=True)
    ]


def _some(trees: Iterable[tuple[str, exp.Expr]]) -> Iterator[list[tuple[str, exp.Expr]]]:
    """Yield trees, few at a time: an engine holds a vector of values for each of their nodes."""
    taken, nodes = list[tuple[str, exp.Expr]](), 0
    for called, tree in trees:
        own = _nodes(tree)
        if taken and nodes + own > _NODES:
            yield taken
            taken, nodes = [], 0
        taken.append((called, tree))
        nodes += own
    if taken:
        yield taken


def _computed(trees: Sequence[tuple[str, exp.Expr]], cells: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the values of trees in each cell, by their names."""
    selected = [alias(tree, called) for called, tree in trees]
    query = exp.select(column(PERSON, _CELLS), *selected).from_(exp.Table(this=name(_CELLS)))
    values = collect_over({_CELLS: cells}, query).sort_by(PERSON)
    return {called: values[called] for called, _ in trees}


def _placed(query: CountQuery, columns: list[pa.ChunkedArray]) -> Labels:
    met, *keys = columns
    inside = np.asarray(pc.fill_null(met, False).to_numpy(), dtype=np.bool_)
    if not keys:
        return np.where(inside, 0, -1).astype(np.int64)
    collected = pa.table(keys, names=[key.name for key in query.question.keys])
    return np.where(inside, group_places(query.question, collected, query.groups), -1).astype(np.int64)
