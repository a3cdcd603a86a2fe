"""Super-nodes: a graph is told by groups of at least k nodes and the numbers of edges inside and between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.plan import Plan
from incrowd.core.steps.step import fold
from incrowd.methods.graphs.labels import NodeLabels, require_crowds
from incrowd.methods.graphs.super_nodes.grouping import groups_of, super_graph
from incrowd.methods.graphs.super_nodes.steps import GroupNodes
from incrowd.methods.graphs.units import unit_of

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.graph import Graph
    from incrowd.core.schema import Schema
    from incrowd.methods.graphs.outputs import SuperGraph


@dataclass(frozen=True, kw_only=True)
class SuperNodes:
    """A graph of super-nodes, each of at least k nodes, with sizes and numbers of edges.

    Guarantee: a form, and no ε: nothing published tells the members of a super-node apart.

    Assumes: nobody who reads it knows all edges of a super-node but one: the counts are exact.

    Source: Hay, Miklau, Jensen, Towsley & Weis 2008; Campan & Truta 2008 (labels by hierarchies).

    >>> SuperNodes(k=10).k
    10
    """

    name: ClassVar[str] = "super-nodes"

    k: int
    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        GroupNodes(self.k)

    def plan(self, schema: Schema) -> Plan:
        """Guarantee a form, from the schema alone."""
        unit_of(schema)
        labels = NodeLabels.of(schema, self.columns, self.levels)
        steps = (GroupNodes(self.k, self.columns),)

        def draw(graph: Graph, coins: Coins) -> SuperGraph:  # noqa: ARG001 - no chance is needed
            groups = groups_of(graph, labels.classes(graph), self.k)
            return super_graph(graph, groups, labels.texts(graph))

        def examine(graph: Graph) -> None:
            require_crowds(labels.classes(graph), self.k)

        return Plan(
            self.name, steps, fold(steps, schema.unit), {}, draw, self.k, settings={"k": self.k}, examine=examine
        )
