"""The step of randomized response: every pair answers by a coin."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Pure
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Condition, Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.claims import Reasons, private
from incrowd.methods.graphs.edge_response.flips import flip_of

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

_SOURCE = Theorem(
    "warner-on-pairs", "Warner 1965 on each pair of nodes: the odds of an answer change by the factor (1 − p)/p"
)


_PAIR_ANSWERS_ALONE = Condition("pair-answers-alone", "every pair of nodes gives one answer, by a coin of its own")
_GRAPH_SIMPLE = Condition("graph-simple", "the written graph is simple")


@dataclass(frozen=True)
class AnswerPairs(Step):
    """Every pair of nodes says whether it is connected, and by a coin the contrary."""

    kind: ClassVar[str] = "answer pairs"
    title: ClassVar[str] = "Every pair answers by a coin"
    tables: ClassVar[int] = 2

    epsilon: Fraction
    flip: Fraction
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or not flip_of(self.epsilon) <= self.flip < Fraction(1, 2):
            raise InvalidParameter("an answer is flipped with a chance below 1/2, and as often as epsilon demands.")

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            "Every pair of nodes, connected or not, gives one answer, true or with the chance "
            f"{float(self.flip):.6f} the contrary. Pairs that say yes are published as edges; nodes get new numbers, "
            "in an order drawn by coins."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee ε to each pair: no other answer depends on it."""
        if inner.loss is not None:
            return inner
        return StepGuarantee(Pure(self.epsilon), (_SOURCE,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim ε for each edge."""
        reasons = Reasons(
            (_PAIR_ANSWERS_ALONE,),
            (_GRAPH_SIMPLE,),
        )
        return (private(basis, "randomized response", None, reasons),)
