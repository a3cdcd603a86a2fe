"""The step of k-degree anonymity: edges change until no degree is rare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Syntactic
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.claims import NOT_PRIVATE, degree_anonymity
from incrowd.methods.graphs.degree_anonymity.fewest import MOST_NODES

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit


@dataclass(frozen=True)
class LevelDegrees(Step):
    """Edges change, as few as can be found, until each degree is shared by k nodes."""

    kind: ClassVar[str] = "level degrees"
    title: ClassVar[str] = "Change edges until no degree is rare"
    tables: ClassVar[int] = 2

    k: int
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.k < 2:
            raise InvalidParameter("k-degree anonymity needs k of at least 2.")

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        same = f" with the same {', '.join(self.columns)}" if self.columns else ""
        return (
            f"Edges are added, moved or removed until every degree is shared by {self.k} nodes{same}. In a graph of up "
            f"to {MOST_NODES} nodes these are the fewest changes, if a search of bounded length proves it; else "
            "degrees are only raised, as little as a graph allows that could be found. Nodes get new numbers, in an "
            "order drawn by coins. This looks at all edges."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:  # noqa: ARG002 - a form protects no unit
        """Guarantee a form, and nothing to those who know more."""
        if inner.loss is not None:
            return inner
        return StepGuarantee(Syntactic("k-degree anonymity", (("k", str(self.k)),)), (NOT_PRIVATE,))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim that no degree is rare."""
        return (degree_anonymity(self.k, self.columns, basis.unit),)
