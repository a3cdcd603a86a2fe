"""Shares: SELECT over rows that computes with other answers, as a question about rows and a SELECT over its answer."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from incrowd.queries.language.aggregates import qualify, split
from incrowd.queries.language.expressions.binder import refusal
from incrowd.queries.language.memberships import join_memberships
from incrowd.queries.language.results import called, unnamed
from incrowd.queries.language.row_query import Context, Scope
from incrowd.queries.language.sources import sources_of
from incrowd.queries.language.totals import has_sets
from incrowd.queries.language.understanding import grouping_nodes


@dataclass(frozen=True)
class Apart:
    """A question about rows, of which keys are called k1, k2, … and aggregates a1, a2, …; and a SELECT over these."""

    inner: exp.Select
    outer: exp.Select


def apart(query: exp.Select, held: list[exp.Subquery], context: Context) -> Apart:
    """Return the keys and aggregates of a SELECT over rows as a question, and what it computes from them.

    Preconditions: `held` are the queries inside its expressions; none decides about rows.
    """
    group = query.args.get("group")
    if query.args.get("distinct") is not None or (group is not None and has_sets(group.expressions)):
        raise refusal(held[0])
    found = sources_of(join_memberships(query, context.catalog), context)
    nodes = grouping_nodes(query, found)
    over = _Over(query, found.scope, nodes, {})
    outer = over.select()
    if not nodes and not over.aggregates:
        raise refusal(held[0])
    keys, numbers = nodes, list(over.aggregates.values())
    if not query.args.get("joins"):
        keys, numbers = [_unqualified(node) for node in keys], [(name, _unqualified(node)) for name, node in numbers]
    items = [exp.alias_(node.copy(), f"k{at}") for at, node in enumerate(keys, 1)]
    items += [exp.alias_(node.copy(), name) for name, node in numbers]
    inner = exp.Select(
        expressions=items,
        **{name: query.args[name].copy() for name in ("from_", "where") if query.args.get(name) is not None},
        joins=[join.copy() for join in query.args.get("joins") or ()],
        group=exp.Group(expressions=[node.copy() for node in keys]) if keys else None,
    )
    return Apart(inner, outer)


def _unqualified(node: exp.Expr) -> exp.Expr:
    """Return an expression whose columns say no source: where there is one, it has no name."""

    def change(part: exp.Expr) -> exp.Expr:
        return exp.Column(this=part.this.copy()) if isinstance(part, exp.Column) else part

    changed: exp.Expr = node.copy().transform(change)
    return changed


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
            exp.alias_(self._tree(item.unalias()), item.alias or called(item.unalias(), self.scope), quoted=True)
            for item in query.expressions
        ]
        found = exp.Select(expressions=items)
        for name, kind in (("having", exp.Where), ("qualify", exp.Qualify)):
            if query.args.get(name) is not None:
                tree = self._tree(unnamed(query.args[name].this, query, self.scope))
                found.set("where" if kind is exp.Where else name, kind(this=tree))
        order = query.args.get("order")
        if order is not None:
            found.set("order", exp.Order(expressions=[self._ordered(term) for term in order.expressions]))
        return found

    def _ordered(self, term: exp.Expr) -> exp.Expr:
        named = {item.alias.casefold() for item in self.query.expressions if isinstance(item, exp.Alias)}
        inner = term.this
        if isinstance(inner, exp.Column) and not inner.table and inner.name.casefold() in named:
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

        marked = node.copy().transform(mark)
        changed: exp.Expr = split(qualify(marked, self.scope), self.nodes, self._named).transform(back)
        return changed

    def _named(self, node: exp.Expr) -> str:
        """Return the name of an aggregate, a new one if it was not met before."""
        return self.aggregates.setdefault(node.sql("duckdb"), (f"a{len(self.aggregates) + 1}", node))[0]
