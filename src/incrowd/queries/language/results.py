"""Results: the columns of the answer, the condition on its rows, and their order, over keys and aggregates."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import QuestionRefused
from incrowd.queries.language.collecting import Drawer
from incrowd.queries.language.outputs import output, truth
from incrowd.queries.language.plan import Scope
from incrowd.queries.language.splitting import is_aggregate, qualified, split
from incrowd.queries.question import Key, OutputColumn


@dataclass(frozen=True)
class Result:
    """What expressions over the answer are made of: the outermost query, its sources, keys and aggregates."""

    query: exp.Select
    scope: Scope
    nodes: list[exp.Expr]
    keys: tuple[Key, ...]
    drawer: Drawer

    def outputs(self) -> tuple[OutputColumn, ...]:
        """Return the columns of the answer."""
        outputs: list[OutputColumn] = []
        taken: set[str] = set()
        for item in self.query.expressions:
            node = item.unalias()
            if isinstance(node, exp.Star):
                raise QuestionRefused(
                    "SELECT * asks for rows, which never leave: ask for COUNT(*), SUM(x), AVG(x) and the like."
                )
            tree = self._over(node)
            bare = tree.name if isinstance(tree, exp.Column) and is_aggregate(node.unnest()) else None
            outputs.append(OutputColumn(_free(item.alias or self._called(node), taken), tree, bare))
        return tuple(outputs)

    def having(self) -> exp.Expression | None:
        """Return the condition on rows of the answer."""
        having = self.query.args.get("having")
        return None if having is None else truth(self._over(self._unnamed(having.this)), self._types)

    def order(self) -> tuple[exp.Ordered, ...]:
        """Return the order of rows of the answer."""
        order = self.query.args.get("order")
        return tuple(self._ordered(item) for item in (order.expressions if order is not None else ()))

    def _ordered(self, item: exp.Expr) -> exp.Ordered:
        if isinstance(item.this, exp.Var) or item.args.get("with_fill"):
            raise QuestionRefused("ORDER BY takes columns of the answer: name them.")
        node = item.this
        named = isinstance(node, exp.Column) and not node.table and node.name.casefold() in self._named
        tree = self._over(self._named[node.name.casefold()] if named else self._unnamed(node))
        flags = {flag: bool(item.args.get(flag)) for flag in ("desc", "nulls_first")}
        return exp.Ordered(this=tree, **flags)

    def _over(self, node: exp.Expr) -> exp.Expression:
        tree = split(qualified(node, self.scope), self.nodes, self.drawer.name)
        return output(tree, self._types)

    @property
    def _types(self) -> dict[str, Type]:
        return {key.name: key.type for key in self.keys} | self.drawer.types

    @property
    def _named(self) -> dict[str, exp.Expr]:
        return {item.alias.casefold(): item.this for item in self.query.expressions if isinstance(item, exp.Alias)}

    def _unnamed(self, node: exp.Expr) -> exp.Expr:
        """Return an expression in which names given by SELECT stand for what they name; columns of rows come first."""
        known = {item.name.casefold() for _, rows in self.scope.sources for item in rows.fields}
        named = {name: tree for name, tree in self._named.items() if name not in known}

        def change(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Column) and not part.table and part.name.casefold() in named:
                return exp.Paren(this=named[part.name.casefold()].copy())
            return part

        changed: exp.Expr = node.copy().transform(change)
        return changed

    def _called(self, node: exp.Expr) -> str:
        """Return the name of a column of the answer that the question does not name."""
        if isinstance(node, exp.Column):
            return self.scope.find(node)[1].name

        def bare(part: exp.Expr) -> exp.Expr:
            return exp.Column(this=part.this.copy()) if isinstance(part, exp.Column) else part

        text: str = node.copy().transform(bare).sql("duckdb")
        return text.lower()


def _free(wanted: str, taken: set[str]) -> str:
    name, place = wanted, 2
    while name.casefold() in taken:
        name, place = f"{wanted}_{place}", place + 1
    taken.add(name.casefold())
    return name
