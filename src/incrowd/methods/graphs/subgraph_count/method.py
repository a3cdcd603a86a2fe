"""Counts of edges, triangles and stars, with noise that hides one edge; edges also with noise that hides one node."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa

from incrowd.core.plan import Plan
from incrowd.core.steps.step import fold
from incrowd.core.unit import Kind
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.polynomial import PolynomialNoise
from incrowd.methods.graphs.matrices import stars, triangles
from incrowd.methods.graphs.outputs import FARTHEST, GraphNumbers
from incrowd.methods.graphs.projection import projected
from incrowd.methods.graphs.smooth import smooth_sensitivity
from incrowd.methods.graphs.subgraph_count.steps import EDGES, STARS, TRIANGLES, NoisyCount, NoisyTriangles
from incrowd.methods.graphs.units import require_edges, spent, unit_of

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.graph import Graph
    from incrowd.core.schema import Schema


@dataclass(frozen=True, kw_only=True)
class SubgraphCount:
    """One number of a graph with noise: its edges, its triangles, or its stars with some leaves.

    Guarantee: ε-differential privacy for each edge; for the number of edges also for each node, up to a bound on
    degrees.

    Assumes: bound and power were chosen without looking at the graph; nodes and their number may be known where edges
    are protected; all releases of this graph go through one ledger.

    Source: Nissim, Raskhodnikova & Smith 2007 (triangles); Karwa, Raskhodnikova, Smith & Yaroslavtsev 2011 (stars);
    Day, Li & Lyu 2016 (nodes).

    >>> SubgraphCount(count="triangles", epsilon=Fraction(1)).power
    10
    """

    name: ClassVar[str] = "subgraph-count"

    count: Literal["edges", "triangles", "stars"]
    epsilon: Fraction
    bound: int | None = None
    leaves: int | None = None
    power: int | None = None

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidParameter("epsilon must be above 0.")
        if (self.count == STARS) != (self.leaves is not None):
            raise InvalidParameter("stars need leaves, how many ends a star has, such as leaves: 2; and only they do.")
        if self.count == STARS and self.bound is None:
            raise InvalidParameter(
                "one edge at a node of high degree can change very many stars: give the bound up to which degrees "
                "count, such as bound: 50."
            )
        if self.count != TRIANGLES and self.power is not None:
            raise InvalidParameter("power shapes the noise of triangles: leave it out.")
        if self.count == TRIANGLES:
            if self.bound is not None:
                raise InvalidParameter("triangles need no bound: the noise is as wide as the graph demands.")
            object.__setattr__(self, "power", 10 if self.power is None else self.power)

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone."""
        kind = unit_of(schema)
        if self.count != EDGES:
            require_edges(schema, f"the number of {self.count}")
        if self.count == EDGES and (kind is Kind.NODE) != (self.bound is not None):
            raise InvalidParameter(
                "one node can change the number of edges without bound: give the bound to which degrees are cut, such "
                "as bound: 20."
                if kind is Kind.NODE
                else "where edges are protected their number needs no bound: leave it out."
            )
        step = self._step(kind)
        guarantee = fold((step,), schema.unit)

        def draw(graph: Graph, coins: Coins) -> GraphNumbers:
            noisy = max(-FARTHEST, min(self.statistic(graph) + self._noise(graph, step, coins), FARTHEST))
            return GraphNumbers(pa.table({"what": [self.count], "number": pa.array([noisy], pa.int64())}))

        return Plan(self.name, (step,), guarantee, spent(guarantee), draw, settings={"epsilon": self.epsilon})

    def _step(self, kind: Kind) -> NoisyCount | NoisyTriangles:
        if self.count == TRIANGLES:
            noise = PolynomialNoise.of(self.epsilon, self.power or 0)
            return NoisyTriangles(noise.epsilon, noise.power, noise.ratio, noise.kappa)
        reach = NoisyCount(self.count, Fraction(1), self.bound, self.leaves).reach(kind)
        return NoisyCount(self.count, reach / self.epsilon, self.bound, self.leaves)

    def statistic(self, graph: Graph) -> int:
        """Return the number that gets noise."""
        if self.count == TRIANGLES:
            return triangles(graph)
        if self.leaves is not None:
            return stars(np.minimum(graph.degrees, self.bound or 0), self.leaves)
        return len(graph.ends if self.bound is None else projected(graph, self.bound))

    @staticmethod
    def _noise(graph: Graph, step: NoisyCount | NoisyTriangles, coins: Coins) -> int:
        if isinstance(step, NoisyTriangles):
            return step.noise.draw(smooth_sensitivity(graph, step.ratio), coins)
        noise: int = coins.laplace(step.scale, 1).tolist()[0]
        return noise
