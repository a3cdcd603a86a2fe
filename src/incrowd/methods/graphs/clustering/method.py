"""Clustering: how often two neighbors of a node are connected themselves, with noise that hides one edge."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from incrowd.core.plan import Plan
from incrowd.core.steps.step import fold
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.polynomial import PolynomialNoise
from incrowd.methods.graphs.clustering.steps import NoisyClustering, coefficient
from incrowd.methods.graphs.matrices import stars, triangles
from incrowd.methods.graphs.outputs import CLUSTERING, FARTHEST, TRIANGLES, WEDGES, GraphNumbers
from incrowd.methods.graphs.smooth import smooth_sensitivity, smooth_wedges
from incrowd.methods.graphs.units import require_edges, spent

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.graph import Graph
    from incrowd.core.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Clustering:
    """The global clustering coefficient: three times the triangles over the pairs of edges with a common end.

    Guarantee: ε-differential privacy for each edge.

    Assumes: the power was chosen without looking at the graph; nodes and their number may be known; all releases of
    this graph go through one ledger.

    Source: Nissim, Raskhodnikova & Smith 2007 (smooth sensitivity); Karwa, Raskhodnikova, Smith & Yaroslavtsev 2011.

    >>> Clustering(epsilon=Fraction(1)).power
    10
    """

    name: ClassVar[str] = "clustering"

    epsilon: Fraction
    power: int = 10

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidParameter("epsilon must be above 0.")

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone."""
        require_edges(schema, "the numbers of triangles and of pairs of edges")
        noise = PolynomialNoise.of(self.epsilon / 2, self.power)
        steps = (NoisyClustering(noise.epsilon, noise.power, noise.ratio, noise.kappa),)
        guarantee = fold(steps, schema.unit)

        def draw(graph: Graph, coins: Coins) -> GraphNumbers:
            numbers = (triangles(graph), smooth_sensitivity), (stars(graph.degrees, 2), smooth_wedges)
            noisy = [number + noise.draw(smooth(graph, noise.ratio), coins) for number, smooth in numbers]
            told = [max(-FARTHEST, min(number, FARTHEST)) for number in noisy]
            return GraphNumbers(
                pa.table({TRIANGLES: [told[0]], WEDGES: [told[1]], CLUSTERING: [coefficient(told[0], told[1])]})
            )

        return Plan(self.name, steps, guarantee, spent(guarantee), draw, settings={"epsilon": self.epsilon})
