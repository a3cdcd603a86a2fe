"""The step of clustering: triangles and wedges get noise as wide as the graph demands, and one is held by the other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Pure
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Condition, Theorem
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.polynomial import PolynomialNoise
from incrowd.methods.graphs.claims import Reasons, private

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

_SOURCE = Theorem(
    "smooth-sensitivity-clustering",
    "Nissim, Raskhodnikova & Smith 2007 (smooth sensitivity), for triangles and for pairs of edges with a common end, "
    "with polynomial noise whose loss is proved exactly; both losses add up",
)
DIGITS = 6


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
        """What happens, for people."""
        return (
            "The number of triangles and the number of pairs of edges with a common end get polynomial noise for the "
            f"smooth sensitivity of this graph, at epsilon {self.half} each. Published are both, and three times the "
            "first over the second, from 0 to 1. How wide the noise is hangs on the edges: neither that, nor an "
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
