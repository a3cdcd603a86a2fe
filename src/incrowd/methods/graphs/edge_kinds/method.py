"""Kinds of edges: how many there are of each, or who has how many, with noise for one edge or for all of a pair."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa

from incrowd.core.plan import Plan
from incrowd.core.steps.step import fold
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.edge_kinds.steps import EDGES, NoisyKinds
from incrowd.methods.graphs.isotonic import fitted
from incrowd.methods.graphs.outputs import GraphNumbers
from incrowd.methods.graphs.units import relations_of, require_edges, spent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from incrowd.core.coins import Coins
    from incrowd.core.graph import Graph
    from incrowd.core.schema import Schema

ALL = "all"
BOTH, OUT, IN = "both", "out", "in"
"""Which edges of a node a degree counts: those in either direction, those from it, those to it."""


@dataclass(frozen=True, kw_only=True)
class EdgeKinds:
    """Numbers of edges, or distributions of degrees, of each declared kind; out and in where edges are directed.

    Guarantee: ε-differential privacy for all edges of a pair of nodes, or for one edge of one kind and direction: what
    a unit can have is counted from the declaration, and priced so.

    Assumes: kinds were declared without looking at the edges; nodes and their number may be known; all releases of this
    graph go through one ledger.

    Source: Dwork, McSherry, Nissim & Smith 2006; Hay, Li, Miklau & Jensen 2009 (degrees).

    >>> EdgeKinds(count="edges", epsilon=Fraction(1)).count
    'edges'
    """

    name: ClassVar[str] = "edge-kinds"
    apart: ClassVar[bool] = True

    count: Literal["edges", "degrees"]
    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidParameter("epsilon must be above 0.")

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone."""
        require_edges(schema, "the edges of every kind")
        declared = relations_of(schema)
        reach = NoisyKinds(self.count, Fraction(1), declared.kinds, declared.directed).reach(schema.unit.kind)
        step = NoisyKinds(self.count, reach / self.epsilon, declared.kinds, declared.directed)
        guarantee = fold((step,), schema.unit)

        def draw(graph: Graph, coins: Coins) -> GraphNumbers:
            return GraphNumbers(self._table(graph, step, coins))

        settings = {"epsilon": self.epsilon, "scale": step.scale, "edges of a unit": declared.slots(schema.unit.kind)}
        return Plan(self.name, (step,), guarantee, spent(guarantee), draw, settings=settings)

    def _table(self, graph: Graph, step: NoisyKinds, coins: Coins) -> pa.Table:
        names, numbers = step.kinds or (ALL,), self.numbers(graph, directed=step.directed)
        noisy = [number + coins.laplace(step.scale, len(number)) for number in numbers]
        if self.count == EDGES:
            return pa.table({"kind": list(names), "number": np.concatenate(noisy)})
        ways = (OUT, IN) if step.directed else (BOTH,)
        counts = [np.bincount(fitted(each), minlength=1) for each in noisy]
        sizes = [len(count) for count in counts]
        told = [(name, way) for name in names for way in ways]
        return pa.table(
            {
                "kind": np.repeat([name for name, _ in told], sizes).tolist(),
                "direction": np.repeat([way for _, way in told], sizes).tolist(),
                "degree": np.concatenate([np.arange(size) for size in sizes]),
                "count": np.concatenate(counts),
            }
        )

    def statistic(self, graph: Graph, *, directed: bool = False) -> NDArray[np.int64]:
        """Return all numbers that get noise, one after the other."""
        return np.concatenate(self.numbers(graph, directed=directed))

    def numbers(self, graph: Graph, *, directed: bool) -> list[NDArray[np.int64]]:
        """Return the numbers that get noise: edges of each kind, or degrees in order of each kind and direction."""
        if self.count == EDGES:
            return [np.array([len(layer)], np.int64) for layer in graph.layers]
        ends = [[layer[:, 0], layer[:, 1]] if directed else [layer.ravel()] for layer in graph.layers]
        return [np.sort(np.bincount(each, minlength=graph.size)) for layer in ends for each in layer]
