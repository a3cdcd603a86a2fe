"""Results: the columns of the answer, the condition on its rows, and their order, over keys and aggregates."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import QueryRefused
from incrowd.queries.language.aggregates import aggregate_call, is_aggregate, qualify, split
from incrowd.queries.language.domain import BoundTree, ExpressionDomain
from incrowd.queries.language.moments import simple
from incrowd.queries.language.outputs import WindowRegister, has_window, kind_of, ordered, output, truth
from incrowd.queries.language.row_query import Scope
from incrowd.queries.language.trees import changed, unqualified
from incrowd.queries.query import Aggregate, AggregateKind, Key, OutputColumn, Value


@dataclass
class AggregateRegister:
    """The aggregates met so far while a query is read; equal ones are one, and so are equal columns."""

    scope: Scope
    aggregates: dict[tuple[object, ...], Aggregate] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    meanings: dict[str, BoundTree] = field(default_factory=dict)

    def name(self, node: exp.Expr) -> str:
        """Return the name of an aggregate, a new one if it was not met before."""
        wish = aggregate_call(node, self.scope)
        value = None if wish.value is None else self._value(wish.value)
        key = (wish.kind, value, wish.at)
        if key not in self.aggregates:
            self.aggregates[key] = Aggregate(f"a{len(self.aggregates) + 1}", wish.kind, value, wish.at)
        return self.aggregates[key].name

    @property
    def types(self) -> dict[str, Type]:
        """The types of all aggregates by their names."""
        return {aggregate.name: aggregate.type for aggregate in self.aggregates.values()}

    def _value(self, meaning: BoundTree) -> Value:
        text = meaning.tree.sql("duckdb")
        if text not in self.values:
            name = f"v{len(self.values) + 1}"
            self.values[text] = _value(name, meaning.extent)
            self.meanings[name] = meaning
        return self.values[text]


def _value(name: str, extent: ExpressionDomain) -> Value:
    choices = None
    if extent.type is Type.TEXT and extent.values is not None:
        choices = tuple(str(value) for value in extent.values)
    return Value(name, extent.type, extent.low, extent.high, choices, extent.optional)


@dataclass(frozen=True)
class Result:
    """What expressions over the answer are made of: the outermost query, its sources, keys and aggregates."""

    query: exp.Select
    scope: Scope
    nodes: list[exp.Expr]
    keys: tuple[Key, ...]
    register: AggregateRegister
    windows: WindowRegister = field(default_factory=WindowRegister)
    totals: bool = False

    def outputs(self) -> tuple[OutputColumn, ...]:
        """Return the columns of the answer."""
        outputs: list[OutputColumn] = []
        taken: set[str] = set()
        for item in self.query.expressions:
            node = item.unalias()
            if isinstance(node, exp.Star):
                raise QueryRefused("rows are not released: ask for COUNT(*), SUM(x), AVG(x) and the like.")
            tree = self._over(node)
            aggregated = isinstance(tree, exp.Column) and tree.name in self.register.types
            bare = tree.name if aggregated and is_aggregate(node.unnest()) else None
            outputs.append(
                OutputColumn(_free(item.alias or called(node, self.scope), taken), tree, bare, self._type(tree))
            )
        return tuple(outputs)

    def _type(self, tree: exp.Expr) -> Type | None:
        """Return the type of what windows are in: that of all else is read off its values."""
        if not any(column.name in self.windows.types for column in tree.find_all(exp.Column)):
            return None
        return self.windows.types.get(tree.name) if isinstance(tree, exp.Column) else kind_of(tree, self._types)

    def qualify(self) -> exp.Expression | None:
        """Return the condition on rows of the answer beside each other."""
        qualify = self.query.args.get("qualify")
        return None if qualify is None else truth(self._over(self._unnamed(qualify.this)), self._types)

    def having(self) -> exp.Expression | None:
        """Return the condition on rows of the answer."""
        having = self.query.args.get("having")
        if having is not None and has_window(having.this):
            raise QueryRefused("OVER (…) does not stand after HAVING: use QUALIFY.")
        return None if having is None else truth(self._over(self._unnamed(having.this)), self._types)

    def order(self) -> tuple[exp.Ordered, ...]:
        """Return the order of rows of the answer."""
        order = self.query.args.get("order")
        return tuple(ordered(term, self._later) for term in (order.expressions if order is not None else ()))

    def _later(self, node: exp.Expr) -> exp.Expression:
        named = isinstance(node, exp.Column) and not node.table and node.name.casefold() in self._named
        return self._over(self._named[node.name.casefold()] if named else self._unnamed(node))

    def _over(self, node: exp.Expr) -> exp.Expression:
        tree = split(qualify(simple(node, self.scope), self.scope), self.nodes, self.register.name)
        return output(self.windows.plain(tree, self._types), self._types)

    @property
    def _types(self) -> dict[str, Type]:
        marks = {f"g{place}": Type.INTEGER for place in range(1, len(self.keys) + 1)} if self.totals else {}
        return {key.name: key.type for key in self.keys} | marks | self.register.types | self.windows.types

    @property
    def _named(self) -> dict[str, exp.Expr]:
        return {item.alias.casefold(): item.this for item in self.query.expressions if isinstance(item, exp.Alias)}

    def _unnamed(self, node: exp.Expr) -> exp.Expr:
        return unnamed(node, self.query, self.scope)


def unnamed(node: exp.Expr, query: exp.Select, scope: Scope) -> exp.Expr:
    """Return an expression in which names given by SELECT stand for what they name; columns of rows come first."""
    field_names = {item.name.casefold() for _, rows in scope.sources for item in rows.fields}
    items = (item for item in query.expressions if isinstance(item, exp.Alias))
    named = {item.alias.casefold(): item.this for item in items if item.alias.casefold() not in field_names}

    def change(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and not part.table and part.name.casefold() in named:
            return exp.Paren(this=named[part.name.casefold()].copy())
        return part

    return changed(node, change)


def called(node: exp.Expr, scope: Scope) -> str:
    """Return the name of a column of the answer that the query does not name."""
    if isinstance(node, exp.Column):
        return scope.find(node)[1].name

    return unqualified(node).sql("duckdb").lower()


def _free(wish: str, taken: set[str]) -> str:
    name, place = wish, 2
    while name.casefold() in taken:
        name, place = f"{wish}_{place}", place + 1
    taken.add(name.casefold())
    return name


_MOST_SETS = 64  # groupings share ε, and CUBE doubles them with each column
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_HOLDERS = (*_SETS, exp.Tuple, exp.Paren)
_ADDED = (
    AggregateKind.ROWS, AggregateKind.COUNT, AggregateKind.SUM, AggregateKind.MEAN, AggregateKind.VARIANCE,
    AggregateKind.DEVIATION,
)  # fmt: skip
"""What is read off sums, so that it can be read off the sum of several groups."""


def leaves(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield what a part of GROUP BY names.

    >>> from sqlglot import parse_one
    >>> [leaf.sql() for leaf in leaves(exp.Rollup(expressions=[exp.column("a"), exp.column("b")]))]
    ['a', 'b']
    """
    if isinstance(node, exp.Paren):
        yield from leaves(node.this)
    elif isinstance(node, _HOLDERS):
        for part in node.expressions:
            yield from leaves(part)
    else:
        yield node


def has_sets(nodes: list[exp.Expr]) -> bool:
    """Return whether ROLLUP, CUBE or GROUPING SETS is among the parts of GROUP BY."""
    return any(isinstance(node, _SETS) for node in nodes)


def sets_of(nodes: list[exp.Expr], place: Callable[[exp.Expr], int]) -> tuple[tuple[int, ...], ...]:
    """Return the sets of keys that GROUP BY asks for, each once, by the places that `place` gives to what it names.

    >>> a, b = exp.column("a"), exp.column("b")
    >>> sets_of([exp.Rollup(expressions=[a, b])], {a: 0, b: 1}.__getitem__)
    ((0, 1), (0,), ())
    """
    sets: list[frozenset[int]] = [frozenset()]
    for node in nodes:
        sets = [one | other for one in sets for other in _sets(node, place)]
        if len(sets) > _MOST_SETS:
            raise QueryRefused(f"at most {_MOST_SETS} groupings are answered at once: ask for fewer.")
    return tuple(tuple(sorted(places)) for places in dict.fromkeys(sets))


def _sets(node: exp.Expr, place: Callable[[exp.Expr], int]) -> list[frozenset[int]]:
    if isinstance(node, exp.GroupingSets):
        return [group for part in node.expressions for group in _sets(part, place)]
    if not isinstance(node, exp.Rollup | exp.Cube):
        return [frozenset(map(place, leaves(node)))]
    parts = [frozenset(map(place, leaves(part))) for part in node.expressions]
    if isinstance(node, exp.Rollup):
        return [frozenset().union(*parts[:many]) for many in range(len(parts), -1, -1)]
    if 2 ** len(parts) > _MOST_SETS:
        raise QueryRefused(f"at most {_MOST_SETS} groupings are answered at once: ask for fewer.")
    chosen = (itertools.combinations(parts, many) for many in range(len(parts), -1, -1))
    return [frozenset().union(*group) for group in itertools.chain.from_iterable(chosen)]


def check_totals(keys: tuple[Key, ...], aggregates: list[Aggregate]) -> None:
    """Refuse totals of what is not added up, or of groups that only rows can tell."""
    if any(key.values is None for key in keys):
        raise QueryRefused("ROLLUP, CUBE and GROUPING SETS need declared values: or ask for each grouping.")
    if any(aggregate.kind not in _ADDED for aggregate in aggregates):
        raise QueryRefused("ROLLUP, CUBE and GROUPING SETS add up COUNT, SUM, AVG, VARIANCE and STDDEV only.")
