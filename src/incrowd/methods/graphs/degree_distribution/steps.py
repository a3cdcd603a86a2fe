"""The step of degree distributions: a projection where nodes are protected, and noise on degrees or their counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Pure
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Condition, Theorem
from incrowd.core.unit import Kind
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.claims import WIDEST, Reasons, private

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

_EDGE = Theorem(
    "edge-moves-sorted-degrees",
    "Hay, Li, Miklau & Jensen 2009: one edge moves the sorted degrees by 2 in all; integer Laplace noise",
)
_NODE = Theorem(
    "node-moves-degree-counts",
    "Day, Li & Lyu 2016: after the projection one node moves the counts by 2θ + 1 in all; integer Laplace noise",
)
LARGEST_BOUND = 10**6
"""Each degree up to a bound has a count of its own."""
_PROVED = Condition(
    "numbers-noisy", "every number gets noise of its own, and all that follows is computed from the noisy numbers alone"
)


_DEGREES_LISTED_ONCE = Condition("degrees-listed-once", "the written table lists each degree once")


@dataclass(frozen=True)
class NoisyDegrees(Step):
    """Degrees in order, or how many nodes have each, get noise; to the former a monotone sequence is fitted."""

    kind: ClassVar[str] = "noisy degrees"
    title: ClassVar[str] = "Noise on degrees"

    scale: Fraction
    bound: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.scale <= WIDEST or not 1 <= (self.bound or 1) <= LARGEST_BOUND:
            raise InvalidParameter(
                f"the scale of noise is above 0 and at most 2^48, a bound on degrees from 1 to {LARGEST_BOUND:,}."
            )

    def epsilon(self, kind: Kind) -> Fraction:
        """Return what the noise costs one unit: how far it moves the numbers, over the scale."""
        if (kind is Kind.NODE) != (self.bound is not None):
            raise InvalidParameter("degrees are bounded where nodes are protected, and only there.")
        return Fraction(2 if self.bound is None else 2 * self.bound + 1) / self.scale

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        if self.bound is None:
            return (
                f"The degrees in ascending order get integer Laplace noise of scale {self.scale}, and the sequence "
                "that does not fall and lies nearest to them is rounded and counted, degree by degree."
            )
        return (
            f"Edges are kept, in a public order, while both ends have fewer than {self.bound}. How many nodes then "
            f"have each degree from 0 to {self.bound} gets integer Laplace noise of scale {self.scale}. Where nodes "
            f"have more than {self.bound} edges, degrees come out too small: choose the bound without looking at the "
            "graph."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what the noise costs."""
        if inner.loss is not None:
            return inner
        source = _EDGE if self.bound is None else _NODE
        return StepGuarantee(Pure(self.epsilon(unit.kind)), (source,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim ε."""
        return (
            private(
                basis,
                "laplace",
                self.scale,
                Reasons((_PROVED,), (_DEGREES_LISTED_ONCE,)),
            ),
        )
