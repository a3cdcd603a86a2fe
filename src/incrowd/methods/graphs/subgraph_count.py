"""Counts of edges, triangles and stars, with noise that hides one edge; edges also with noise that hides one node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.loss import Laplace, Pure
from incrowd.core.plan import Method, Plan
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions, fold
from incrowd.core.terms import Condition, Theorem
from incrowd.core.unit import Kind
from incrowd.drawing.markup import Description, table
from incrowd.drawing.picture import Picture
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.polynomial import PolynomialNoise
from incrowd.methods.graphs.shared.check import GraphCheck, polynomial_problem
from incrowd.methods.graphs.shared.claims import WIDEST, Reasons, private
from incrowd.methods.graphs.shared.degrees import projected
from incrowd.methods.graphs.shared.matrices import smooth_sensitivity, stars, triangles
from incrowd.methods.graphs.shared.outputs import (
    FARTHEST,
    TRIANGLES,
    GraphNumbers,
)
from incrowd.methods.graphs.shared.steps import Connect, require_edges, spent, unit_of
from incrowd.verifier.check import CheckOutcome, Problem, one

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.graph import Graph
    from incrowd.core.schema import Schema
    from incrowd.core.unit import Unit


EDGES, STARS = "edges", "stars"
_LAPLACE = Theorem("geometric-noise", "Ghosh, Roughgarden & Sundararajan 2009 (two-sided geometric noise)")
_PROJECTED = Theorem(
    "node-moves-edges", "Day, Li & Lyu 2016: after the projection one node moves the number of edges by θ"
)
_CUT = Theorem("edge-moves-stars", "stars of degrees cut at D: one edge moves each of two terms by C(D − 1, size − 1)")
_SMOOTH = Theorem(
    "smooth-sensitivity",
    "Nissim, Raskhodnikova & Smith 2007 (smooth sensitivity), with polynomial noise whose loss is proved exactly",
)
_ONE_NUMBER = Condition("one-number-written", "the written table holds this one number")


_NUMBER_NOISY = Condition("number-noisy", "one number gets noise for how far one unit can move it")
_SMOOTH_NOISE_EXACT = Condition(
    "smooth-noise-exact",
    "the noise is drawn exactly, for a sensitivity that falls from a graph to a neighbor slowly enough",
)


@dataclass(frozen=True)
class LaplaceCount(Step):
    """A number gets integer Laplace noise for how far one unit can move it."""

    what: ClassVar[str]
    """What is counted, as the released table says it."""

    scale: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.scale <= WIDEST:
            raise InvalidParameter(
                "the scale of noise is above 0 and at most 2^48: choose a smaller bound, fewer leaves, or a larger "
                "epsilon."
            )

    def sensitivity(self, kind: Kind) -> int:
        """Return how far one unit moves the number, or refuse a unit that moves it without bound."""
        raise NotImplementedError

    @property
    def sources(self) -> tuple[Theorem, ...]:
        """The theorems behind the sensitivity."""
        return ()

    @property
    def noise(self) -> str:
        """The noise, for people."""
        return f"gets integer Laplace noise of scale {self.scale}"

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            return inner
        loss = Laplace(self.scale, self.sensitivity(unit.kind))
        return StepGuarantee(loss, (*self.sources, _LAPLACE), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        return (private(basis, "laplace", self.scale, Reasons((_NUMBER_NOISY,), (_ONE_NUMBER,))),)


@dataclass(frozen=True)
class NoisyEdges(LaplaceCount):
    """The number of edges gets noise: of 1 for an edge; of the bound for a node, after a projection."""

    kind: ClassVar[str] = "noisy edges"
    title: ClassVar[str] = "Noise on the number of edges"
    what: ClassVar[str] = EDGES

    bound: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bound is not None and self.bound < 1:
            raise InvalidParameter("a bound on degrees is 1 or more.")

    def sensitivity(self, kind: Kind) -> int:
        if (kind is Kind.NODE) != (self.bound is not None):
            raise InvalidParameter("edges are bounded where nodes are protected, and only there.")
        return self.bound or 1

    @property
    def sources(self) -> tuple[Theorem, ...]:
        return () if self.bound is None else (_PROJECTED,)

    @property
    def sentence(self) -> str:
        if self.bound is None:
            return f"The number of edges {self.noise}."
        return (
            f"Edges are kept, in a public order, while both ends have fewer than {self.bound}; their number "
            f"{self.noise}. Where nodes have more than {self.bound} edges it is too small."
        )


@dataclass(frozen=True)
class NoisyStars(LaplaceCount):
    """The number of stars of cut degrees gets noise for the two terms that one edge moves."""

    kind: ClassVar[str] = "noisy stars"
    title: ClassVar[str] = "Noise on the number of stars"
    what: ClassVar[str] = STARS

    bound: int
    leaves: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.leaves <= self.bound:
            raise InvalidParameter("a star has 2 leaves or more, and the bound on degrees is not below its leaves.")

    def sensitivity(self, kind: Kind) -> int:
        if not kind.of_edges:
            raise InvalidParameter("stars are counted where edges are protected.")
        return 2 * comb(self.bound - 1, self.leaves - 1)

    @property
    def sources(self) -> tuple[Theorem, ...]:
        return (_CUT,)

    @property
    def sentence(self) -> str:
        return (
            f"The number of stars with {self.leaves} leaves, in which a degree above {self.bound} counts as "
            f"{self.bound}, {self.noise}. Where nodes have more edges it is too small."
        )


@dataclass(frozen=True)
class NoisyTriangles(Step):
    """The number of triangles gets noise as wide as the graph itself demands; how wide is not told."""

    kind: ClassVar[str] = "noisy triangles"
    title: ClassVar[str] = "Noise on triangles"

    epsilon: Fraction
    power: int
    ratio: Fraction
    kappa: Fraction

    def __post_init__(self) -> None:
        _ = self.noise

    @property
    def noise(self) -> PolynomialNoise:
        """The law of the noise, up to its scale."""
        return PolynomialNoise(self.epsilon, self.power, self.ratio, self.kappa)

    @property
    def sentence(self) -> str:
        return (
            "The number of triangles gets polynomial noise for the smooth sensitivity of this graph. How wide the "
            "noise is depends on the edges: neither that, nor an interval, nor the expected error may be published."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee ε."""
        if inner.loss is not None:
            return inner
        return StepGuarantee(Pure(self.epsilon), (_SMOOTH,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim ε; no scale is stated."""
        reasons = Reasons(
            (_SMOOTH_NOISE_EXACT,),
            (_ONE_NUMBER,),
        )
        return (private(basis, "polynomial", None, reasons),)


@dataclass(frozen=True, kw_only=True)
class SubgraphCount(Method):
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
    libraries: ClassVar[tuple[str, ...] | None] = ("scipy.sparse",)

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

    def _step(self, kind: Kind) -> LaplaceCount | NoisyTriangles:
        if self.count == TRIANGLES:
            noise = PolynomialNoise.of(self.epsilon, self.power or 0)
            return NoisyTriangles(noise.epsilon, noise.power, noise.ratio, noise.kappa)
        unscaled: LaplaceCount = NoisyEdges(Fraction(1), self.bound)
        if self.leaves is not None and self.bound is not None:
            unscaled = NoisyStars(Fraction(1), self.bound, self.leaves)
        return replace(unscaled, scale=unscaled.sensitivity(kind) / self.epsilon)

    def statistic(self, graph: Graph) -> int:
        """Return the number that gets noise."""
        if self.count == TRIANGLES:
            return triangles(graph)
        if self.leaves is not None:
            return stars(np.minimum(graph.degrees, self.bound or 0), self.leaves)
        return len(graph.ends if self.bound is None else projected(graph, self.bound))

    @staticmethod
    def _noise(graph: Graph, step: LaplaceCount | NoisyTriangles, coins: Coins) -> int:
        if isinstance(step, NoisyTriangles):
            return step.noise.draw(smooth_sensitivity(graph, step.ratio), coins)
        noise: int = coins.laplace(step.scale, 1).tolist()[0]
        return noise


@dataclass(frozen=True, kw_only=True)
class CountCheck(GraphCheck):
    """One number of what the steps count."""

    def contradiction(self, statement: Statement) -> Problem | None:
        kind, smooth = statement.basis.unit.kind, statement.basis.find(NoisyTriangles)
        if smooth is None:
            _count_of(statement).sensitivity(kind)  # which refuses other units
            return super().contradiction(statement)
        if not kind.of_edges:
            return Problem("triangles are protected for edges, and the guarantee is about another unit")
        return polynomial_problem(smooth.noise) or super().contradiction(statement)

    def outcomes(self, statement: Statement, output: GraphNumbers) -> Iterator[CheckOutcome]:
        what = TRIANGLES if statement.basis.find(NoisyTriangles) else _count_of(statement).what
        other = output.table.column_names != ["what", "number"] or output.table["what"].to_pylist() != [what]
        other = other or bool(output.table["number"].null_count)
        problem = Problem("the file does not hold this one number") if other else None
        yield CheckOutcome("number in the file", problem, "it is one, of what the steps count")


def _count_of(statement: Statement) -> LaplaceCount:
    edges = statement.basis.find(NoisyEdges)
    return statement.basis.need(NoisyStars) if edges is None else edges


class CountPicture(Picture):
    """One number."""

    evidence: Mapping[str, str] | None = {"numbers": "Numbers published"}

    def description(self, statement: Statement) -> Description:
        full = "One number of the graph, with noise. No node and no edge is published."
        return Description("One number", full, "a number")

    def draw(self, statement: Statement, output: GraphNumbers) -> Markup | None:
        rows = [[row["what"], f"{row['number']:,}"] for row in output.table.to_pylist()]
        return table("The published number, with noise", ["What", "Number"], rows)


METHOD = SubgraphCount
CHECK = CountCheck(
    order=(one(Connect), one(NoisyEdges, NoisyStars, NoisyTriangles)), claims=(PurePrivacy,), output=GraphNumbers
)
PICTURE = CountPicture()
