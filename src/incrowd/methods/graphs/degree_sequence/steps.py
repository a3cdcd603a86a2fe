"""The step of degree sequences: noisy degrees in order, and a graph drawn from them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Pure
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Condition, Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.claims import WIDEST, Reasons, private

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

REACH = 2
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
        """What happens, for people."""
        return (
            f"The degrees in ascending order get integer Laplace noise of scale {self.scale}, and the sequence that "
            "does not fall and lies nearest to them is rounded. Nodes with these degrees are joined by coins; an end "
            "that finds no partner is left out. No edge of the data is published, and no node is anyone's."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what the noise costs."""
        if inner.loss is not None:
            return inner
        if not unit.kind.of_edges:
            raise InvalidParameter("one node changes all degrees without bound.")
        return StepGuarantee(Pure(REACH / self.scale), (_SOURCE,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim ε."""
        reasons = Reasons(
            (_GRAPH_FROM_NOISY_DEGREES,),
            (_GRAPH_SIMPLE,),
        )
        return (private(basis, "laplace", self.scale, reasons),)
