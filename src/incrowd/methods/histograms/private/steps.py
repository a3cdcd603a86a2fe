"""The steps of private histograms: noise on every count, and thresholds, which save space or hide unknown bins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Approximate
from incrowd.core.steps.noise import DECLARED, EVERY_BIN, Law, noise_claim
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Condition, Theorem

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

_UNKNOWN = Theorem(
    "threshold-on-bins", "Korolova, Kenthapadi, Mishra & Ntoulas 2009 (unknown bins from a threshold on)"
)
_HIDDEN = Condition(
    "threshold-exact",
    "every bin that occurs gets noise of its own, and is listed only if its noisy count "
    "reaches a threshold that one person alone reaches with a chance of delta at most",
)
NEAR_THRESHOLD = "The threshold is public; of the bins just above it more are there by luck, and are further off."
_REACHED = Condition("no-count-below-threshold", "no count in the written output is below the threshold")


@dataclass(frozen=True)
class AddNoise(Step):
    """Every count, that of empty bins too, gets noise of its own; 95 % stay within a stated distance of the truth."""

    kind: ClassVar[str] = "noise"
    title: ClassVar[str] = "Noise on every count"

    noise: Law
    scale: Fraction
    within: int
    clamp: bool

    def __post_init__(self) -> None:
        self.noise.loss(self.scale)  # which refuses a scale that means nothing

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            f"Every count, that of empty bins too, gets {self.noise} noise. Of all these counts, listed or not, 95 % "
            f"are within {self.within} of the truth."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what noise costs a row; where unknown bins are hidden, their δ too, as for Gaussians."""
        if not isinstance(inner.loss, Approximate):
            return StepGuarantee(self.noise.loss(self.scale), (self.noise.source,), assumptions(unit))
        own = inner.loss.delta if self.noise is Law.GAUSSIAN else Fraction(0)
        loss = replace(inner.loss, delta=inner.loss.delta + own)
        return replace(inner, loss=loss, because=(self.noise.source, *inner.because))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim differential privacy."""
        conditions = (EVERY_BIN, DECLARED) if basis.find(HideUnknown) is None else (_HIDDEN, _REACHED)
        return (noise_claim(self.noise.kind, self.scale, basis.epsilon, basis, conditions),)


@dataclass(frozen=True)
class ListFrom(Step):
    """Bins whose noisy count is below a public number are not listed: there would be too many in vain."""

    kind: ClassVar[str] = "threshold"
    title: ClassVar[str] = "List what is clearly there"

    least: int

    @property
    def delta(self) -> str:
        """What it costs: nothing, since every bin is known."""
        return "0"

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return f"Bins whose noisy count is below {self.least} are not listed. {NEAR_THRESHOLD}"


@dataclass(frozen=True)
class HideUnknown(Step):
    """Bins that nobody declared are listed from a threshold on that a person alone reaches with a chance of δ at most.

    `epsilon` is what the noise costs at the δ that the threshold leaves for it.
    """

    kind: ClassVar[str] = "threshold"
    title: ClassVar[str] = "List what is clearly there"

    least: int
    delta: Fraction
    epsilon: Decimal

    def __post_init__(self) -> None:
        Approximate(Fraction(self.epsilon), self.delta)  # which refuses numbers that mean nothing

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return f"Bins whose noisy count is below {self.least} are not listed. {NEAR_THRESHOLD}"

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee that bins of one person alone stay hidden, but for δ, at the ε of the noise."""
        return StepGuarantee(Approximate(Fraction(self.epsilon), self.delta), (_UNKNOWN,), assumptions(unit))
