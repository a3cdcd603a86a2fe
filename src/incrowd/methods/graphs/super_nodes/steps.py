"""The step of super-nodes: groups of at least k nodes, told by their sizes and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Syntactic
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.claims import NOT_PRIVATE, generalized

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit


@dataclass(frozen=True)
class GroupNodes(Step):
    """Nodes become super-nodes of at least k, of which sizes and numbers of edges are published."""

    kind: ClassVar[str] = "group nodes"
    title: ClassVar[str] = "Group nodes"
    tables: ClassVar[int] = 2

    k: int
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.k < 2:
            raise InvalidParameter("super-nodes have at least 2 nodes each: choose k of 2 or more.")

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        same = f" with the same {', '.join(self.columns)}" if self.columns else ""
        return (
            f"Nodes near each other{same} become super-nodes of at least {self.k}. Of each its size and the exact "
            "number of edges inside are published, and of every two the number of edges between them. This looks at "
            "all edges."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:  # noqa: ARG002 - a form protects no unit
        """Guarantee a form, and nothing to those who know more."""
        if inner.loss is not None:
            return inner
        return StepGuarantee(Syntactic("super-nodes", (("k", str(self.k)),)), (NOT_PRIVATE,))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim that members of a super-node are not told apart."""
        return (generalized(self.k, self.columns, basis.unit),)
