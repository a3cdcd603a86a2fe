"""Row queries: the rows that take part in a query, where they come from, and at most so many of each person.

Whoever has more than may take part keeps the rows that come first by a hash of the person and the row, or the groups
that come first by a hash of the person and the group.  So the choice differs from person to person and prefers no
value: of many people with the same groups, each group keeps about the same share.  It is a function of that person's
rows alone, and the same on every engine.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from incrowd.core.domain import Type, listed
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter, QueryRefused, UnknownColumn
from incrowd.queries.language import trees as sql
from incrowd.queries.language.domain import BoundTree, ExpressionDomain
from incrowd.queries.query import PERSON, Block, Catalog, Possible, Relation


@dataclass(frozen=True)
class Field:
    """A column of rows: its name, what it can be, and whether it is the person ID.

    `within` holds the values that conditions inside a subquery leave, None where there are none.  It decides which
    groups are shown, and which periods are charged: no bound rests on it.  `block` is the place of the rows of whose
    period it decides, among those that are read.
    """

    name: str
    extent: ExpressionDomain
    person: bool = False
    within: Possible | None = None
    block: int | None = None

    @property
    def stored(self) -> str:
        """The name of the column in the query of the rows."""
        return PERSON if self.person else self.name


@dataclass(frozen=True)
class RowQuery:
    """Rows as a query that cannot fail; adding or removing one unit changes at most `most` of them.

    Public rows have no unit; nobody changes them.  Private rows whose unit is a person carry the column `PERSON`, of
    the type `person`.  `withheld` tells for names that cannot be asked about why not, `names` all that can, used or
    not; `relation` is the public table whose rows they are.  `blocks` are the private rows that they are made of.
    """

    query: exp.Query
    fields: tuple[Field, ...]
    tables: tuple[str, ...]
    unit: Unit | None = None
    person: Type | None = None
    most: int = 0
    datasets: tuple[str, ...] = ()
    withheld: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    relation: Relation | None = None
    blocks: tuple[Block, ...] = ()

    @property
    def private(self) -> bool:
        """Whether they are somebody's."""
        return self.unit is not None

    @property
    def personal(self) -> bool:
        """Whether they carry the person ID column."""
        return self.unit is not None and self.unit.column is not None

    @property
    def decimal_person(self) -> frozenset[str]:
        """The column that identifies people, if it holds decimals: engines spell these differently."""
        return frozenset({PERSON} if self.person is Type.DECIMAL else ())


@dataclass(frozen=True)
class Context:
    """What the whole query knows: the catalog, and the names of columns that occur in it (None: all)."""

    catalog: Catalog
    names: frozenset[str] | None


_PARTNER = "partner"


@dataclass(frozen=True)
class Scope:
    """The sources after FROM by their names; columns shared by USING are those of the first source that has them."""

    sources: tuple[tuple[str, RowQuery], ...]
    shared: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()

    def find(self, named: exp.Column) -> tuple[str, Field]:
        """Return the source and the field that a column names."""
        name, table = named.name.casefold(), named.table
        places = [(source, rows) for source, rows in self.sources if not table or source == table]
        fields = [(source, item) for source, rows in places for item in rows.fields if item.name.casefold() == name]
        if len(fields) == 1 or (fields and not table and name in self.shared):
            return fields[0]
        if fields:
            raise InvalidParameter(f"several columns are called {named.name!r}: write table.column to say which.")
        for _, rows in places:
            if name in rows.withheld:
                raise QueryRefused(f"{named.name!r} cannot be asked about: {rows.withheld[name]}")
        names = sorted({name for _, rows in places for name in (*rows.names, *(item.name for item in rows.fields))})
        near = difflib.get_close_matches(named.name, names, 1)
        hint = f" Did you mean {near[0]!r}?" if near else f" There are: {listed(names, 20)}."
        raise UnknownColumn(f"there is no column {named.name!r}.{hint}")

    def mark(self, node: exp.Expr) -> exp.Expr:
        """Return a condition in which person IS NULL is understood, of a table that LEFT JOIN joined: no partner there.

        A mark in the tree says so, which no text of a query can set.
        """

        def change(part: exp.Expr) -> exp.Expr:
            plain = isinstance(part, exp.Is) and isinstance(part.expression, exp.Null)
            if plain and isinstance(part.this, exp.Column) and not isinstance(part.this.this, exp.Star):
                source, field_ = self.find(part.this)
                if field_.person and source in self.optional:
                    part.this.meta[_PARTNER] = True
            return part

        return sql.changed(node, change)

    def resolve(self, named: exp.Column) -> BoundTree:
        """Return what a column means in an expression; the person ID column means nothing there."""
        source, field_ = self.find(named)
        if field_.person and named.meta.get(_PARTNER):
            return BoundTree(sql.column(PERSON, source), replace(field_.extent, optional=True))
        if field_.person:
            raise _person_refusal(named.name, next(iter(dict(self.sources)[source].tables), source))
        extent = replace(field_.extent, optional=field_.extent.optional or source in self.optional)
        return BoundTree(sql.column(field_.stored, source), extent)


def _person_refusal(name: str, table: str) -> QueryRefused:
    column, source = (exp.to_identifier(text).sql("duckdb") for text in (name, table))
    inner = f"SELECT {column}, COUNT(*) AS n FROM {source} GROUP BY {column}"  # noqa: S608 - text of an error
    example = f"SELECT n, COUNT(*) FROM ({inner}) AS t GROUP BY n"  # noqa: S608 - as above
    return QueryRefused(
        f"{name!r} is the person ID column, which no answer shows: use COUNT(DISTINCT it), JOIN on it, or GROUP BY it "
        f"in a subquery, as in {example}."
    )


PLACE, TWIN = "_place", "_twin"
"""The columns in which rows or groups are numbered, and rows that are alike."""


def first_rows(query: exp.Query, by: Sequence[str], order: Sequence[exp.Expr], most: int) -> exp.Query:
    """Return a query with at most so many rows for each value of `by`, the first in the order given.

    >>> query = sql.select([sql.alias(sql.column("x"), "x")], exp.Table(this="t"))
    >>> first_rows(query, ["x"], [sql.column("x")], 2).named_selects
    ['x']
    """
    return _first(query, _numbered(query, exp.RowNumber(), by, order), most)


def own_rows(
    query: exp.Query,
    names: Sequence[str],
    most: int,
    decimals: Collection[str] = frozenset(),
    by: Sequence[str] = (PERSON,),
) -> exp.Query:
    """Return a query with at most so many rows of each person, whichever rows come first by a hash of their own.

    A row is told by the columns in `names`.  Rows of a person that are alike in all of them are numbered, and the
    number is hashed with them: so every row has the same chance, however often it occurs, and which of two rows that
    are alike has which number makes no difference.  The multiset that is taken is a function of the multiset of the
    person's own rows: neither other people nor the order of storage has any influence on it.  With other columns in
    `by`, that many are taken for each of their values.

    >>> query = sql.select([sql.alias(sql.column("x"), "x"), sql.alias(sql.column("p"), PERSON)], exp.Table(this="t"))
    >>> own_rows(query, ["x"], 1).named_selects
    ['x', '_person']
    """
    if not names:
        return first_rows(query, [PERSON], [sql.column(PERSON)], most)
    twins = _numbered(query, exp.RowNumber(), [PERSON, *names], [sql.column(PERSON)], TWIN)
    order = hash_order(names, decimals, (TWIN,))
    return _first(query, _numbered(twins, exp.RowNumber(), by, order), most)


def with_owned(table: exp.Expr, names: Sequence[str], person: exp.Column) -> exp.Select:
    """Return columns of the rows of a table that say whose they are, each with how many of them that person has.

    >>> table = exp.Table(this=exp.to_identifier("t"), alias=exp.TableAlias(this=exp.to_identifier("t0")))
    >>> with_owned(table, ["x", "p"], sql.column("p", "t0")).named_selects
    ['x', 'p', '_place']
    """
    owned = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[person.copy()])
    return sql.select(
        [*(sql.alias(sql.column(name), name) for name in names), sql.alias(owned, PLACE)],
        table,
        sql.present(person.copy()),
    )


def first_groups(
    query: exp.Query, keys: Sequence[str], most: int, decimals: Collection[str] = frozenset()
) -> exp.Query:
    """Return a query with the rows of at most so many groups of each person, whichever groups come first by a hash.

    Which groups these are depends on the person's own rows alone: rows are ranked among the rows of one person, by
    their keys, and equal keys have equal ranks.

    >>> query = sql.select([sql.alias(sql.column("x"), "k1"), sql.alias(sql.column("p"), PERSON)], exp.Table(this="t"))
    >>> first_groups(query, ["k1"], 1).named_selects
    ['k1', '_person']
    """
    return _first(query, _numbered(query, exp.DenseRank(), [PERSON], hash_order(keys, decimals)), most)


def hash_order(
    names: Sequence[str], decimals: Collection[str] = frozenset(), beside: Sequence[str] = ()
) -> list[exp.Expr]:
    """Return an order by a hash of the person, of columns and of what stands `beside`, then by the columns themselves.

    It is the same on every engine: of decimals, which engines spell differently, the hash takes whole steps.

    >>> [type(tree).__name__ for tree in hash_order(["x", "y"], decimals={"y"})]
    ['MD5', 'Column', 'Column']
    """
    texts = [
        _steps(item) if item in decimals else sql.cast(sql.column(item), Type.TEXT)
        for item in (PERSON, *names, *beside)
    ]
    written = [exp.Coalesce(this=text, expressions=[exp.Literal.string("")]) for text in texts]
    together: exp.Expr = written[0]
    for other in written[1:]:
        bar = exp.DPipe(this=together, expression=exp.Literal.string("|"), safe=True)
        together = exp.DPipe(this=bar, expression=other, safe=True)
    return [exp.MD5(this=together), *(sql.column(item) for item in names)]


def _steps(item: str) -> exp.Expr:
    """Return in how many steps of 1/1024 a decimal lies from zero, as text; NULL where it lies far off."""
    near = sql.operation(exp.LT, exp.Abs(this=sql.column(item)), sql.constant(2.0**40))
    steps = exp.Floor(this=sql.operation(exp.Mul, sql.column(item), sql.constant(2.0**10)))
    return sql.case((near, sql.cast(sql.cast(steps, Type.INTEGER), Type.TEXT)))


def _numbered(
    query: exp.Query, number: exp.Expr, by: Sequence[str], order: Sequence[exp.Expr], as_name: str = PLACE
) -> exp.Select:
    """Return the columns of a query, and beside them the number of each row among those with the same `by`."""
    ordered = exp.Order(expressions=[exp.Ordered(this=tree.copy(), nulls_first=False) for tree in order])
    window = exp.Window(this=number, partition_by=[sql.column(item) for item in by], order=ordered)
    names = [sql.column(item.alias_or_name) for item in query.expressions]
    return sql.select([*names, sql.alias(window, as_name)], sql.subquery(query, "t1"))


def _first(query: exp.Query, numbered: exp.Select, most: int) -> exp.Select:
    """Return the columns of a query of the rows whose number is small enough."""
    few = exp.LTE(this=sql.column(PLACE), expression=exp.Literal.number(most))
    return sql.select([sql.column(item.alias) for item in query.expressions], sql.subquery(numbered, "t1"), few)
