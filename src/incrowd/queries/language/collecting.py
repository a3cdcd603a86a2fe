"""Collecting: the aggregates that a question is made of, each once, and the columns they are about."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.queries.language.aggregates import asked
from incrowd.queries.language.extent import BoundTree, Extent
from incrowd.queries.language.plan import Scope
from incrowd.queries.question import Aggregate, AggregateKind, Value


@dataclass
class Drawer:
    """The aggregates met so far while a question is read; equal ones are one, and so are equal columns."""

    scope: Scope
    aggregates: dict[tuple[object, ...], Aggregate] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    meanings: dict[str, BoundTree] = field(default_factory=dict)

    def name(self, node: exp.Expr) -> str:
        """Return the name of an aggregate, a new one if it was not met before."""
        wish = asked(node, self.scope)
        value = None if wish.value is None else self._value(wish.value)
        key = (wish.kind, value, wish.at)
        if key not in self.aggregates:
            self.aggregates[key] = Aggregate(f"a{len(self.aggregates) + 1}", wish.kind, value, wish.at)
        return self.aggregates[key].name

    @property
    def types(self) -> dict[str, Type]:
        """The types of all aggregates by their names."""
        return {aggregate.name: _type(aggregate) for aggregate in self.aggregates.values()}

    def _value(self, meaning: BoundTree) -> Value:
        text = meaning.tree.sql("duckdb")
        if text not in self.values:
            name = f"v{len(self.values) + 1}"
            self.values[text] = _value(name, meaning.extent)
            self.meanings[name] = meaning
        return self.values[text]


def _type(aggregate: Aggregate) -> Type:
    if aggregate.value is None or aggregate.kind not in (AggregateKind.QUANTILE, AggregateKind.MODE):
        return Type.DECIMAL
    return aggregate.value.type


def _value(name: str, extent: Extent) -> Value:
    choices = None
    if extent.type is Type.TEXT and extent.values is not None:
        choices = tuple(str(value) for value in extent.values)
    return Value(name, extent.type, extent.low, extent.high, choices, extent.optional)
