"""Clustering: how often two neighbors of a node are connected themselves, with noise that hides one edge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from markupsafe import Markup

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.loss import Pure
from incrowd.core.plan import Method, Plan
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions, fold
from incrowd.core.terms import Condition, Theorem
from incrowd.drawing.markup import Description, table
from incrowd.drawing.picture import Picture
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.polynomial import PolynomialNoise
from incrowd.methods.graphs.shared.check import GraphCheck, polynomial_problem
from incrowd.methods.graphs.shared.claims import Reasons, private
from incrowd.methods.graphs.shared.matrices import smooth_sensitivity, smooth_wedges, stars, triangles
from incrowd.methods.graphs.shared.outputs import (
    CLUSTERING,
    FARTHEST,
    TRIANGLES,
    WEDGES,
    GraphNumbers,
)
from incrowd.methods.graphs.shared.steps import Connect, require_edges, spent
from incrowd.verifier.check import CheckOutcome, Problem, one

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.graph import Graph
    from incrowd.core.schema import Schema
    from incrowd.core.unit import Unit


_SOURCE = Theorem(
    "smooth-sensitivity-clustering",
    "Nissim, Raskhodnikova & Smith 2007 (smooth sensitivity), for triangles and for pairs of edges with a common end, "
    "with polynomial noise whose loss is proved exactly; both losses add up",
)
DIGITS = 6  # of a published share: the noise is far above the sixth digit


_SMOOTH_NOISE_EXACT_EACH = Condition(
    "smooth-noise-exact-each",
    "the noise on each number is drawn exactly, for a sensitivity that falls slowly enough to a neighbor",
)
_COEFFICIENT_FROM_NOISY = Condition(
    "coefficient-from-noisy", "the coefficient is computed from both noisy numbers alone"
)
_COEFFICIENT_FITS = Condition("coefficient-fits", "the written coefficient is that of the written numbers")


@dataclass(frozen=True)
class NoisyClustering(Step):
    """Triangles and pairs of edges with a common end get noise at half of ε each; their ratio costs nothing more."""

    kind: ClassVar[str] = "noisy clustering"
    title: ClassVar[str] = "Noise on triangles and pairs of edges"

    half: Fraction
    power: int
    ratio: Fraction
    kappa: Fraction

    def __post_init__(self) -> None:
        _ = self.noise

    @property
    def noise(self) -> PolynomialNoise:
        """The law of the noise on each of both, up to its scale."""
        return PolynomialNoise(self.half, self.power, self.ratio, self.kappa)

    @property
    def sentence(self) -> str:
        return (
            "The number of triangles and the number of pairs of edges with a common end get polynomial noise for the "
            f"smooth sensitivity of this graph, at epsilon {self.half} each. Published are both, and three times the "
            "first over the second, from 0 to 1. The noise scale depends on the edges: neither that, nor an "
            "interval, nor the error to expect may be told."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee ε: what both numbers cost together."""
        if inner.loss is not None:
            return inner
        if not unit.kind.of_edges:
            raise InvalidParameter("one node changes triangles and pairs of edges without bound.")
        return StepGuarantee(Pure(2 * self.half), (_SOURCE,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim ε; no scale is stated."""
        reasons = Reasons(
            (
                _SMOOTH_NOISE_EXACT_EACH,
                _COEFFICIENT_FROM_NOISY,
            ),
            (_COEFFICIENT_FITS,),
        )
        return (private(basis, "polynomial", None, reasons),)


def coefficient(triangles: int, wedges: int) -> float:
    """Return three times the triangles over the pairs of edges, from 0 to 1; 0 where there are no pairs.

    >>> coefficient(45, 528), coefficient(5, -2), coefficient(9, 9)
    (0.255682, 0.0, 1.0)
    """
    share = Fraction(3 * triangles, wedges) if wedges > 0 else Fraction(0)
    return round(float(min(max(share, Fraction(0)), Fraction(1))), DIGITS)


@dataclass(frozen=True, kw_only=True)
class Clustering(Method):
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
        require_edges(schema, "the numbers of triangles and of pairs of edges")
        noise = PolynomialNoise.of(self.epsilon / 2, self.power)
        steps = (NoisyClustering(noise.epsilon, noise.power, noise.ratio, noise.kappa),)
        guarantee = fold(steps, schema.unit)

        def draw(graph: Graph, coins: Coins) -> GraphNumbers:
            numbers = (triangles(graph), smooth_sensitivity), (stars(graph.degrees, 2), smooth_wedges)
            noisy = [number + noise.draw(smooth(graph, noise.ratio), coins) for number, smooth in numbers]
            published = [max(-FARTHEST, min(number, FARTHEST)) for number in noisy]
            return GraphNumbers(
                pa.table(
                    {
                        TRIANGLES: [published[0]],
                        WEDGES: [published[1]],
                        CLUSTERING: [coefficient(published[0], published[1])],
                    }
                )
            )

        return Plan(self.name, steps, guarantee, spent(guarantee), draw, settings={"epsilon": self.epsilon})


@dataclass(frozen=True, kw_only=True)
class ClusteringCheck(GraphCheck):
    """Two noisy numbers, and the coefficient that follows from them."""

    def contradiction(self, statement: Statement) -> Problem | None:
        return super().contradiction(statement) or polynomial_problem(statement.basis.need(NoisyClustering).noise)

    def outcomes(self, statement: Statement, output: GraphNumbers) -> Iterator[CheckOutcome]:
        rows, names = output.table.to_pylist(), output.table.column_names
        other = names != [TRIANGLES, WEDGES, CLUSTERING] or len(rows) != 1 or None in rows[0].values()
        problem = Problem("the file does not hold two numbers and their coefficient") if other else None
        yield CheckOutcome("numbers in the file", problem, "they are triangles, pairs of edges, and the coefficient")
        if problem is None:
            wrong = rows[0][CLUSTERING] != coefficient(rows[0][TRIANGLES], rows[0][WEDGES])
            unequal = Problem("the coefficient is not that of the two numbers") if wrong else None
            yield CheckOutcome("coefficient in the file", unequal, "it is that of the two numbers")


class ClusteringPicture(Picture):
    """Three numbers."""

    evidence: Mapping[str, str] | None = {"numbers": "Rows published"}

    def description(self, statement: Statement) -> Description:
        full = (
            "The numbers of triangles and of pairs of edges with a common end, with noise, and how often two neighbors "
            "of a node are connected by these numbers. No node and no edge is published."
        )
        return Description("A clustering coefficient", full, "noisy numbers")

    def draw(self, statement: Statement, output: GraphNumbers) -> Markup | None:
        (row,) = output.table.to_pylist()
        rows = [[name, f"{row[name]:,}"] for name in (TRIANGLES, WEDGES, CLUSTERING)]
        return table("The published numbers, with noise", ["What", "Number"], rows)


METHOD = Clustering
CHECK = ClusteringCheck(
    order=(one(Connect), one(NoisyClustering)),
    claims=(PurePrivacy,),
    output=GraphNumbers,
    edges_only="triangles are protected for edges, and the guarantee is about another unit",
)
PICTURE = ClusteringPicture()
