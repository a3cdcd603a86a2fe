"""Joined answers: which columns of answers after FROM and JOIN are meant, and on which they are joined."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.language.aggregates import qualify, split
from incrowd.queries.language.expressions.table import refusal
from incrowd.queries.language.joins import join_memberships
from incrowd.queries.language.results import called, has_sets, unnamed
from incrowd.queries.language.row_query import Context, Scope
from incrowd.queries.language.sources import sources_of
from incrowd.queries.language.trees import changed, conjuncts, sources, unqualified
from incrowd.queries.language.understanding import grouping_nodes
from incrowd.queries.operations import JoinedSheet, Sheet, is_single
from incrowd.queries.query import Query

_SIDES = ("", "LEFT")


@dataclass(frozen=True)
class Names:
    """What the columns of a sheet are called in a query: each key, which is unique, with the name that it shows.

    Where there are several sources, a key is the source's name and the column's.  `merged` are the columns of USING.
    """

    columns: tuple[tuple[str, str], ...]
    several: tuple[str, ...] = ()
    merged: frozenset[str] = frozenset()

    @classmethod
    def of(cls, sheet: Sheet) -> Names:
        """Return the names where a sheet stands alone."""
        return cls(tuple((column.name.casefold(), column.name) for column in sheet.columns))

    def plain(self, query: exp.Select) -> exp.Select:
        """Return a query whose columns are keys, and whose items have names."""
        made = query.copy()
        made.set("joins", None)
        made.set("expressions", [keyed for item in made.expressions for keyed in self._item(item)])
        if not self.several:
            return made
        aliases = {item.alias.casefold() for item in made.expressions if isinstance(item, exp.Alias)}
        for name in ("where", "group", "having", "qualify", "order"):
            if made.args.get(name) is not None:
                made.set(name, self._keyed(made.args[name], aliases if name == "order" else set()))
        return made

    def _item(self, item: exp.Expr) -> list[exp.Expr]:
        """Return a column of SELECT with its name, or the columns that a star stands for."""
        node = item.unalias()
        if isinstance(node, exp.Star) and self.several and not any(node.args.values()):
            return [_key(key) for key, name in self.columns if not self._repeats(key, name)]
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star) and self.several:
            return [_key(key) for key, _ in self.columns if key.startswith(f"{node.table}.")]
        if isinstance(item, exp.Alias | exp.Column | exp.Star):
            return [self._keyed(item, set()) if self.several else item]
        return [named(self._keyed(node, set()), node.sql("duckdb").lower())]

    def _repeats(self, key: str, name: str) -> bool:
        return name.casefold() in self.merged and not key.startswith(f"{self.several[0]}.")

    def _keyed(self, tree: exp.Expr, aliases: set[str]) -> exp.Expr:
        """Return an expression over keys; what SELECT calls so stays where it stands alone in the order."""

        def change(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
                return node
            alone = isinstance(node.parent, exp.Ordered) and node.name.casefold() in aliases
            key = None if alone and not node.table else self.key(node)
            return node if key is None else _key(key)

        return changed(tree, change) if self.several else tree

    def key(self, column: exp.Column) -> str | None:
        """Return the key of a column, None where no source has one of its name."""
        if column.table:
            return f"{column.table}.{column.name}".casefold()
        keys = [key for key, name in self.columns if name.casefold() == column.name.casefold()]
        if len(keys) > 1 and column.name.casefold() not in self.merged:
            raise InvalidParameter(f"several answers have a column {column.name!r}: write a.{column.name}.")
        return keys[0] if keys else None


def named(tree: exp.Expr, name: str) -> exp.Alias:
    """Return an expression under a name, a query in brackets too.

    >>> named(exp.column("x"), "y").sql()
    'x AS "y"'
    """
    return exp.Alias(this=tree, alias=exp.to_identifier(name, quoted=True))


def _key(key: str) -> exp.Expr:
    return exp.column(exp.to_identifier(key, quoted=True))


def join_sheets(query: exp.Select, sheets: list[Sheet], parts: tuple[Query, ...]) -> tuple[Names, Sheet]:
    """Return the answers after FROM and JOIN as one sheet, and what its columns are called."""
    joins = query.args.get("joins") or []
    if not joins:
        return Names.of(sheets[0]), sheets[0]
    aliases = [source.alias_or_name for source in sources(query)]
    keys = [(f"{aliases[0]}.{column.name}".casefold(), column.name) for column in sheets[0].columns]
    merged, joined = set[str](), sheets[0]
    for join, alias, right in zip(joins, aliases[1:], sheets[1:], strict=True):
        own = [(f"{alias}.{column.name}".casefold(), column.name) for column in right.columns]
        using = [part.name.casefold() for part in join.args.get("using") or ()]
        merged |= set(using)
        names = Names((*keys, *own), tuple(aliases), frozenset(merged))
        on = _pairs(join, names, len(keys), using)
        _check_join(join, joined, right, on, parts)
        joined = JoinedSheet(joined, right, on, padded=join.side == "LEFT")
        keys += own
    return Names(tuple(keys), tuple(aliases), frozenset(merged)), joined


def _pairs(join: exp.Join, names: Names, width: int, using: list[str]) -> tuple[tuple[int, int], ...]:
    """Return the places of the columns that a join makes equal, in the left and in the right sheet."""
    places = {key: at for at, (key, _) in enumerate(names.columns)}
    column_names = [name.casefold() for _, name in names.columns]
    pairs: list[tuple[int | None, int | None]] = []
    for name in using:
        there = column_names.index(name, width) if name in column_names[width:] else None
        pairs.append((column_names.index(name) if name in column_names[:width] else None, there))
    for part in () if join.args.get("on") is None else conjuncts(join.args["on"]):
        sides = [side.unnest() for side in (part.this, part.expression)] if isinstance(part, exp.EQ) else []
        keys = [names.key(side) for side in sides if isinstance(side, exp.Column)]
        at = sorted(places[key] for key in keys if key in places)
        pairs.append((at[0], at[1]) if len(at) == 2 and at[0] < width <= at[1] else (None, None))
    if any(left is None or right is None for left, right in pairs):
        raise QueryRefused("answers are joined ON a.x = b.x AND …, columns of both, or USING (x).")
    return tuple((left, right - width) for left, right in pairs if left is not None and right is not None)


def _check_join(
    join: exp.Join, left: Sheet, right: Sheet, on: tuple[tuple[int, int], ...], parts: tuple[Query, ...]
) -> None:
    """Refuse a join that could make more rows than both answers have, or another than JOIN and LEFT JOIN."""
    if join.side not in _SIDES or join.kind not in ("", "CROSS") or join.args.get("method"):
        raise QueryRefused("answers are joined by JOIN, LEFT JOIN or CROSS JOIN: use one of these.")
    if any(_kind(left.columns[here].type) is not _kind(right.columns[there].type) for here, there in on):
        raise InvalidParameter("answers are joined on columns of one type: make them the same, such as by CAST.")
    for at, sheet in enumerate((left, right)):
        determining = sheet.determined_by
        if is_single(sheet, parts) or (determining is not None and determining <= {pair[at] for pair in on}):
            return
    raise QueryRefused("answers are joined on all keys of one: JOIN … ON a.key = b.key, or CROSS JOIN one row.")


def _kind(kind: Type | None) -> Type | None:
    return Type.DECIMAL if kind is Type.INTEGER else kind


@dataclass(frozen=True)
class Apart:
    """A query about rows, of which keys are called k1, k2, … and aggregates a1, a2, …; and a SELECT over these."""

    inner: exp.Select
    outer: exp.Select


def apart(query: exp.Select, held: list[exp.Subquery], context: Context) -> Apart:
    """Return the keys and aggregates of a SELECT over rows as a query, and what it computes from them.

    Preconditions: `held` are the queries inside its expressions; none decides about rows.
    """
    group = query.args.get("group")
    if query.args.get("distinct") is not None or (group is not None and has_sets(group.expressions)):
        raise refusal(held[0])
    joined = sources_of(join_memberships(query, context.catalog), context)
    nodes = grouping_nodes(query, joined)
    over = _Over(query, joined.scope, nodes, {})
    outer = over.select()
    if not nodes and not over.aggregates:
        raise refusal(held[0])
    keys, numbers = nodes, list(over.aggregates.values())
    if not query.args.get("joins"):
        keys, numbers = [unqualified(node) for node in keys], [(name, unqualified(node)) for name, node in numbers]
    items = [exp.alias_(node.copy(), f"k{at}") for at, node in enumerate(keys, 1)]
    items += [exp.alias_(node.copy(), name) for name, node in numbers]
    inner = exp.Select(
        expressions=items,
        **{name: query.args[name].copy() for name in ("from_", "where") if query.args.get(name) is not None},
        joins=[join.copy() for join in query.args.get("joins") or ()],
        group=exp.Group(expressions=[node.copy() for node in keys]) if keys else None,
    )
    return Apart(inner, outer)


@dataclass
class _Over:
    """A SELECT over rows, read as one over keys and aggregates; these are named as they are met."""

    query: exp.Select
    scope: Scope
    nodes: list[exp.Expr]
    aggregates: dict[str, tuple[str, exp.Expr]]

    def select(self) -> exp.Select:
        """Return the SELECT over keys and aggregates; what chose groups chooses rows of their answer."""
        query = self.query
        items = [
            named(self._tree(item.unalias()), item.alias or called(item.unalias(), self.scope))
            for item in query.expressions
        ]
        made = exp.Select(expressions=items)
        for name, kind in (("having", exp.Where), ("qualify", exp.Qualify)):
            if query.args.get(name) is not None:
                tree = self._tree(unnamed(query.args[name].this, query, self.scope))
                made.set("where" if kind is exp.Where else name, kind(this=tree))
        order = query.args.get("order")
        if order is not None:
            made.set("order", exp.Order(expressions=[self._ordered(term) for term in order.expressions]))
        return made

    def _ordered(self, term: exp.Expr) -> exp.Expr:
        aliases = {item.alias.casefold() for item in self.query.expressions if isinstance(item, exp.Alias)}
        inner = term.this
        if isinstance(inner, exp.Column) and not inner.table and inner.name.casefold() in aliases:
            tree: exp.Expr = exp.column(exp.to_identifier(inner.name.casefold(), quoted=True))
        else:
            tree = self._tree(unnamed(inner, self.query, self.scope))
        return exp.Ordered(**{**term.args, "this": tree})

    def _tree(self, node: exp.Expr) -> exp.Expr:
        """Return an expression over the names of keys and aggregates; queries inside of it stay as they are."""
        held = list[exp.Expr]()

        def mark(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Subquery):
                return part
            held.append(part.copy())
            return exp.Placeholder(this=str(len(held) - 1))

        def back(part: exp.Expr) -> exp.Expr:
            return held[int(part.name)].copy() if isinstance(part, exp.Placeholder) else part

        marked = qualify(changed(node, mark), self.scope)
        return changed(split(marked, self.nodes, self._named), back)

    def _named(self, node: exp.Expr) -> str:
        """Return the name of an aggregate, a new one if it was not met before."""
        return self.aggregates.setdefault(node.sql("duckdb"), (f"a{len(self.aggregates) + 1}", node))[0]
