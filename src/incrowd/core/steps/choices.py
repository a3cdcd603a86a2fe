"""Choices: something about the release is chosen by a private look at all rows, before the sample is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.claim import GROUPS, assumed, proved
from incrowd.core.claims.privacy import ApproximatePrivacy
from incrowd.core.loss import Pure, Sequence
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import BLIND, Grounds, Promise, Step
from incrowd.core.steps.suppression import COUNTED, LI, RARE, Suppress

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

_THEOREM = f"{LI}, §4: a private choice of the recoding, then sampled suppression by its tight curve"


@dataclass(frozen=True)
class PrivateChoice(Step):
    """A selection that is ε-private itself and reads all rows."""

    epsilon: Fraction

    def around(self, inner: Promise, unit: Unit) -> Promise:  # noqa: ARG002 - its ε is that of the unit
        """Put the choice in front: its ε adds to what follows, and a property of form gains nothing."""
        if inner.loss is None or inner.syntactic:
            return inner
        follows = inner.loss.parts if isinstance(inner.loss, Sequence) else (inner.loss,)
        return replace(inner, loss=Sequence((Pure(self.epsilon), *follows)))


@dataclass(frozen=True)
class RecodingChoice(PrivateChoice):
    """A private choice of the recoding: what must have been blind, what its proof rests on, what it leaves open."""

    because: ClassVar[str]
    blind: ClassVar[str]
    moved: ClassVar[str]
    fresh: ClassVar[str]
    left_open: ClassVar[str]

    def around(self, inner: Promise, unit: Unit) -> Promise:
        """Put the choice in front; the recoding that it makes was not blind, but what it chose from was."""
        around = super().around(inner, unit)
        if around is inner:
            return inner
        return replace(around, because=(self.because,), assumes=inner.assumes - {BLIND} | {self.blind})


@dataclass(frozen=True)
class SuppressChosen(Suppress):
    """Suppression of tuples that a private choice made: nobody is known to blend, but what is rare is dropped."""

    def claims(self, grounds: Grounds) -> tuple[Claim, ...]:
        """Claim differential privacy of choice and release together, and that nothing published is rare."""
        same = self.anonymity(grounds)
        if grounds.promise.syntactic:
            return (same,)
        unit, choice = grounds.unit, grounds.need(RecodingChoice)
        private = ApproximatePrivacy(
            k=self.k,
            rate=grounds.need(SecretSample).rate,
            delta=grounds.promise.delta,
            epsilon=grounds.epsilon,
            choosing=choice.epsilon,
            adjacency=unit.adjacency,
            max_rows=unit.max_rows,
            unit=str(unit),
            theorem=_THEOREM,
            preconditions=(
                COUNTED[0],
                *proved(choice.moved, choice.fresh),
                *RARE,
                *assumed(grounds.promise.assumes),
            ),
            not_protected=(GROUPS, choice.left_open),
        )
        return (private, same)
