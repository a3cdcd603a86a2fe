"""Randomized response: every pair of nodes says by a coin whether it is connected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.plan import Plan
from incrowd.core.steps.step import fold
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.edge_response.flips import MOST_NODES, flip_of, flipped
from incrowd.methods.graphs.edge_response.output import RespondedGraph
from incrowd.methods.graphs.edge_response.steps import AnswerPairs
from incrowd.methods.graphs.labels import NodeLabels
from incrowd.methods.graphs.units import require_edges, spent

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.graph import Graph
    from incrowd.core.schema import Schema


@dataclass(frozen=True, kw_only=True)
class EdgeResponse:
    """A graph in which every pair of nodes answers by a coin, with unbiased estimates of edges and triangles.

    Guarantee: ε-differential privacy for each edge, whatever is known of all others.

    Assumes: nodes and their columns may be known to anyone; all releases of this graph go through one ledger.

    Source: Warner 1965; Wang, Wu & Hu 2016 (on pairs of nodes).

    >>> EdgeResponse(epsilon=Fraction(2)).epsilon
    Fraction(2, 1)
    """

    name: ClassVar[str] = "edge-response"
    most_nodes: ClassVar[int] = MOST_NODES

    epsilon: Fraction
    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.epsilon <= 40:
            raise InvalidParameter("randomized response needs an epsilon above 0, and at most 40.")

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone."""
        require_edges(schema, "the answers of all pairs that it belongs to")
        labels, flip = NodeLabels.of(schema, self.columns, self.levels), flip_of(self.epsilon)
        steps = (AnswerPairs(self.epsilon, flip, self.columns),)
        guarantee = fold(steps, schema.unit)

        def draw(graph: Graph, coins: Coins) -> RespondedGraph:
            said = graph.with_ends(flipped(graph, flip, coins))
            made = RespondedGraph.of(said, labels.texts(graph), coins)
            return RespondedGraph(made.nodes, made.edges, made.origin, flip)

        return Plan(
            self.name, steps, guarantee, spent(guarantee), draw, settings={"epsilon": self.epsilon, "flip": flip}
        )
