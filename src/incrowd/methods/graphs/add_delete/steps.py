"""The step of random changes: edges are removed and added by coins."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Syntactic
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.claims import NOT_PRIVATE, random_edges

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit


@dataclass(frozen=True)
class AddDelete(Step):
    """A share of the edges is removed, and as many are added where there were none."""

    kind: ClassVar[str] = "add and delete edges"
    title: ClassVar[str] = "Remove and add edges at random"
    tables: ClassVar[int] = 2

    share: Fraction
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InvalidParameter("the share of edges that are replaced lies above 0 and is at most 1.")

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            f"Edges chosen by coins are left out, {self.share} of them, and as many are put in between pairs of nodes, "
            "chosen by coins, that were not connected; both are fewer where there are not as many such pairs. Nodes "
            "get new numbers, in an order drawn by coins."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:  # noqa: ARG002 - a form protects no unit
        """Guarantee a form, and nothing to those who know more."""
        if inner.loss is not None:
            return inner
        return StepGuarantee(Syntactic("random edges", (("share", str(self.share)),)), (NOT_PRIVATE,))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim what was done, and that nothing more is guaranteed."""
        return (random_edges(self.share, basis.unit),)
