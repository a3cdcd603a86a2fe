"""Degree distributions: how many nodes have each degree, with noise that hides one edge or one node."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from incrowd.core.plan import Plan
from incrowd.core.steps.step import fold
from incrowd.core.unit import Kind
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.degree_distribution.steps import LARGEST_BOUND, NoisyDegrees
from incrowd.methods.graphs.isotonic import fitted
from incrowd.methods.graphs.outputs import GraphNumbers
from incrowd.methods.graphs.projection import projected
from incrowd.methods.graphs.units import spent, unit_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from incrowd.core.coins import Coins
    from incrowd.core.graph import Graph
    from incrowd.core.schema import Schema


@dataclass(frozen=True, kw_only=True)
class DegreeDistribution:
    """How many nodes have each degree: sorted degrees with noise for edges, counts after a projection for nodes.

    Guarantee: ε-differential privacy for each edge, or for each node with all its edges.

    Assumes: the bound was chosen without looking at the graph; for edges, nodes and their number may be known; all
    releases of this graph go through one ledger.

    Source: Hay, Li, Miklau & Jensen 2009 (edges, isotonic); Day, Li & Lyu 2016 (nodes, by projection).

    >>> DegreeDistribution(epsilon=Fraction(1)).bound is None
    True
    """

    name: ClassVar[str] = "degree-distribution"

    epsilon: Fraction
    bound: int | None = None

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidParameter("epsilon must be above 0.")
        if self.bound is not None and not 1 <= self.bound <= LARGEST_BOUND:
            raise InvalidParameter(f"a bound on degrees is a whole number from 1 to {LARGEST_BOUND:,}.")

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone."""
        kind = unit_of(schema)
        if (kind is Kind.NODE) != (self.bound is not None):
            raise InvalidParameter(
                "one node can change every degree: give the bound to which degrees are cut, such as bound: 20."
                if kind is Kind.NODE
                else "where edges are protected degrees need no bound: leave it out."
            )
        moved = 2 if self.bound is None else 2 * self.bound + 1
        steps = (NoisyDegrees(moved / self.epsilon, self.bound),)
        guarantee = fold(steps, schema.unit)
        settings = {"epsilon": self.epsilon, "scale": steps[0].scale}
        return Plan(self.name, steps, guarantee, spent(guarantee), self.release, settings=settings)

    def release(self, graph: Graph, coins: Coins) -> GraphNumbers:
        """Count degrees, add noise, and make a table of what comes out."""
        numbers = self.statistic(graph)
        scale = Fraction(2 if self.bound is None else 2 * self.bound + 1) / self.epsilon
        noisy = numbers + coins.laplace(scale, len(numbers))
        counts = noisy if self.bound is not None else np.bincount(fitted(noisy), minlength=1)
        return GraphNumbers(pa.table({"degree": np.arange(len(counts)), "count": counts}))

    def statistic(self, graph: Graph) -> NDArray[np.int64]:
        """Return the numbers that get noise: degrees in ascending order, or how many nodes have each degree."""
        if self.bound is None:
            return np.sort(graph.degrees)
        kept = projected(graph, self.bound)
        degrees = np.bincount(kept.ravel(), minlength=graph.size)
        return np.bincount(degrees, minlength=self.bound + 1).astype(np.int64)
