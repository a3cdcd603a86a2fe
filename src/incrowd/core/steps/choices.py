"""Choices: something about the release is chosen by a private look at all rows, before the sample is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.claim import GROUPS, assumed, proved
from incrowd.core.claims.privacy import ApproximatePrivacy
from incrowd.core.loss import Pure, Sequence
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import BLIND, ClaimBasis, Step, StepGuarantee
from incrowd.core.steps.suppression import COIN, COUNTED, RARE, Suppress, tight_curve
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

_THEOREM = Theorem(
    "li-2010-section-4",
    "Li, Qardaji & Su 2010, §4: a private choice of the recoding, then sampled suppression by its tight curve",
)
LOOKED = Theorem(
    "private-look",
    "one noise, by its largest coordinate (Hardt & Talwar 2010; Steinke & Ullman 2016), on "
    "the rows that each choice of levels, k and rate is expected to keep",
)
"""Why a private look is private: by this the ledger's entry of one is known."""
BY_LOOK = Assumption(
    "levels-by-private-look",
    "levels, k and rate were chosen from what the private look of the named ledger entry showed and from public "
    "knowledge; the recoding rules and all that the look weighed were fixed without looking at the rows",
)
_LOOK_ITSELF = Exposure(
    "private-look-itself",
    "what the private look showed: its ledger entry charged an epsilon for it, and look and release together lose at "
    "most the sum",
)
_FRESH = Condition(
    "fresh-coins-after-look",
    "the sample that is released has coins of its own, not those of the private look before it",
)
_NOBODY_BLENDS = Exposure(
    "no-blending-after-look",
    "crowd-blending and zero-knowledge are not claimed: who stands in which crowd hangs on a choice that read the rows",
)


_LEVELS_BY_PRIVATE_LOOK = Theorem(
    "levels-by-private-look", "levels chosen by a private look that was charged before: adaptive composition"
)


@dataclass(frozen=True)
class PrivateChoice(Step):
    """A selection that is ε-private itself and reads all rows."""

    epsilon: Fraction

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Put the choice in front: its ε adds to what follows, and a property of form gains nothing."""
        if inner.loss is None or inner.syntactic:
            return inner
        follows = inner.loss.parts if isinstance(inner.loss, Sequence) else (inner.loss,)
        return replace(inner, loss=Sequence((Pure(self.epsilon), *follows)))


@dataclass(frozen=True)
class RecodingChoice(PrivateChoice):
    """A private choice of the recoding: what must have been blind, what its proof rests on, what it leaves open."""

    because: ClassVar[Theorem]
    blind: ClassVar[Assumption]
    moved: ClassVar[Condition]
    fresh: ClassVar[Condition]
    left_open: ClassVar[Exposure]

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Put the choice in front; the recoding that it makes was not blind, but what it chose from was."""
        around = super().around(inner, unit)
        if around is inner:
            return inner
        return replace(around, because=(self.because,), assumes=inner.assumes - {BLIND} | {self.blind})


@dataclass(frozen=True)
class SuppressChosen(Suppress):
    """Suppression of tuples that a private choice made: nobody is known to blend, but what is rare is dropped."""

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim differential privacy of choice and release together, and that nothing published is rare."""
        same = self.anonymity(basis)
        if basis.guarantee.syntactic:
            return (same,)
        unit, choice = basis.unit, basis.need(RecodingChoice)
        private = ApproximatePrivacy(
            k=self.k,
            rate=basis.need(SecretSample).rate,
            delta=basis.guarantee.delta,
            epsilon=basis.epsilon,
            choosing=choice.epsilon,
            adjacency=unit.adjacency,
            max_rows=unit.max_rows,
            unit=unit,
            theorem=(_THEOREM,),
            preconditions=(
                COUNTED[0],
                *proved(choice.moved, choice.fresh),
                *RARE,
                *assumed(basis.guarantee.assumes),
            ),
            not_protected=(GROUPS, choice.left_open),
        )
        return (private, same)


@dataclass(frozen=True)
class LevelsByLook(Step):
    """Levels, k and rate were chosen from what a private look showed; its ε was charged before, by another entry.

    Guarantee: what follows keeps its (ε, δ) for every levels, k and rate that the look could have shown, since its
    coins are its own; look and release together lose at most the sum of both (adaptive composition).  The ledger holds
    both.
    """

    kind: ClassVar[str] = "levels by a private look"
    title: ClassVar[str] = "Levels chosen privately"

    epsilon: Fraction
    ledger: str
    entry: int
    hash: str

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.entry < 1:
            raise InvalidParameter("a private look cost an epsilon above 0, and its ledger entry has a number.")

    @property
    def sentence(self) -> str:
        """What happened, for people."""
        return (
            f"Levels, k and rate were chosen from what a private look at all rows showed. Its ε of {self.epsilon} was "
            f"charged by entry {self.entry} of the ledger, and comes on top of what this release costs."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Say that the levels were not chosen blindly; a property of form stays what it is."""
        if inner.loss is None or inner.syntactic:
            return inner
        because = (
            *inner.because,
            _LEVELS_BY_PRIVATE_LOOK,
        )
        return replace(inner, because=because, assumes=inner.assumes - {BLIND} | {BY_LOOK})


@dataclass(frozen=True)
class SuppressAfterLook(Suppress):
    """Suppression of tuples that a private look chose: what is rare is dropped, and nobody is known to blend."""

    kind: ClassVar[str] = "suppress at levels by a private look"

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim differential privacy of this release alone, and that nothing published is rare."""
        same = self.anonymity(basis)
        if basis.guarantee.syntactic:
            return (same,)
        unit = basis.unit
        private = ApproximatePrivacy(
            k=self.k,
            rate=basis.need(SecretSample).rate,
            delta=basis.guarantee.delta,
            epsilon=basis.epsilon,
            adjacency=unit.adjacency,
            max_rows=unit.max_rows,
            unit=unit,
            theorem=tight_curve(unit),
            preconditions=(*COUNTED, *COIN, *proved(_FRESH), *RARE, *assumed(basis.guarantee.assumes)),
            not_protected=(GROUPS, _NOBODY_BLENDS, _LOOK_ITSELF),
        )
        return (private, same)
