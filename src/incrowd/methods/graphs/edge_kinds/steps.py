"""The step of kinds of edges: numbers of edges, or degrees, of each kind and direction get noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Pure
from incrowd.core.relations import Relations
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Condition, Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.claims import WIDEST, Reasons, private

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Kind, Unit

EDGES, DEGREES = "edges", "degrees"
_SOURCE = Theorem(
    "edge-moves-its-kind",
    "one edge moves the number of edges of its kind by 1, and the degrees of its kind by 2 in all, or the degrees out "
    "and in by 1 each; a unit moves them by as much for each edge that it can have (Dwork, McSherry, Nissim & Smith "
    "2006, Hay, Li, Miklau & Jensen 2009 for degrees in order); integer Laplace noise",
)
_PROVED = Condition(
    "numbers-noisy", "every number gets noise of its own, and all that follows is computed from the noisy numbers alone"
)


_KINDS_LISTED_ONCE = Condition("kinds-listed-once", "the written table lists each kind and degree once")


@dataclass(frozen=True)
class NoisyKinds(Step):
    """Numbers of edges of each kind, or their degrees in order, get noise for all edges that a unit can have."""

    kind: ClassVar[str] = "noisy kinds"
    title: ClassVar[str] = "Noise on kinds of edges"

    count: str
    scale: Fraction
    kinds: tuple[str, ...] = ()
    directed: bool = False

    def __post_init__(self) -> None:
        if self.count not in (EDGES, DEGREES) or not 0 < self.scale <= WIDEST:
            raise InvalidParameter("edges or degrees are counted, with noise of a scale above 0 and at most 2^48.")

    @property
    def relations(self) -> Relations:
        """What is declared of edges."""
        return Relations(self.kinds, self.directed)

    def reach(self, kind: Kind) -> int:
        """Return how far one unit moves all numbers together."""
        if not kind.of_edges:
            raise InvalidParameter("one node changes the edges of every kind without bound.")
        return (2 if self.count == DEGREES else 1) * self.relations.slots(kind)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        noise = f"integer Laplace noise of scale {self.scale}"
        of = "of each kind" if self.kinds else "of all kinds together"
        if self.count == EDGES:
            way = ", an edge in either direction counting for itself," if self.directed else ""
            return f"The number of edges {of}{way} gets {noise}."
        way = " out and in" if self.directed else ""
        return (
            f"The degrees{way} {of} in ascending order get {noise}, and the sequences that do not fall and lie nearest "
            "to them are rounded and counted, degree by degree."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what the noise costs."""
        if inner.loss is not None:
            return inner
        return StepGuarantee(Pure(self.reach(unit.kind) / self.scale), (_SOURCE,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim ε."""
        reasons = Reasons((_PROVED,), (_KINDS_LISTED_ONCE,))
        return (private(basis, "laplace", self.scale, reasons),)
