"""Randomized response: every pair of nodes answers at random whether it is connected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import comb, log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.graph import Ends, Graph
from incrowd.core.loss import Pure
from incrowd.core.plan import Method, Plan
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions, fold
from incrowd.core.terms import Condition, Theorem
from incrowd.drawing.markup import Description
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.shared.check import TwoTablesCheck, read
from incrowd.methods.graphs.shared.claims import Reasons, private
from incrowd.methods.graphs.shared.matrices import stars, triangles
from incrowd.methods.graphs.shared.outputs import (
    NodeLabels,
    PublishedGraph,
)
from incrowd.methods.graphs.shared.picture import GraphPicture
from incrowd.methods.graphs.shared.steps import Connect, require_edges, spent
from incrowd.noise.chance import exp_enclosure
from incrowd.verifier.check import Problem, one

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.unit import Unit


_SOURCE = Theorem(
    "warner-on-pairs", "Warner 1965 on each pair of nodes: the odds of an answer change by the factor (1 − p)/p"
)


_PAIR_ANSWERS_ALONE = Condition("pair-answers-alone", "every pair of nodes gives one answer, flipped independently")
_GRAPH_SIMPLE = Condition("graph-simple", "the written graph is simple")


@dataclass(frozen=True)
class AnswerPairs(Step):
    """Every pair of nodes says whether it is connected, flipped with a stated probability."""

    kind: ClassVar[str] = "answer pairs"
    title: ClassVar[str] = "Randomized answer of every pair"
    tables: ClassVar[int] = 2

    epsilon: Fraction
    flip: Fraction
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or not flip_of(self.epsilon) <= self.flip < Fraction(1, 2):
            raise InvalidParameter("an answer is flipped with a chance below 1/2, and as often as epsilon demands.")

    @property
    def sentence(self) -> str:
        return (
            "Every pair of nodes, connected or not, gives one answer, true or with the chance "
            f"{float(self.flip):.6f} the contrary. Pairs that say yes are published as edges; nodes get new numbers, "
            "in random order."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee ε to each pair: no other answer depends on it."""
        if inner.loss is not None:
            return inner
        return StepGuarantee(Pure(self.epsilon), (_SOURCE,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim ε for each edge."""
        reasons = Reasons(
            (_PAIR_ANSWERS_ALONE,),
            (_GRAPH_SIMPLE,),
        )
        return (private(basis, "randomized response", None, reasons),)


_PARTS = 10**12  # the chance of a lie has twelve decimals and is rounded up, which lowers the loss
MOST_NODES = 20_000
"""More nodes have more pairs than can be answered one by one."""
_PAIRS = 2**22  # pairs of nodes at a time: 32 MB


@lru_cache(maxsize=64)
def flip_of(epsilon: Fraction) -> Fraction:
    """Return the least chance of a flip, in parts of 10^12, at which an answer costs at most ε: p ≥ 1/(1 + e^ε).

    >>> flip_of(Fraction(1)) * 10**12
    Fraction(268941421370, 1)
    """
    high = exp_enclosure(epsilon, 40)[1]
    bound = high / (1 + high)
    return Fraction(-(-bound.numerator * _PARTS // bound.denominator), _PARTS)


def flipped(graph: Graph, flip: Fraction, coins: Coins) -> Ends:
    """Return the pairs that are said to be connected, each pair flipped independently."""
    size = graph.size
    starts = np.append(0, np.cumsum(np.arange(size - 1, -1, -1)))
    edges = starts[graph.ends[:, 0]] + graph.ends[:, 1] - graph.ends[:, 0] - 1
    estimate = []
    for begin in range(0, size * (size - 1) // 2, _PAIRS):
        end = min(begin + _PAIRS, size * (size - 1) // 2)
        answers = coins.bernoulli(flip, end - begin)
        answers[edges[(edges >= begin) & (edges < end)] - begin] ^= True
        estimate.append(np.flatnonzero(answers) + begin)
    places = np.concatenate(estimate) if estimate else np.zeros(0, np.int64)
    first = np.searchsorted(starts, places, side="right") - 1
    return np.stack([first, places - starts[first] + first + 1], axis=1).astype(np.int64)


@dataclass(frozen=True)
class EdgeEstimates:
    """What the answers say of the true graph, without bias: edges and triangles; and how far the first strays."""

    edges: float
    triangles: float
    deviation: float


def estimates(answers: Graph, flip: Fraction) -> EdgeEstimates:
    """Return the unbiased estimates: each answer y counts (y − p)/(1 − 2p), a triangle the product of its three.

    Σ over triples of (y1 − p)(y2 − p)(y3 − p) = T − p W + p² m (n − 2) − p³ C(n, 3), with the triangles T, the pairs W
    of edges with a common end, and the edges m of the answers.
    """
    size, m, p = answers.size, len(answers.ends), flip
    whole = triangles(answers) - p * stars(answers.degrees, 2) + p**2 * m * (size - 2) - p**3 * comb(size, 3)
    return EdgeEstimates(
        float((m - p * comb(size, 2)) / (1 - 2 * p)),
        float(whole / (1 - 2 * p) ** 3),
        sqrt(comb(size, 2) * deviation_of_a_pair(p) ** 2),
    )


def deviation_of_a_pair(flip: Fraction) -> float:
    """Return the standard deviation of one answer's count, √(p(1 − p))/(1 − 2p)."""
    return sqrt(float(flip * (1 - flip))) / float(1 - 2 * flip)


@dataclass(frozen=True, eq=False)
class RespondedGraph(PublishedGraph):
    """Pairs that are said to be connected, of which some are not; estimates are computed from them alone."""

    form: ClassVar[str] = "answers of pairs"

    flip: Fraction = Fraction(1, 3)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what is published, and the unbiased estimates that anyone can compute from it."""
        estimate = estimates(self.graph, self.flip)
        return {
            **super().evidence(unit, private=private),
            "edges estimated": f"{estimate.edges:.1f}",
            "standard deviation of that": f"{estimate.deviation:.1f}",
            "triangles estimated": f"{estimate.triangles:.1f}",
        }


@dataclass(frozen=True, kw_only=True)
class EdgeResponse(Method):
    """A graph in which every pair of nodes gives a randomized answer, with unbiased estimates of edges and triangles.

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
        require_edges(schema, "the answers of all pairs that it belongs to")
        labels, flip = NodeLabels.of(schema, self.columns, self.levels), flip_of(self.epsilon)
        steps = (AnswerPairs(self.epsilon, flip, self.columns),)
        guarantee = fold(steps, schema.unit)

        def draw(graph: Graph, coins: Coins) -> RespondedGraph:
            answers = graph.with_ends(flipped(graph, flip, coins))
            made = RespondedGraph.of(answers, labels.texts(graph), coins)
            return RespondedGraph(made.nodes, made.edges, made.origin, flip)

        return Plan(
            self.name, steps, guarantee, spent(guarantee), draw, settings={"epsilon": self.epsilon, "flip": flip}
        )


_TOLERANCE = 1 + 1e-9  # logarithms here are floats


@dataclass(frozen=True, kw_only=True)
class ResponseCheck(TwoTablesCheck):
    """The flips cost what the steps say."""

    def columns(self, statement: Statement) -> tuple[str, ...]:
        return statement.basis.need(AnswerPairs).columns

    def contradiction(self, statement: Statement) -> Problem | None:
        step = statement.basis.need(AnswerPairs)
        if log(float((1 - step.flip) / step.flip)) > float(step.epsilon) * _TOLERANCE:
            return Problem("an answer that is flipped so rarely costs more than the epsilon of the steps")
        return super().contradiction(statement)

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> RespondedGraph:
        nodes, edges = map(read, files)
        return RespondedGraph(nodes, edges, None, statement.basis.need(AnswerPairs).flip)


class ResponsePicture(GraphPicture):
    """Pairs that answer yes."""

    def description(self, statement: Statement) -> Description:
        flip, numbers = statement.basis.need(AnswerPairs).flip, statement.evidence
        full = (
            f"One answer for every pair of nodes, flipped with probability {float(flip):.4f}. The estimates from them "
            f"are {numbers.get('edges estimated')} edges and {numbers.get('triangles estimated')} triangles."
        )
        return Description("Randomized answers", full, "answers, each of which may be false")


METHOD = EdgeResponse
CHECK = ResponseCheck(
    order=(one(Connect), one(AnswerPairs)),
    claims=(PurePrivacy,),
    output=RespondedGraph,
    edges_only="one answer protects an edge, and the guarantee is about another unit",
)
PICTURE = ResponsePicture(
    "Pairs that answer yes, of which many are not connected",
    exact=False,
    evidence={"nodes": "Nodes", "edges": "Pairs that answer yes"},
)
