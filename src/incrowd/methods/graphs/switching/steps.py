"""The step of switching: edges exchange ends."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Syntactic
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.claims import NOT_PRIVATE, switched_edges

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit


@dataclass(frozen=True)
class SwitchEdges(Step):
    """A share of the edges exchange an end with another edge; every node keeps its degree."""

    kind: ClassVar[str] = "switch edges"
    title: ClassVar[str] = "Exchange ends of edges"
    tables: ClassVar[int] = 2

    share: Fraction
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InvalidParameter("the share of edges that are switched lies above 0 and is at most 1.")

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            f"Pairs of edges, chosen by coins, exchange an end, until {self.share} of all edges have: (a, b) and "
            "(c, d) become (a, d) and (c, b), unless that makes a loop or an edge that exists. Every node keeps its "
            "degree. Nodes get new numbers, in an order drawn by coins."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:  # noqa: ARG002 - a form protects no unit
        """Guarantee a form, and nothing to those who know more."""
        if inner.loss is not None:
            return inner
        return StepGuarantee(Syntactic("switched edges", (("share", str(self.share)),)), (NOT_PRIVATE,))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim that degrees stay, and that the rest is not guaranteed."""
        return (switched_edges(self.share, basis.unit),)
