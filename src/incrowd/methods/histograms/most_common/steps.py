"""The steps of a selection: noise decides among bins that are close, and the winners are published in order."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Pure
from incrowd.core.steps.noise import Law, noise_claim
from incrowd.core.steps.samples import moved
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Theorem
from incrowd.core.unit import Adjacency
from incrowd.mechanisms.selection import MonotoneNoisyMax, NoisyMax

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

FLIP = "permute-and-flip"


_READ_OFF = Theorem("winners-read-off", "winners are read off")


@dataclass(frozen=True)
class Winners(Step):
    """Noise decides among bins that are close, and the most common are chosen."""

    kind: ClassVar[str] = "select"
    title: ClassVar[str] = "Choose the most common"

    top: int
    scale: Fraction

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return f"Noise decides among bins that are close. The most common {self.top} are chosen."


@dataclass(frozen=True)
class ReadOff(Winners):
    """All counts get integer Laplace noise once, and winners and their counts are read off."""

    within: int

    @property
    def noise(self) -> str:
        """The law of the noise."""
        return str(Law.LAPLACE)

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what noise on all counts costs a row."""
        return StepGuarantee(Law.LAPLACE.loss(self.scale), (Law.LAPLACE.source, _READ_OFF), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim differential privacy."""
        return (noise_claim(Law.LAPLACE.kind, self.scale, basis.epsilon, basis),)


@dataclass(frozen=True)
class PermuteAndFlip(Winners):
    """One winner is chosen by exponential noise, without its count."""

    @property
    def noise(self) -> str:
        """How the winner is chosen."""
        return FLIP

    def epsilon(self, unit: Unit) -> Fraction:
        """Return what the choice costs: a unit moves the winner's lead by so many rows, replaced by twice as many."""
        return unit.max_rows * moved(unit) / self.scale

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what the choice costs a unit: counts rise together where people are added, not where replaced."""
        law = MonotoneNoisyMax if unit.adjacency is Adjacency.ADD_REMOVE else NoisyMax
        return StepGuarantee(Pure(self.epsilon(unit)), (law.because,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim differential privacy, with an ε that follows from the scale."""
        return (noise_claim(FLIP, self.scale, self.epsilon(basis.unit), basis),)


@dataclass(frozen=True)
class PublishRanking(Step):
    """The chosen bins are published in order, with their noisy counts or without."""

    kind: ClassVar[str] = "publish ranking"
    title: ClassVar[str] = "Publish the winners"

    counts: bool

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return f"The chosen bins in order, {'with their noisy counts' if self.counts else 'without any counts'}."
