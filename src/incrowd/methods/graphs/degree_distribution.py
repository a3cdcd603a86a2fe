"""Degree distributions: how many nodes have each degree, with noise that hides one edge or one node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.loss import Pure
from incrowd.core.plan import Method, Plan
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions, fold
from incrowd.core.terms import Condition, Theorem
from incrowd.core.unit import Kind
from incrowd.drawing.markup import Description, figure, table
from incrowd.drawing.picture import Picture
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.shared.check import GraphCheck
from incrowd.methods.graphs.shared.claims import WIDEST, Reasons, private
from incrowd.methods.graphs.shared.degrees import fitted, projected
from incrowd.methods.graphs.shared.outputs import (
    GraphNumbers,
)
from incrowd.methods.graphs.shared.picture import degree_bars
from incrowd.methods.graphs.shared.steps import Connect, spent, unit_of
from incrowd.verifier.check import CheckOutcome, Problem, one

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.graph import Graph
    from incrowd.core.schema import Schema
    from incrowd.core.unit import Unit


_EDGE = Theorem(
    "edge-moves-sorted-degrees",
    "Hay, Li, Miklau & Jensen 2009: one edge moves the sorted degrees by 2 in all; integer Laplace noise",
)
_NODE = Theorem(
    "node-moves-degree-counts",
    "Day, Li & Lyu 2016: after the projection one node moves the counts by 2θ + 1 in all; integer Laplace noise",
)
LARGEST_BOUND = 10**6
"""Each degree up to a bound has a count of its own."""
_PROVED = Condition(
    "numbers-noisy", "every number gets noise of its own, and all that follows is computed from the noisy numbers alone"
)


_DEGREES_LISTED_ONCE = Condition("degrees-listed-once", "the written table lists each degree once")


@dataclass(frozen=True)
class NoisyDegrees(Step):
    """Degrees in order, or how many nodes have each, get noise; to the former a monotone sequence is fitted."""

    kind: ClassVar[str] = "noisy degrees"
    title: ClassVar[str] = "Noise on degrees"

    scale: Fraction
    bound: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.scale <= WIDEST or not 1 <= (self.bound or 1) <= LARGEST_BOUND:
            raise InvalidParameter(
                f"the scale of noise is above 0 and at most 2^48, a bound on degrees from 1 to {LARGEST_BOUND:,}."
            )

    def epsilon(self, kind: Kind) -> Fraction:
        """Return what the noise costs one unit: how far it moves the numbers, over the scale."""
        if (kind is Kind.NODE) != (self.bound is not None):
            raise InvalidParameter("degrees are bounded where nodes are protected, and only there.")
        return Fraction(2 if self.bound is None else 2 * self.bound + 1) / self.scale

    @property
    def sentence(self) -> str:
        if self.bound is None:
            return (
                f"The degrees in ascending order get integer Laplace noise of scale {self.scale}, and the sequence "
                "that does not fall and lies nearest to them is rounded and counted, degree by degree."
            )
        return (
            f"Edges are kept, in a public order, while both ends have fewer than {self.bound}. How many nodes then "
            f"have each degree from 0 to {self.bound} gets integer Laplace noise of scale {self.scale}. Where nodes "
            f"have more than {self.bound} edges, degrees come out too small: choose the bound without looking at the "
            "graph."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            return inner
        source = _EDGE if self.bound is None else _NODE
        return StepGuarantee(Pure(self.epsilon(unit.kind)), (source,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        return (
            private(
                basis,
                "laplace",
                self.scale,
                Reasons((_PROVED,), (_DEGREES_LISTED_ONCE,)),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class DegreeDistribution(Method):
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
        edges = projected(graph, self.bound)
        degrees = np.bincount(edges.ravel(), minlength=graph.size)
        return np.bincount(degrees, minlength=self.bound + 1).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class DegreesCheck(GraphCheck):
    """Degrees from 0 on, each with a count."""

    def contradiction(self, statement: Statement) -> Problem | None:
        bounded = statement.basis.need(NoisyDegrees).bound is not None
        if bounded != (statement.basis.unit.kind is Kind.NODE):
            return Problem("degrees are bounded where nodes are protected, and only there")
        return super().contradiction(statement)

    def outcomes(self, statement: Statement, output: GraphNumbers) -> Iterator[CheckOutcome]:
        other = output.table.column_names != ["degree", "count"]
        columns = Problem("the columns are not degree and count") if other else None
        yield CheckOutcome("columns in the file", columns, "they are degree and count")
        if not other:
            problem = _degrees_problem(statement.basis.need(NoisyDegrees).bound, output.table)
            yield CheckOutcome("degrees in the file", problem, "each stands once, in order")


def _degrees_problem(bound: int | None, table: pa.Table) -> Problem | None:
    if table["degree"].to_pylist() != list(range(table.num_rows)):
        return Problem("the degrees do not stand one after the other from 0 on")
    counts = table["count"].to_pylist()
    if bound is None:
        wrong = any(count is None or count < 0 for count in counts)
        return Problem("some count is negative or missing") if wrong else None
    return Problem("there are not as many degrees as the bound allows") if table.num_rows != bound + 1 else None


class DegreesPicture(Picture):
    """A distribution as bars."""

    evidence: Mapping[str, str] | None = {"numbers": "Degrees listed"}

    def description(self, statement: Statement) -> Description:
        bound = statement.basis.need(NoisyDegrees).bound
        cut = "" if bound is None else f" Degrees are cut at {bound}, so nodes with more edges count as smaller."
        full = f"How many nodes have each degree, with noise.{cut} No node and no edge is published."
        return Description("A distribution of degrees", full, "numbers that depend little on one edge or node")

    def draw(self, statement: Statement, output: GraphNumbers) -> Markup | None:
        degrees, counts = output.table["degree"].to_numpy(), output.table["count"].to_numpy()
        words = "How many nodes have each degree; every number carries noise."
        rows = [[int(degree), int(count)] for degree, count in zip(degrees[:200], counts[:200], strict=True)]
        chart = degree_bars(degrees, counts, words, exact=False)
        return figure(chart, words, table("Degrees", ["Degree", "Nodes"], rows))


METHOD = DegreeDistribution
CHECK = DegreesCheck(order=(one(Connect), one(NoisyDegrees)), claims=(PurePrivacy,), output=GraphNumbers)
PICTURE = DegreesPicture()
