"""Samples: which rows are read: every row, a secret sample, or a biased sample drawn before or drawn here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from incrowd.core.claims.privacy import SampleOrigin
from incrowd.core.loss import (
    THE_ROWS,
    Crowd,
    Gaussian,
    GaussianRounds,
    Laplace,
    Loss,
    Pure,
    RobustlySampled,
    Sampled,
)
from incrowd.core.steps.step import Step, StepGuarantee
from incrowd.core.terms import Assumption, Theorem
from incrowd.core.unit import Adjacency, Unit
from incrowd.core.words import share

COINS = Assumption("secret-coins", "nobody knows the sampling randomness; it was deleted")
ROBUST = Theorem("gehrke-2012-theorem-2-exact", "Gehrke, Hay, Lui & Pass 2012, Theorem 2, by the exact worst case")
DRAWN_BEFORE = Assumption(
    "sample-drawn-before",
    "the rows are a random sample: each person was sampled independently, at a rate from `low` to `high` that depends "
    "on that person's own data alone, except `irregular` people at a rate up to `max_rate`; nobody knows which other "
    "people were sampled, and nobody chose to be sampled",
)
AMPLIFIED = Theorem("amplification", "amplified by a secret sample")


@dataclass(frozen=True)
class EveryRow(Step):
    """Every row is read."""

    kind: ClassVar[str] = "sample"
    title: ClassVar[str] = "No sample"
    glyph: ClassVar[str | None] = "same"
    sentence = "Every row is read: there is no secret sample."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Let noise cover the counts that all rows of a unit move; on a sample each row has a coin of its own."""
        return replace(inner, loss=of_unit(inner.loss, unit)) if isinstance(inner.loss, Laplace | Gaussian) else inner


@dataclass(frozen=True)
class SecretSample(Step):
    """Each row is sampled independently, in secret: Poisson sampling by AES-256 under a key that is deleted."""

    kind: ClassVar[str] = "sample"
    title: ClassVar[str] = "Secret sample"
    glyph: ClassVar[str | None] = "drawn"

    rate: Fraction

    @property
    def sentence(self) -> str:
        return (
            f"Each row is sampled independently, in secret: {share(self.rate)} on average. Nobody knows which rows "
            "were sampled; the randomness is deleted."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Put the sample around what is computed on it; a property of form gains nothing."""
        if inner.loss is None or inner.syntactic:
            return inner
        reasons = inner.on_sample or (*inner.because, AMPLIFIED)
        return replace(
            inner, loss=Sampled(self.rate, inner.loss), because=reasons, assumes=inner.assumes | {COINS}, on_sample=()
        )


@dataclass(frozen=True)
class Survey(Step):
    """A sample in which rates differ from person to person; `origin` says whether it was drawn before, or is here."""

    kind: ClassVar[str] = "sample"
    origin: ClassVar[SampleOrigin]

    low: Fraction
    high: Fraction
    irregular: int
    max_rate: Fraction

    def loss(self, crowd: Crowd, sample: str | None) -> RobustlySampled:
        """Return what a crowd costs on this sample."""
        return RobustlySampled(self.low, self.high, self.irregular, self.max_rate, crowd, sample)


@dataclass(frozen=True)
class DrawnBefore(Survey):
    """The rows are a sample that others drew; every row is read."""

    title: ClassVar[str] = "A sample drawn before"
    glyph: ClassVar[str | None] = "same"
    origin: ClassVar[SampleOrigin] = SampleOrigin.BEFORE

    @property
    def sentence(self) -> str:
        some = f", and up to {self.max_rate} for {self.irregular} of the people" if self.irregular else ""
        return (
            f"The rows are a sample that others drew, at rates from {self.low} to {self.high}{some}. Every row is "
            "read. The protection depends on nobody knowing who was sampled."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Put the survey around a crowd: nothing else may be released from these rows."""
        if not isinstance(inner.loss, Crowd):
            return inner
        return StepGuarantee(self.loss(inner.loss, THE_ROWS), (ROBUST,), inner.assumes | {DRAWN_BEFORE})


@dataclass(frozen=True)
class DrawnHere(Survey):
    """Each row is sampled independently, in secret, at the exact rate that a column states."""

    title: ClassVar[str] = "Secret sample"
    glyph: ClassVar[str | None] = "drawn"
    origin: ClassVar[SampleOrigin] = SampleOrigin.HERE

    column: str

    @property
    def sentence(self) -> str:
        return (
            f"Each row is sampled independently, in secret, at its own rate, from {self.low} to {self.high}. Nobody "
            "knows which rows were sampled; the randomness is deleted."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Put the sample around a crowd."""
        if not isinstance(inner.loss, Crowd):
            return inner
        return StepGuarantee(self.loss(inner.loss, None), (ROBUST,), inner.assumes | {COINS})


def of_unit(noise: Laplace | Gaussian, unit: Unit) -> Loss:
    """Return what independent noise on counts that one row moves by 1 costs a unit.

    A person with m rows moves counts by m in total, so ε = m/scale; their squares sum to at most m², so
    ρ = m²/(2 scale²) (Canonne, Kamath & Steinke 2020: concentration adds up over independent counts).  A replaced
    person takes as much away as it brings, in other bins: twice the sum, twice the sum of squares.

    >>> of_unit(Laplace(Fraction(2)), Unit(adjacency=Adjacency.REPLACE))
    Pure(epsilon=Fraction(1, 1))
    >>> from incrowd.core.unit import Kind
    >>> of_unit(Gaussian(Fraction(10)), Unit(Kind.PERSON, column="id", max_rows=3))
    GaussianRounds(rho=Fraction(9, 200), scale=Fraction(10, 1), moved=3)
    """
    rows, moves = unit.max_rows, moved(unit)
    if rows * moves == 1:
        return noise
    return (
        Pure(rows * moves / noise.scale)
        if isinstance(noise, Laplace)
        else GaussianRounds(rows**2 * moves / (2 * noise.scale**2), noise.scale, rows * moves)
    )


def moved(unit: Unit) -> int:
    """Return in how many bins one row of a unit counts, before and after together."""
    return 1 if unit.adjacency is Adjacency.ADD_REMOVE else 2
