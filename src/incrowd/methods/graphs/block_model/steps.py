"""The step of block models: noisy counts of edges inside and between blocks, and a graph drawn from them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Pure
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Condition, Theorem
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.claims import WIDEST, Reasons, private

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

_SOURCE = Theorem(
    "edge-moves-one-block-count",
    "an edge lies between two blocks that do not hang on edges, and moves one of the counts by 1 (Dwork, McSherry, "
    "Nissim & Smith 2006); integer Laplace noise",
)


_GRAPH_FROM_NOISY_COUNTS = Condition(
    "graph-from-noisy-counts", "every count gets noise of its own, and the graph is drawn from the noisy counts alone"
)
_GRAPH_SIMPLE = Condition("graph-simple", "the written graph is simple")


@dataclass(frozen=True)
class DrawFromBlocks(Step):
    """Edges are counted inside and between blocks with noise, and a graph is drawn from these counts alone."""

    kind: ClassVar[str] = "draw from blocks"
    title: ClassVar[str] = "Draw a graph from noisy counts"
    tables: ClassVar[int] = 2

    column: str
    blocks: int
    scale: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.scale <= WIDEST or self.blocks < 1:
            raise InvalidParameter("the scale of noise is above 0 and at most 2^48, and there is at least one block.")

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            f"Nodes fall into {counted(self.blocks, 'block')} by “{self.column}”, which is declared. The number of "
            f"edges inside each and between any two gets integer Laplace noise of scale {self.scale}; so many edges "
            "are then drawn at places where the blocks allow them, every place as likely. No edge of the data is "
            "published."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what the noise costs."""
        if inner.loss is not None:
            return inner
        if not unit.kind.of_edges:
            raise InvalidParameter("one node changes counts between blocks without bound.")
        return StepGuarantee(Pure(1 / self.scale), (_SOURCE,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim ε."""
        reasons = Reasons(
            (_GRAPH_FROM_NOISY_COUNTS,),
            (_GRAPH_SIMPLE,),
        )
        return (private(basis, "laplace", self.scale, reasons),)
