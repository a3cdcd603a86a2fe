"""Samples: which rows are read: every one, a secret sample, or a biased one that was drawn before or is drawn here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from incrowd.core.loss import (
    THE_ROWS,
    Crowd,
    Gaussian,
    Laplace,
    Loss,
    Pure,
    RobustlySampled,
    Sampled,
    ZeroConcentrated,
)
from incrowd.core.steps.step import Step, StepGuarantee
from incrowd.core.terms import Assumption, Theorem
from incrowd.core.unit import Adjacency, Unit
from incrowd.core.words import share

COINS = Assumption("secret-coins", "the coins of the sample are known to nobody and forgotten")
ROBUST = Theorem("gehrke-2012-theorem-2-exact", "Gehrke, Hay, Lui & Pass 2012, Theorem 2, by the exact worst case")
DRAWN_BEFORE = Assumption(
    "sample-drawn-before",
    "the rows are a random sample: each person was drawn by an own coin, with a chance from `low` to `high` that "
    "depends on that person's own data alone, but for `irregular` people with a chance up to `max_rate`; nobody knows "
    "who of the others was drawn, and people did not choose themselves",
)
AMPLIFIED = Theorem("amplification", "amplified by a secret sample")


@dataclass(frozen=True)
class EveryRow(Step):
    """Every row is read."""

    kind: ClassVar[str] = "sample"
    title: ClassVar[str] = "No sample"
    glyph: ClassVar[str | None] = "same"

    @property
    def rate(self) -> str:
        """All of them."""
        return "1"

    @property
    def design(self) -> str:
        """How rows are drawn."""
        return "none: every row is read"

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return "Every row is read: there is no secret sample."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Let noise cover the counts that all rows of a unit move; on a sample each row has a coin of its own."""
        return replace(inner, loss=of_unit(inner.loss, unit)) if isinstance(inner.loss, Laplace | Gaussian) else inner


@dataclass(frozen=True)
class SecretSample(Step):
    """A secret coin for each row decides whether it takes part."""

    kind: ClassVar[str] = "sample"
    title: ClassVar[str] = "Secret sample"
    glyph: ClassVar[str | None] = "drawn"

    rate: Fraction

    @property
    def design(self) -> str:
        """How rows are drawn."""
        return "Poisson, one secret coin per row"

    @property
    def coins(self) -> str:
        """Where the coins come from."""
        return "AES-256 in counter mode under a key from the operating system, forgotten afterwards"

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        drawn = share(self.rate)
        return f"A secret coin for each row draws {drawn} on average. Nobody knows which; the coins are forgotten."

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
    """A sample in which chances differ from person to person."""

    kind: ClassVar[str] = "sample"

    low: Fraction
    high: Fraction
    irregular: int
    max_rate: Fraction

    @property
    def drawn(self) -> str:
        """When the sample was drawn."""
        raise NotImplementedError

    def loss(self, crowd: Crowd, sample: str | None) -> RobustlySampled:
        """Return what a crowd costs on this sample."""
        return RobustlySampled(self.low, self.high, self.irregular, self.max_rate, crowd, sample)


@dataclass(frozen=True)
class DrawnBefore(Survey):
    """The rows are a sample that others drew; every row is read."""

    title: ClassVar[str] = "A sample drawn before"
    glyph: ClassVar[str | None] = "same"

    @property
    def rate(self) -> str:
        """All of them."""
        return "1"

    @property
    def drawn(self) -> str:
        """When the sample was drawn."""
        return "before"

    @property
    def design(self) -> str:
        """How rows were drawn."""
        return "drawn by others before the rows came here: Poisson, one coin per person; every row is read"

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        some = f", and up to {self.max_rate} for {self.irregular} of the people" if self.irregular else ""
        return (
            f"The rows are a sample that others drew, with chances from {self.low} to {self.high}{some}. Every row is "
            "read; what protects is that nobody knows who was drawn."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Put the survey around a crowd: nothing else may be released from these rows."""
        if not isinstance(inner.loss, Crowd):
            return inner
        return StepGuarantee(self.loss(inner.loss, THE_ROWS), (ROBUST,), inner.assumes | {DRAWN_BEFORE})


@dataclass(frozen=True)
class DrawnHere(Survey):
    """A secret coin for each row draws it with the chance that a column says."""

    title: ClassVar[str] = "Secret sample"
    glyph: ClassVar[str | None] = "drawn"

    column: str

    @property
    def rate(self) -> str:
        """The highest chance."""
        return str(self.high)

    @property
    def drawn(self) -> str:
        """When the sample is drawn."""
        return "here"

    @property
    def design(self) -> str:
        """How rows are drawn."""
        return f"Poisson, one secret coin per row with the chance in the column {self.column!r}"

    @property
    def coins(self) -> str:
        """Where the coins come from."""
        return "exact, under keys from the operating system, forgotten afterwards"

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            f"A secret coin for each row draws it with the row's own chance, from {self.low} to {self.high}. Nobody "
            "knows which were drawn; the coins are forgotten."
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
    ZeroConcentrated(rho=Fraction(9, 200))
    """
    rows, moves = unit.max_rows, moved(unit)
    if rows * moves == 1:
        return noise
    return (
        Pure(rows * moves / noise.scale)
        if isinstance(noise, Laplace)
        else ZeroConcentrated(rows**2 * moves / (2 * noise.scale**2))
    )


def moved(unit: Unit) -> int:
    """Return in how many bins one row of a unit counts, before and after together."""
    return 1 if unit.adjacency is Adjacency.ADD_REMOVE else 2
