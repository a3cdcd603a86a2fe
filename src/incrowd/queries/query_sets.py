"""Query sets: which rows a query is about, and the value of each; for small tables whose rows are in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import pyarrow as pa
from sqlglot import exp

from incrowd.core.domain import Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role
from incrowd.core.unit import Kind
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.language.normal import normal_text
from incrowd.queries.language.reading import read
from incrowd.queries.language.understanding import understand
from incrowd.queries.query import AggregateKind, Catalog, Query, Relation

PLACE = "place_of_row"
"""The column that numbers the rows; it is added to the table for this purpose."""

MOST_ROWS = 10_000
"""Tables with more rows get no classical answers."""

_CLAUSES = ("expressions", "from_", "where")
_KINDS = (AggregateKind.ROWS, AggregateKind.SUM, AggregateKind.MEAN)


@dataclass(frozen=True)
class QuerySet:
    """What a query asks of a table of `size` rows: a count, sum or mean over the rows at some places.

    `values` holds for each place the number that is added up: 1 for a count, and where it is missing 0 for a sum and
    nothing for a mean.  `column` is the column that is added up, None for a count or where something is computed from
    it; `conditions` are the columns that decide which rows are meant.  Numbers that look random follow from `secret`.
    """

    text: str
    kind: AggregateKind
    size: int
    values: Mapping[int, Fraction]
    column: str | None = None
    conditions: frozenset[str] = frozenset()
    secret: bytes = field(default=b"", repr=False)

    @property
    def total(self) -> Fraction:
        """The sum over the set."""
        return sum(self.values.values(), Fraction(0))

    def read_off(self, total: Fraction, rows: Fraction) -> Fraction | None:
        """Return what is asked, from a sum and a number of rows; None for a mean of nothing."""
        if self.kind is not AggregateKind.MEAN:
            return total
        return total / rows if rows > 0 else None


@dataclass(frozen=True)
class PlainQuery:
    """A query that classical answers are given to: one number about the rows of one table that fit a condition."""

    text: str
    kind: AggregateKind
    table: str
    grouped: str
    column: str | None
    conditions: frozenset[str]

    def bind(self, catalog: Catalog, size: int) -> Query:
        """Return the query row by row, over the same tables whose rows are numbered by `PLACE`."""
        return understand(self.grouped, Catalog((number_rows(catalog[self.table], size),)))

    def over(self, query: Query, rows: pa.Table, size: int) -> QuerySet:
        """Return the query set, from what an engine returned for the rows of the bound query."""
        (aggregate,) = query.aggregates
        places = rows.column(query.keys[0].name).to_pylist()
        if aggregate.value is None:
            return QuerySet(self.text, aggregate.kind, size, dict.fromkeys(places, Fraction(1)), None, self.conditions)
        numbers = rows.column(aggregate.value.name).to_pylist()
        pairs = zip(places, numbers, strict=True)
        there = {place: number for place, number in pairs if number is not None or aggregate.kind is AggregateKind.SUM}
        values = {place: Fraction(number or 0) for place, number in there.items()}
        return QuerySet(self.text, aggregate.kind, size, values, self.column, self.conditions)


def plain_query(sql: str, catalog: Catalog) -> PlainQuery:
    """Return a query if it is simple enough for classical answers, or refuse it.

    Preconditions: any text.  Classical protections are defined for one number about the rows of one table that fit a
    condition; the table protects single rows, or the number of rows in a set would say nothing about people.

    >>> from incrowd.core.schema import Schema
    >>> staff = Relation("staff", Schema((Column("pay", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 9))),)), "staff")
    >>> plain_query("SELECT SUM(pay) FROM staff WHERE pay > 3", Catalog((staff,))).conditions
    frozenset({'pay'})
    """
    text = normal_text(sql)
    query = understand(text, catalog)
    tree = read(text)
    plain = not any(value for part, value in tree.args.items() if part not in _CLAUSES)
    if not plain or len(query.tables) != 1 or len(list(tree.find_all(exp.Select))) != 1:
        raise QueryRefused("classical answers are one number of one table: SELECT SUM(x) FROM table WHERE ….")
    if len(query.aggregates) != 1 or len(query.outputs) != 1 or query.outputs[0].aggregate is None:
        raise QueryRefused("classical answers are one number at a time: ask for one COUNT(*), SUM(x) or AVG(x).")
    if query.aggregates[0].kind not in _KINDS:
        raise QueryRefused("classical answers are counts, sums and means: ask for COUNT(*), SUM(x) or AVG(x).")
    if catalog[query.tables[0]].unit.kind is not Kind.ROW:
        raise QueryRefused("classical answers know rows, not people with several of them: ask about another table.")
    where = tree.args.get("where")
    named = frozenset() if where is None else frozenset(c.name.casefold() for c in where.find_all(exp.Column))
    grouped = tree.copy()
    grouped.set("group", exp.Group(expressions=[exp.column(PLACE)]))
    kind, written = query.aggregates[0].kind, grouped.sql(dialect="duckdb")
    return PlainQuery(text, kind, query.tables[0], written, _column(tree), named)


def number_rows(relation: Relation, size: int) -> Relation:
    """Return a table with one column more, which numbers its rows from 0."""
    if any(column.name.casefold() == PLACE for column in relation.schema.columns):
        raise InvalidParameter(f"a column is called {PLACE}, which classical answers need for themselves: rename it.")
    place = Column(PLACE, Role.PLAIN, Type.INTEGER, hierarchy=Flat(Numbers(0, max(0, size - 1))))
    schema = replace(relation.schema, columns=(*relation.schema.columns, place))
    return replace(relation, schema=schema)


def _column(tree: exp.Select) -> str | None:
    """Return the column that is added up, if it is one and nothing is computed from it."""
    inner = tree.expressions[0].unalias().this
    return inner.name.casefold() if isinstance(inner, exp.Column) else None
