"""The steps of counts: Laplace noise where the reach of one unit is known, polynomial noise where the graph decides."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Laplace, Pure
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Condition, Theorem
from incrowd.core.unit import Kind
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.polynomial import PolynomialNoise
from incrowd.methods.graphs.claims import WIDEST, Reasons, private

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

EDGES, TRIANGLES, STARS = "edges", "triangles", "stars"
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
class NoisyCount(Step):
    """A number of edges or stars gets integer Laplace noise for how far one unit can move it."""

    kind: ClassVar[str] = "noisy count"
    title: ClassVar[str] = "Noise on a count"

    count: str
    scale: Fraction
    bound: int | None = None
    leaves: int | None = None

    def __post_init__(self) -> None:
        if self.count not in (EDGES, STARS) or (self.count == STARS) != (self.leaves is not None):
            raise InvalidParameter("edges are counted, or stars with a number of leaves.")
        if not 0 < self.scale <= WIDEST or (self.bound is not None and self.bound < 1) or (self.leaves or 2) < 2:
            raise InvalidParameter(
                "the scale of noise is above 0 and at most 2^48, a bound 1 or more, and a star has 2 leaves or more: "
                "choose a smaller bound, fewer leaves, or a larger epsilon."
            )
        if self.count == STARS and (self.bound is None or self.bound < (self.leaves or 0)):
            raise InvalidParameter("stars are counted up to a bound on degrees, which is not below their leaves.")

    def reach(self, kind: Kind) -> int:
        """Return how far one unit moves the number: 1 edge; θ edges after a projection; two cut terms of stars."""
        if self.count == STARS and kind.of_edges:
            return 2 * comb((self.bound or 0) - 1, (self.leaves or 0) - 1)
        if self.count == EDGES and (kind is Kind.NODE) == (self.bound is not None):
            return self.bound or 1
        raise InvalidParameter(
            "edges are bounded where nodes are protected, and only there; stars are for edges alone."
        )

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        noise = f"gets integer Laplace noise of scale {self.scale}"
        if self.count == STARS:
            return (
                f"The number of stars with {self.leaves} leaves, in which a degree above {self.bound} counts as "
                f"{self.bound}, {noise}. Where nodes have more edges the number comes out too small."
            )
        if self.bound is None:
            return f"The number of edges {noise}."
        return (
            f"Edges are kept, in a public order, while both ends have fewer than {self.bound}; their number {noise}. "
            f"Where nodes have more than {self.bound} edges it comes out too small."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what the noise costs."""
        if inner.loss is not None:
            return inner
        source = (_CUT,) if self.count == STARS else (_PROJECTED,) if self.bound is not None else ()
        return StepGuarantee(Laplace(self.scale, self.reach(unit.kind)), (*source, _LAPLACE), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim ε."""
        reasons = Reasons((_NUMBER_NOISY,), (_ONE_NUMBER,))
        return (private(basis, "laplace", self.scale, reasons),)


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
        """What happens, for people."""
        return (
            "The number of triangles gets polynomial noise for the smooth sensitivity of this graph. How wide the "
            "noise is hangs on the edges: neither that, nor an interval, nor the error to expect may be told."
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
