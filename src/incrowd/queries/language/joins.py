"""Joins: sources put beside each other, with a bound on how many rows one unit can then change.

x IN (SELECT …) is a join with the different values of x, one row each: it multiplies no rows, and whether a person is
in a subquery that is grouped by person is decided by that person's own rows alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter, MixedUnits, QueryRefused
from incrowd.queries.language.expressions.function import condition
from incrowd.queries.language.expressions.table import binder
from incrowd.queries.language.row_query import RowQuery, Scope, first_rows
from incrowd.queries.language.trees import changed, column, conjuncts, every, operation, sources, subquery
from incrowd.queries.query import PERSON, Catalog

MOST_PAIRS = 10_000
"""The most rows of one unit that a join may make."""

Pair = tuple[exp.Column, exp.Column]


@dataclass(frozen=True)
class JoinedRows:
    """Sources after FROM: the first, the joins, how columns are found in them, and the rows that they make together.

    `used` are the conditions after WHERE on which sources without ON are joined.  `padded` is a public table from which
    LEFT JOIN leads to a private one: its rows without a partner are not among the rows.
    """

    source: exp.Expr
    joins: tuple[exp.Join, ...]
    scope: Scope
    rows: RowQuery
    carrier: str = "t1"
    used: tuple[exp.Expr, ...] = ()
    padded: str | None = None

    @property
    def person(self) -> exp.Column:
        """The column that identifies people, of the first private source."""
        return column(PERSON, self.carrier)


def join_rows(
    first: RowQuery, others: Sequence[tuple[exp.Join, RowQuery]], where: Sequence[exp.Expr] = ()
) -> JoinedRows:
    """Return sources joined from left to right.

    A private row meets at most `most` rows of a public table, as many as share the values it is joined on: so one
    unit changes that many times as many rows.  Two private tables are joined on the person: of a person with at most m
    rows in one and n in the other there are at most m·n pairs, and no pair holds rows of two people.

    Each dataset has a guarantee of its own, for somebody who leaves it and stays in all others.  A pair vanishes with
    either of its rows, so that too takes away m·n pairs at most.  After LEFT JOIN of another dataset it would turn
    pairs into rows without a partner, which are rows in addition: that is refused.
    """
    joined = JoinedRows(subquery(first.query, "t1"), (), Scope((("t1", first),)), first)
    for place, (join, rows) in enumerate(others, 2):
        with_on, used = _with_condition(join, joined, (rows, f"t{place}"), where)
        joined = replace(_beside(joined, with_on, rows, f"t{place}"), used=(*joined.used, *used))
    return joined


def _with_condition(
    join: exp.Join, joined: JoinedRows, what: tuple[RowQuery, str], where: Sequence[exp.Expr]
) -> tuple[exp.Join, list[exp.Expr]]:
    """Return a join without ON under those conditions after WHERE that make its columns equal to those before it."""
    bare = not join.args.get("on") and not join.args.get("using") and not join.args.get("side")
    if not bare or join.args.get("kind") not in (None, "", "CROSS") or join.args.get("method"):
        return join, []
    rows, name = what
    scope = Scope((*joined.scope.sources, (name, rows)), joined.scope.shared, joined.scope.optional)
    used = [part for part in where if _known_pair(part, scope, name)]
    moved: exp.Join = join.copy()
    moved.set("kind", None)
    moved.set("on", every([part.copy() for part in used]))
    return moved, used


def _known_pair(part: exp.Expr, scope: Scope, name: str) -> bool:
    try:
        return _pair(part.unnest(), scope, name) is not None
    except (InvalidParameter, QueryRefused):  # a column of a source that comes later, or none: told where it stands
        return False


def same_unit(left: RowQuery, right: RowQuery) -> Unit:
    """Return the unit of privacy of both, which must agree."""
    if left.unit is None or right.unit is None:
        raise TypeError
    if (left.unit.kind, left.unit.adjacency) != (right.unit.kind, right.unit.adjacency):
        raise MixedUnits("these tables protect different units of privacy: ask about each of them alone.")
    return left.unit


def _beside(joined: JoinedRows, join: exp.Join, rows: RowQuery, name: str) -> JoinedRows:
    side, kind = (join.args.get("side") or ""), (join.args.get("kind") or "")
    odd = [part for part, value in join.args.items() if value and part not in ("this", "on", "using", "side", "kind")]
    if odd or side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
        raise QueryRefused("tables are joined by JOIN … ON … = …, or LEFT JOIN from the private table.")
    left = side == "LEFT"
    if left and not joined.rows.private:
        if not rows.private or len(joined.scope.sources) > 1:
            raise QueryRefused("LEFT JOIN goes from the private table to the other: start with the private table.")
        inner: exp.Join = join.copy()
        inner.set("side", None)
        return replace(_beside(joined, inner, rows, name), padded="t1")
    scope = Scope(
        (*joined.scope.sources, (name, rows)),
        joined.scope.shared | {str(item.name).casefold() for item in join.args.get("using") or ()},
        joined.scope.optional | ({name} if left else frozenset()),
    )
    on, pairs = _conditions(join, joined, replace(scope, optional=joined.scope.optional), name)
    if joined.rows.private and rows.private:
        return _people(joined, (join, on), (rows, name), scope)
    if not joined.rows.private and not rows.private:
        raise QueryRefused("start with the private table, then join the public ones to it.")
    public = rows if joined.rows.private else joined.rows
    keys = [(right if joined.rows.private else left_).name for left_, right in pairs]
    limited, many = _limited(public, keys)
    private = joined.rows if joined.rows.private else rows
    total = replace(
        private, most=_multiplied(private.most, many), tables=(*joined.rows.tables, *rows.tables), relation=None
    )
    first = joined.source if joined.rows.private else subquery(limited, "t1")
    second = limited if joined.rows.private else rows.query
    carrier = joined.carrier if joined.rows.private else name
    joins = (*joined.joins, _join(second, name, on, side))
    return JoinedRows(first, joins, scope, total, carrier, padded=joined.padded)


def _people(joined: JoinedRows, how: tuple[exp.Join, exp.Expr], what: tuple[RowQuery, str], scope: Scope) -> JoinedRows:
    (join, on), (rows, name) = how, what
    unit = same_unit(joined.rows, rows)
    same = any(
        {side.name for side in (part.this, part.expression)} == {PERSON}
        for part in on.find_all(exp.EQ)
        if isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column)
    )
    if unit.column is None or not same:
        raise QueryRefused("private tables are joined on the person ID column: ON a.person = b.person AND ….")
    if join.args.get("side") and len({*joined.rows.datasets, *rows.datasets}) > 1:
        raise QueryRefused("LEFT JOIN, NOT IN (SELECT …) and NOT EXISTS need one dataset: use JOIN, or IN.")
    total = replace(
        joined.rows,
        most=_multiplied(joined.rows.most, rows.most),
        tables=(*joined.rows.tables, *rows.tables),
        datasets=(*joined.rows.datasets, *rows.datasets),
    )
    joins = (*joined.joins, _join(rows.query, name, on, join.args.get("side") or ""))
    return JoinedRows(joined.source, joins, scope, total, joined.carrier, padded=joined.padded)


def _conditions(join: exp.Join, joined: JoinedRows, scope: Scope, name: str) -> tuple[exp.Expr, list[Pair]]:
    """Return the condition of a join, bound, and the pairs of columns that it makes equal."""
    mean = binder(scope.resolve)
    parts = [part.unnest() for part in conjuncts(join.args.get("on"))]
    for item in join.args.get("using") or ():
        lefts = [
            source
            for source, rows in joined.scope.sources
            if any(f.name.casefold() == item.name.casefold() for f in rows.fields)
        ]
        if not lefts:
            raise InvalidParameter(f"USING needs a column that both sides have: {item.name!r} is not on the left.")
        parts.append(exp.EQ(this=column(item.name, lefts[0]), expression=column(item.name, name)))
    trees, pairs = [], []
    for part in parts:
        pair = _pair(part, scope, name)
        if pair is not None:
            pairs.append(pair)
        if pair is not None and all(scope.find(side)[1].person for side in pair):
            sources = [scope.find(side)[0] for side in pair]
            if len({scope.find(side)[1].extent.type for side in pair}) > 1:
                raise InvalidParameter("the person ID columns of these tables have different types.")
            trees.append(operation(exp.EQ, *(column(PERSON, source) for source in sources)))
        else:
            trees.append(condition(mean(part), "ON").tree)
            if pair is not None:
                _check_alike(pair, scope)
    on = every(trees)
    if on is None or not pairs:
        raise QueryRefused("a join needs ON a.column = b.column: without it, every row would meet every other.")
    return on, pairs


def _pair(part: exp.Expr, scope: Scope, name: str) -> Pair | None:
    """Return the column of the left side and that of the right side which a condition makes equal."""
    match part:
        case exp.EQ(this=exp.Column() as left, expression=exp.Column() as right):
            sides = {scope.find(side)[0] == name: side for side in (left, right)}
        case _:
            return None
    return (sides[False], sides[True]) if len(sides) == 2 else None


def _check_alike(pair: Pair, scope: Scope) -> None:
    """Raise if two columns are equal in another sense than that in which rows were counted.

    Different whole numbers beyond 2^53 are one decimal: a row would meet more rows of a public table than share its
    value.
    """
    kinds = {scope.find(side)[1].extent.type for side in pair}
    if len(kinds) > 1:
        raise InvalidParameter(f"{pair[0].name!r} and {pair[1].name!r} have different types: use CAST.")


def _limited(rows: RowQuery, keys: list[str]) -> tuple[exp.Query, int]:
    """Return a public table with at most as many rows for each value joined on as were counted, and that number."""
    if rows.relation is None:
        raise QueryRefused("a public table is joined as it is, not inside a subquery: filter in WHERE.")
    key_names = frozenset(key.casefold() for key in keys)
    counts = [
        many
        for columns, many in rows.relation.most.items()
        if frozenset(name.casefold() for name in columns) <= key_names
    ]
    if not counts:
        raise QueryRefused(f"rows of {rows.relation.name!r} per joined value are not bounded: join on its key.")
    many = min(counts)
    names = [item.name for item in rows.fields]
    by = [item for item in names if item.casefold() in key_names]
    return first_rows(rows.query, by, [column(item) for item in names], many), many


def _multiplied(most: int, many: int) -> int:
    if many > 1 and most * many > MOST_PAIRS:
        raise QueryRefused(
            f"a person could have {most * many:,} joined rows, above {MOST_PAIRS:,}: GROUP BY the person."
        )
    return most * many


def _join(query: exp.Query, name: str, on: exp.Expr, side: str) -> exp.Join:
    return exp.Join(this=subquery(query, name), on=on.copy(), side=side or None)


_OWN = re.compile(r"(in|there)#\d+")
_REFUSED = (
    "x IN (SELECT …) and EXISTS ask whether the same person has rows in another table: WHERE person IN (SELECT person "
    "FROM … WHERE …), without LIMIT; of a public table, WHERE x IN (SELECT x FROM …). Otherwise JOIN the other table."
)


def is_own(name: str) -> bool:
    """Return whether a column is one that memberships made, and no star stands for.

    >>> is_own("in#1"), is_own("age")
    (True, False)
    """
    return _OWN.fullmatch(name) is not None


def open_exists(tree: exp.Expr) -> exp.Expr:
    """Return a tree in which EXISTS (SELECT … WHERE a.x = b.x AND …) is b.x IN (SELECT a.x … WHERE …).

    >>> from sqlglot import parse_one
    >>> open_exists(parse_one("SELECT 1 FROM b WHERE EXISTS (SELECT 1 FROM a WHERE a.x = b.x AND a.y > 1)")).sql()
    'SELECT 1 FROM b WHERE b.x IN (SELECT a.x FROM a WHERE a.y > 1)'
    """

    def change(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Exists):
            return node
        inner = node.this.unnest() if isinstance(node.this, exp.Subquery) else node.this
        if not isinstance(inner, exp.Select) or inner.args.get("where") is None or _odd(inner, "group"):
            raise QueryRefused(_REFUSED)
        if inner.args.get("group") is None and any(item.find(exp.AggFunc) for item in inner.expressions):
            raise QueryRefused(_REFUSED)  # an aggregate of nothing is a row, too: EXISTS would always hold
        parts = list(conjuncts(inner.args["where"].this))
        pairs = [pair for part in parts if (pair := _correlated(part, inner)) is not None]
        if len(pairs) != 1:
            raise QueryRefused(_REFUSED)
        own, outer, equal = pairs[0]
        rest = [part for part in parts if part is not equal]
        query = inner.copy()
        query.set("expressions", [own.copy()])
        query.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
        return exp.In(this=outer.copy(), query=exp.Subquery(this=query))

    return changed(tree, change)


def _correlated(part: exp.Expr, inner: exp.Select) -> tuple[exp.Column, exp.Column, exp.Expr] | None:
    """Return the columns of both queries that a condition makes equal, the inner one first."""
    if not isinstance(part, exp.EQ) or not all(isinstance(side, exp.Column) for side in part.iter_expressions()):
        return None
    names = {source.alias_or_name for source in sources(inner)}
    columns = [side for side in part.iter_expressions() if isinstance(side, exp.Column)]
    sides = {not side.table or side.table in names: side for side in columns}
    return (sides[True], sides[False], part) if len(sides) == 2 else None


@dataclass(frozen=True)
class _Membership:
    """One IN (SELECT …): its place among the sources, and its number."""

    node: exp.In
    source: str
    number: int

    @property
    def flag(self) -> exp.Expr:
        """The condition that there is a partner."""
        there = exp.Column(this=_quoted(f"there#{self.number}"), table=exp.to_identifier(self.source))
        return exp.Not(this=exp.Is(this=there, expression=exp.Null()))

    def join(self, catalog: Catalog, side: str | None) -> exp.Join:
        """Return the join with the different values of the subquery."""
        inner = self.node.args["query"].unnest()
        if not isinstance(inner, exp.Select) or not isinstance(self.node.this, exp.Column) or _odd(inner, "group"):
            raise QueryRefused(_REFUSED)
        value = inner.expressions[0].unalias() if len(inner.expressions) == 1 else None
        if not isinstance(value, exp.Column) or isinstance(value.this, exp.Star):
            raise QueryRefused(_REFUSED)
        query = inner.copy()
        query.set("distinct", None)
        called = exp.Alias(this=value.copy(), alias=_quoted(f"in#{self.number}"))
        if any(catalog[table.name].private for table in inner.find_all(exp.Table)):
            group = inner.args.get("group")
            if group is not None and group.expressions != [value]:
                raise QueryRefused(_REFUSED)
            counted = exp.Alias(this=exp.Count(this=exp.Star()), alias=_quoted(f"there#{self.number}"))
            query.set("expressions", [called, counted])
            query.set("group", exp.Group(expressions=[value.copy()]))
        elif side is not None or inner.args.get("group") is not None:
            raise QueryRefused("x IN (SELECT … FROM a public table) stands in WHERE, joined by AND: else JOIN it.")
        else:
            query.set("expressions", [called])
            query.set("distinct", exp.Distinct())
        alias = exp.TableAlias(this=exp.to_identifier(self.source))
        right = exp.Column(this=_quoted(f"in#{self.number}"), table=exp.to_identifier(self.source))
        equal = exp.EQ(this=self.node.this.copy(), expression=right)
        return exp.Join(this=exp.Subquery(this=query, alias=alias), on=equal, side=side)


def _odd(query: exp.Select, *more: str) -> bool:
    """Return whether a query has a clause that memberships do not have; HAVING goes with GROUP BY."""
    allowed = ("expressions", "from_", "joins", "where", "having", "distinct", *more)
    bare = query.args.get("having") is not None and query.args.get("group") is None
    return bare or any(value for name, value in query.args.items() if name not in allowed)


def _quoted(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def join_memberships(query: exp.Select, catalog: Catalog) -> exp.Select:
    """Return a query in which x IN (SELECT …) is a join: of those who are in it, or a mark beside all others."""
    texts: dict[str, exp.In] = {}
    uses: dict[str, int] = {}
    for node in _own(query):
        text = node.sql("duckdb")
        texts[text], uses[text] = node, uses.get(text, 0) + 1
    if not texts:
        return query
    made: exp.Select = query.copy()
    many = len(sources(query))
    where = made.args.get("where")
    parts = list(conjuncts(where and where.this))
    plain = [part.unnest().sql("duckdb") for part in parts]
    memberships = {text: _Membership(node, f"t{many + at}", at) for at, (text, node) in enumerate(texts.items(), 1)}
    sure = {text for text in memberships if uses[text] == 1 and text in plain}
    rest = [part for part, text in zip(parts, plain, strict=True) if text not in sure]
    if where is not None:
        made.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)
    for node in list(_own(made)):
        node.replace(memberships[node.sql("duckdb")].flag)
    joins = [membership.join(catalog, None if text in sure else "LEFT") for text, membership in memberships.items()]
    made.set("joins", [*(made.args.get("joins") or ()), *joins])
    return made


def _own(query: exp.Select) -> Iterator[exp.In]:
    """Yield the memberships of a query that stand outside of its sources and of each other."""
    stack: list[exp.Expr] = [
        part
        for name, value in query.args.items()
        if name not in ("from_", "joins")
        for part in (value if isinstance(value, list) else [value])
        if isinstance(part, exp.Expr)
    ]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            yield node
        elif not isinstance(node, exp.Query):
            stack.extend(node.iter_expressions())
