"""Degree sequences: a synthetic graph with noisy degrees."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from incrowd.core.graph import Graph
from incrowd.core.plan import Plan
from incrowd.core.steps.step import fold
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.degree_sequence.drawing import drawn
from incrowd.methods.graphs.degree_sequence.steps import REACH, DrawFromDegrees
from incrowd.methods.graphs.isotonic import fitted
from incrowd.methods.graphs.outputs import SyntheticGraph
from incrowd.methods.graphs.units import require_edges, spent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema


@dataclass(frozen=True, kw_only=True)
class DegreeSequence:
    """A graph drawn from noisy degrees: as many nodes as there are, none of which is anyone's, and edges by coins.

    Guarantee: ε-differential privacy for each edge.

    Assumes: nodes and their number may be known to anyone; all releases of this graph go through one ledger.

    Source: Hay, Li, Miklau & Jensen 2009 (degrees); Bollobás 1980 (ends joined at random).

    >>> DegreeSequence(epsilon=Fraction(1)).epsilon
    Fraction(1, 1)
    """

    name: ClassVar[str] = "degree-sequence"

    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidParameter("epsilon must be above 0.")

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone."""
        require_edges(schema, "all degrees")
        step = DrawFromDegrees(REACH / self.epsilon)
        guarantee = fold((step,), schema.unit)

        def draw(graph: Graph, coins: Coins) -> SyntheticGraph:
            degrees = fitted(self.statistic(graph) + coins.laplace(step.scale, graph.size))
            return SyntheticGraph.drawn(Graph.of(graph.size, drawn(degrees, coins)), coins)

        settings = {"epsilon": self.epsilon, "scale": step.scale}
        return Plan(self.name, (step,), guarantee, spent(guarantee), draw, settings=settings)

    def statistic(self, graph: Graph) -> NDArray[np.int64]:
        """Return the numbers that get noise: degrees in ascending order."""
        return np.sort(graph.degrees)
