"""Units of graphs: an edge, an edge of one kind or a node, added or removed; and what noise on numbers costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.accounting import accountant
from incrowd.core.relations import GraphSchema, Relations
from incrowd.core.unit import Adjacency, Kind
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.guarantee import Guarantee
    from incrowd.core.schema import Schema


def unit_of(schema: Schema) -> Kind:
    """Return whether edges or nodes are protected, or refuse every other unit."""
    unit = schema.unit
    if unit.kind not in (Kind.EDGE, Kind.RELATION, Kind.NODE) or unit.adjacency is not Adjacency.ADD_REMOVE:
        raise InvalidParameter(
            "this method is for graphs, whose unit is one edge, one edge of one kind, or one node, added or removed: "
            "write nodes: and edges: into the policy, and unit: {kind: edge} or {kind: node}."
        )
    return unit.kind


def require_edges(schema: Schema, what: str) -> None:
    """Refuse to protect nodes where one of them can change a number without bound."""
    if unit_of(schema) is Kind.NODE:
        raise InvalidParameter(
            f"one node can change {what} without bound, so that no noise would hide it. Protect edges, unit: {{kind: "
            "edge}; or ask for degree-distribution, or for subgraph-count of edges with a bound."
        )


def relations_of(schema: Schema) -> Relations:
    """Return what is declared of edges: nothing where a schema knows only nodes."""
    return schema.relations if isinstance(schema, GraphSchema) else Relations()


def spent(guarantee: Guarantee) -> dict[str, Any]:
    """Return the numbers that claims state: what the loss costs."""
    return {"epsilon": accountant.charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency).epsilon}
