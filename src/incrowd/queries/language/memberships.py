"""Memberships: x IN (SELECT …) as a join with the different values of x, one row each.

Whether a person is in a subquery that is grouped by person is decided by that person's own rows alone, and such a join
multiplies no rows.  So a membership is a join like any other: what one unit changes, what an engine does for it and
which datasets it may read is bounded where joins are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from incrowd.errors import QuestionRefused
from incrowd.queries.language.trees import changed, conjuncts, sources
from incrowd.queries.question import Catalog

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
            raise QuestionRefused(_REFUSED)
        if inner.args.get("group") is None and any(item.find(exp.AggFunc) for item in inner.expressions):
            raise QuestionRefused(_REFUSED)  # an aggregate of nothing is a row, too: EXISTS would always hold
        parts = list(conjuncts(inner.args["where"].this))
        pairs = [pair for part in parts if (pair := _correlated(part, inner)) is not None]
        if len(pairs) != 1:
            raise QuestionRefused(_REFUSED)
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
            raise QuestionRefused(_REFUSED)
        value = inner.expressions[0].unalias() if len(inner.expressions) == 1 else None
        if not isinstance(value, exp.Column) or isinstance(value.this, exp.Star):
            raise QuestionRefused(_REFUSED)
        query = inner.copy()
        query.set("distinct", None)
        called = exp.Alias(this=value.copy(), alias=_quoted(f"in#{self.number}"))
        if any(catalog[table.name].private for table in inner.find_all(exp.Table)):
            group = inner.args.get("group")
            if group is not None and group.expressions != [value]:
                raise QuestionRefused(_REFUSED)
            counted = exp.Alias(this=exp.Count(this=exp.Star()), alias=_quoted(f"there#{self.number}"))
            query.set("expressions", [called, counted])
            query.set("group", exp.Group(expressions=[value.copy()]))
        elif side is not None or inner.args.get("group") is not None:
            raise QuestionRefused("x IN (SELECT … FROM a public table) stands in WHERE, joined by AND: else JOIN it.")
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
