"""Degree sequences: a synthetic graph with noisy degrees."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.graph import Degrees, Ends, Graph, keys_of
from incrowd.core.loss import Pure
from incrowd.core.plan import Method, Plan
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions, fold
from incrowd.core.terms import Condition, Theorem
from incrowd.drawing.markup import Description
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.shared.check import TwoTablesCheck
from incrowd.methods.graphs.shared.claims import WIDEST, Reasons, private
from incrowd.methods.graphs.shared.degrees import fitted
from incrowd.methods.graphs.shared.matrices import held
from incrowd.methods.graphs.shared.outputs import (
    SyntheticGraph,
    shuffled,
)
from incrowd.methods.graphs.shared.picture import GraphPicture
from incrowd.methods.graphs.shared.steps import Connect, require_edges, spent
from incrowd.verifier.check import one

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.unit import Unit


REACH = 2  # an edge changes two degrees by one each, and so the sorted list by 2 in all (Hay, Li, Miklau & Jensen 2009)
_SOURCE = Theorem(
    "edge-moves-sorted-degrees",
    "Hay, Li, Miklau & Jensen 2009: one edge moves the sorted degrees by 2 in all; integer Laplace noise",
)


_GRAPH_FROM_NOISY_DEGREES = Condition(
    "graph-from-noisy-degrees",
    "every degree gets noise of its own, and the graph is drawn from the noisy degrees alone",
)
_GRAPH_SIMPLE = Condition("graph-simple", "the written graph is simple")


@dataclass(frozen=True)
class DrawFromDegrees(Step):
    """Degrees in order get noise, a monotone sequence is fitted, and a graph is drawn from it alone."""

    kind: ClassVar[str] = "draw from degrees"
    title: ClassVar[str] = "Draw a graph from noisy degrees"
    tables: ClassVar[int] = 2

    scale: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.scale <= WIDEST:
            raise InvalidParameter("the scale of noise is above 0 and at most 2^48.")

    @property
    def sentence(self) -> str:
        return (
            f"The degrees in ascending order get integer Laplace noise of scale {self.scale}, and the sequence that "
            "does not fall and lies nearest to them is rounded. Nodes with these degrees are joined at random; an end "
            "that finds no partner is left out. No edge of the data is published, and no node is anyone's."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            return inner
        if not unit.kind.of_edges:
            raise InvalidParameter("one node changes all degrees without bound.")
        return StepGuarantee(Pure(REACH / self.scale), (_SOURCE,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        reasons = Reasons(
            (_GRAPH_FROM_NOISY_DEGREES,),
            (_GRAPH_SIMPLE,),
        )
        return (private(basis, "laplace", self.scale, reasons),)


# ends that do not fit are paired anew; what is left then is omitted. Post-processing: any number is private
_ROUNDS = 50


def edges_with(degrees: Degrees, coins: Coins) -> Ends:
    """Return edges that give each node about its degree, and never more.

    Every node has as many ends as its degree says, and ends are paired by coins.  A pair that would be a loop or an
    edge that is there already is paired anew in the next round; what does not fit after all rounds is left out.
    """
    size, edge_keys = len(degrees), np.zeros(0, np.int64)
    ends = np.repeat(np.arange(size, dtype=np.int32), degrees)
    for _ in range(_ROUNDS):
        if len(ends) < 2:
            break
        ends = ends[shuffled(len(ends), coins)]
        pairs = ends[: len(ends) // 2 * 2].reshape(-1, 2)
        keys = keys_of(pairs, size)
        good = np.zeros(len(pairs), np.bool_)
        good[np.unique(keys, return_index=True)[1]] = True
        good &= (pairs[:, 0] != pairs[:, 1]) & ~held(edge_keys, keys)
        new = np.sort(keys[good])
        edge_keys = np.insert(edge_keys, np.searchsorted(edge_keys, new), new)
        ends = np.concatenate([pairs[~good].ravel(), ends[len(pairs) * 2 :]])
    return np.stack(np.divmod(edge_keys, max(1, size)), axis=1)


@dataclass(frozen=True, kw_only=True)
class DegreeSequence(Method):
    """A graph drawn from noisy degrees: as many nodes as there are, none of which is a person, and random edges.

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
        require_edges(schema, "all degrees")
        step = DrawFromDegrees(REACH / self.epsilon)
        guarantee = fold((step,), schema.unit)

        def draw(graph: Graph, coins: Coins) -> SyntheticGraph:
            degrees = fitted(self.statistic(graph) + coins.laplace(step.scale, graph.size))
            return SyntheticGraph.renumbered(Graph.of(graph.size, edges_with(degrees, coins)), coins)

        settings = {"epsilon": self.epsilon, "scale": step.scale}
        return Plan(self.name, (step,), guarantee, spent(guarantee), draw, settings=settings)

    def statistic(self, graph: Graph) -> NDArray[np.int64]:
        """Return the numbers that get noise: degrees in ascending order."""
        return np.sort(graph.degrees)


class SequencePicture(GraphPicture):
    """A synthetic graph drawn from noisy degrees."""

    def description(self, statement: Statement) -> Description:
        full = (
            "Numbered nodes with noisy degrees, joined at random. No edge of the data is published, and no node is a "
            "person; an equal edge is a coincidence."
        )
        return Description("A synthetic graph", full, "nodes and edges that were drawn")


METHOD = DegreeSequence
CHECK = TwoTablesCheck(
    order=(one(Connect), one(DrawFromDegrees)),
    claims=(PurePrivacy,),
    output=SyntheticGraph,
    edges_only="noisy degrees protect an edge, and the guarantee is about another unit",
)
PICTURE = SequencePicture(
    "The published graph, drawn from noisy degrees", exact=False, evidence={"nodes": "Nodes", "edges": "Edges drawn"}
)
