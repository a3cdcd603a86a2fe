"""Choices: a private selection over all rows decides something about the release, before the sample is drawn."""

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
    "Li, Qardaji & Su 2010, §4: a private choice of the recoding, then sampled suppression by its tight bound",
)
LOOKED = Theorem(
    "private-look",
    "one noise, by its largest coordinate (Hardt & Talwar 2010; Steinke & Ullman 2016), on the rows that each choice "
    "of levels, k and rate is expected to keep",
)
"""Why a private preview is private; the ledger's entry of one is recognized by it."""
BY_LOOK = Assumption(
    "levels-by-private-look",
    "levels, k and rate were chosen from the private preview of the named ledger entry and from public knowledge; the "
    "recoding rules and all choices that the preview compared were fixed without access to the rows",
)
_LOOK_ITSELF = Exposure(
    "private-look-itself",
    "what the private preview showed: its ledger entry charged an epsilon for it, and preview and release together "
    "lose at most the sum",
)
_FRESH = Condition(
    "fresh-coins-after-look",
    "the released sample has randomness of its own, independent of the private preview before it",
)
_NOBODY_BLENDS = Exposure(
    "no-blending-after-look",
    "crowd-blending and zero-knowledge are not claimed: who is in which crowd depends on a choice that read the rows",
)


_LEVELS_BY_PRIVATE_LOOK = Theorem(
    "levels-by-private-look", "levels chosen by a private preview that was charged before: adaptive composition"
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
    """A private choice of the recoding: what must not depend on rows, why it holds, and what it leaves unprotected."""

    because: ClassVar[Theorem]
    blind: ClassVar[Assumption]
    moved: ClassVar[Condition]
    fresh: ClassVar[Condition]
    left_open: ClassVar[Exposure]

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Put the choice in front; the recoding depends on the rows, but the choices that it compared do not."""
        around = super().around(inner, unit)
        if around is inner:
            return inner
        return replace(around, because=(self.because,), assumes=inner.assumes - {BLIND} | {self.blind})


@dataclass(frozen=True)
class SuppressChosen(Suppress):
    """Suppression of tuples at privately chosen levels: rare tuples are suppressed, and blending is not claimed."""

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim differential privacy of choice and release together, and k-anonymity."""
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
    """Levels, k and rate were chosen from a private preview; its ε was charged before, by another entry.

    Guarantee: what follows keeps its (ε, δ) for all levels, k and rate that the preview could have led to, since its
    randomness is independent; preview and release together lose at most the sum (adaptive composition).  The ledger
    holds both.
    """

    kind: ClassVar[str] = "levels by a private look"
    title: ClassVar[str] = "Levels chosen privately"

    epsilon: Fraction
    ledger: str
    entry: int
    hash: str

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.entry < 1:
            raise InvalidParameter("a private preview cost an epsilon above 0, and its ledger entry has a number.")

    @property
    def sentence(self) -> str:
        return (
            f"Levels, k and rate were chosen from a private preview of all rows. Its ε of {self.epsilon} was charged "
            f"by entry {self.entry} of the ledger, in addition to the cost of this release."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Replace the assumption that the levels do not depend on the rows; a property of form stays as it is."""
        if inner.loss is None or inner.syntactic:
            return inner
        return replace(
            inner, because=(*inner.because, _LEVELS_BY_PRIVATE_LOOK), assumes=inner.assumes - {BLIND} | {BY_LOOK}
        )


@dataclass(frozen=True)
class SuppressAfterLook(Suppress):
    """Suppression of tuples at levels from a private preview: rare tuples are suppressed, blending is not claimed."""

    kind: ClassVar[str] = "suppress at levels by a private look"

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim differential privacy of this release alone, and k-anonymity."""
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
