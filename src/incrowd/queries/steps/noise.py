"""Noise: what is added up in each group, the noise that it gets, and what is picked; from these a loss follows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Approximate, Laplace, Loss, Pure, ZeroConcentrated
from incrowd.core.steps.step import Step, StepGuarantee
from incrowd.core.terms import Theorem
from incrowd.core.unit import Adjacency
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.selection import Exponential, MonotoneNoisyMax, NoisyMax
from incrowd.mechanisms.vector_noise import AddCube, AddGaussianVector
from incrowd.queries.measuring.statistics import Of
from incrowd.queries.query import AggregateKind

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

_CONTRADICTION = "the noise of these steps, and what one unit moves, contradict each other."


@dataclass(frozen=True)
class NumberInGroup:
    """One whole number per group that one row moves by `width` at most; `center` and `step` are those of its grid."""

    of: Of
    width: int
    value: str | None = None
    center: Fraction | None = None
    step: Fraction | None = None


class NoisyStep(Step):
    """A step that costs nothing by itself: `BoundContribution` makes one loss of all of them."""

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        return super().around(self.added_to(parts_of(inner)), unit)

    def added_to(self, parts: NoisyParts) -> NoisyParts:
        """Return the noisy parts of a query with this step."""
        raise NotImplementedError


@dataclass(frozen=True)
class AddUp(NoisyStep):
    """Whole numbers are added up in each group; a unit moves them by so many rows' widths at most."""

    kind: ClassVar[str] = "add up"
    title: ClassVar[str] = "Add up"

    statistics: tuple[NumberInGroup, ...]
    rows: int

    @property
    def sentence(self) -> str:
        number = counted(len(self.statistics), "whole number")
        sentence = f"In each group {number} are added up exactly; each is held within declared bounds, row by row."
        if not any(statistic.of is Of.DISTINCT for statistic in self.statistics):
            return sentence
        return f"{sentence} Values that differ are counted, each once: a row adds one of them, or none."

    @property
    def widths(self) -> tuple[int, ...]:
        """How far one row moves each number."""
        return tuple(statistic.width for statistic in self.statistics)

    @property
    def people(self) -> bool:
        """Whether nothing but people is counted: then each counts once in a group, however many rows are there."""
        return all(statistic.of is Of.PEOPLE for statistic in self.statistics)

    def added_to(self, parts: NoisyParts) -> NoisyParts:
        return replace(parts, sums=self)


class NoiseOnSums(NoisyStep):
    """Noise on what was added up; subclasses know its law."""

    kind: ClassVar[str] = "noise"
    title: ClassVar[str] = "Noise"
    because: ClassVar[Theorem]

    def loss(self, sums: AddUp) -> Loss:
        """Return what the noise costs on these sums, from its law alone; or refuse noise that is not made for them."""
        raise NotImplementedError

    def added_to(self, parts: NoisyParts) -> NoisyParts:
        return replace(parts, noise=self)


@dataclass(frozen=True)
class CubeNoise(NoiseOnSums):
    """One noise for all numbers of a group, whose chance falls with the largest of its coordinates."""

    because: ClassVar[Theorem] = AddCube.because

    epsilon: Fraction
    widths: tuple[int, ...]
    fine: int
    scale: Fraction

    noise: ClassVar[str] = "integer cube"

    @property
    def sentence(self) -> str:
        kind = "one noise for all its numbers together, made for the most that a row can move them"
        return f"Every group, a declared one too if it is empty, gets {kind}."

    def loss(self, sums: AddUp) -> Loss:
        """Return ε: a row moves the noise by `fine` steps, and each step costs 1/scale."""
        if len(self.widths) < 2 or sums.widths != self.widths or min(self.widths) < 1 or self.scale <= 0:
            raise InvalidParameter(_CONTRADICTION)
        return Pure(_same(Fraction(sums.rows * self.fine) / self.scale, self.epsilon))


@dataclass(frozen=True)
class LaplaceNoise(CubeNoise):
    """Integer Laplace noise on the one number of each group."""

    kind: ClassVar[str] = "Laplace noise"

    noise: ClassVar[str] = "integer Laplace"

    @property
    def sentence(self) -> str:
        return "Every group, a declared one too if it is empty, gets integer Laplace noise."

    def loss(self, sums: AddUp) -> Loss:
        """Return ε; the whole curve where a unit moves the number by 1."""
        if len(sums.widths) != 1 or sums.widths[0] < 1 or (self.widths, self.fine) != ((1,), 1) or self.scale <= 0:
            raise InvalidParameter(_CONTRADICTION)
        moved = sums.rows * sums.widths[0]
        epsilon = _same(moved / self.scale, self.epsilon)
        return Laplace(self.scale) if moved == 1 else Pure(epsilon)


@dataclass(frozen=True)
class GaussianNoise(NoiseOnSums):
    """Integer Gaussian noise on each number of a group, paid in ρ."""

    because: ClassVar[Theorem] = AddGaussianVector.because

    scales: tuple[Fraction, ...]

    noise: ClassVar[str] = "integer Gaussian"

    @property
    def sentence(self) -> str:
        return "Every group, a declared one too if it is empty, gets integer Gaussian noise on each of its numbers."

    def rho(self, sums: AddUp) -> Fraction:
        """Return ρ: the squares of what a unit moves, in units of the scales."""
        fits = len(self.scales) == len(sums.widths) > 0
        if not fits or min(sums.widths) <= 0 or min(self.scales) <= 0:
            raise InvalidParameter(_CONTRADICTION)
        moved = (sums.rows * width / scale for width, scale in zip(sums.widths, self.scales, strict=True))
        return sum((shift**2 for shift in moved), Fraction(0)) / 2

    def loss(self, sums: AddUp) -> Loss:
        """Return ρ."""
        return ZeroConcentrated(self.rho(sums))


@dataclass(frozen=True)
class SharedGaussianNoise(GaussianNoise):
    """Integer Gaussian noise that pays with a share of ε and δ, beside picks or a threshold that have theirs.

    Whether its ρ is worth no more than these is for an accountant to say.
    """

    epsilon: Fraction
    delta: Fraction

    def loss(self, sums: AddUp) -> Loss:
        """Return the share of ε and δ."""
        self.rho(sums)
        return Approximate(self.epsilon, self.delta)


@dataclass(frozen=True)
class GroupThreshold(NoisyStep):
    """Groups that nobody listed are shown from a noisy count on; somebody alone in one is shown with chance δ."""

    kind: ClassVar[str] = "threshold"
    title: ClassVar[str] = "List what is clearly there"
    because: ClassVar[Theorem] = Theorem(
        "threshold-on-groups", "Korolova, Kenthapadi, Mishra & Ntoulas 2009 (unknown groups from a threshold on)"
    )

    least: int
    on: int
    delta: Fraction

    @property
    def sentence(self) -> str:
        listed = "the threshold is public, and intervals hold given that a group is listed"
        return f"Groups whose noisy count is below {self.least} are not listed; {listed}."

    def loss(self, sums: AddUp | None) -> Loss:
        """Return δ; or refuse a threshold on something that does not count people or rows."""
        counting = sums is not None and 0 <= self.on < len(sums.statistics)
        if sums is None or not counting or sums.statistics[self.on].of not in (Of.PEOPLE, Of.ROWS):
            raise InvalidParameter("a threshold is one on the noisy number of people or rows.")
        return Approximate(Fraction(0), self.delta)

    def added_to(self, parts: NoisyParts) -> NoisyParts:
        return replace(parts, threshold=self)


class PickScore(StrEnum):
    """By what candidates for a quantile are chosen; certificates of version 1 do not say it and mean another one.

    EXCESS is how far n · a / b lies outside [#{x < v}, #{x ≤ v}] for the quantile a / b and n rows, in rows, times b.
    Version 1 took |(b − a) · #{x < v} − a · #{x > v}|, which a row moves as far.
    """

    EXCESS = "rows too many below or above"


@dataclass(frozen=True)
class PrivatePick(NoisyStep):
    """A private selection picks a candidate in each group: a quantile, or the most common value."""

    kind: ClassVar[str] = "pick"
    title: ClassVar[str] = "Choose"

    aggregate: str
    of: AggregateKind = field(metadata={"name": "kind"})
    candidates: int
    epsilon: Fraction
    sensitivity: int
    scale: Fraction
    at: Fraction | None = None
    score: PickScore | None = None

    @property
    def sentence(self) -> str:
        by = "" if self.score is None else f", by how many {self.score} it has"
        chosen = f"A private selection chooses the {self.of} among {self.candidates:,} declared values{by}"
        return f"{chosen}; there is no interval of it."

    def because(self, unit: Unit) -> Theorem:
        """Return whose theorem it rests on."""
        if self.of is not AggregateKind.MODE:
            return Exponential.because
        return MonotoneNoisyMax.because if unit.adjacency is Adjacency.ADD_REMOVE else NoisyMax.because

    def loss(self, rows: int, unit: Unit) -> Loss:
        """Return ε of a unit with so many rows: what it moves the scores, in units of the scale."""
        return Pure(self.price(rows, unit))

    def price(self, rows: int, unit: Unit) -> Fraction:
        """Return ε: e^(gap / scale) less likely, where a unit moves every score by its sensitivity at most.

        Scores may move against each other, which counts twice; counts of values rise together when someone is added.
        """
        at = self.at if self.at is not None else Fraction(1, 2)
        odds = max(at.denominator - at.numerator, at.numerator) if self.of is AggregateKind.QUANTILE else 1
        if (
            self.of not in (AggregateKind.QUANTILE, AggregateKind.MODE)
            or (self.of is AggregateKind.MODE and self.score is not None)
            or not 0 < odds * rows == self.sensitivity
            or self.scale <= 0
        ):
            raise InvalidParameter("a unit does not move the scores of a pick as far as these steps say.")
        together = self.of is AggregateKind.MODE and unit.adjacency is Adjacency.ADD_REMOVE
        return _same((1 if together else 2) * self.sensitivity / self.scale, self.epsilon)

    def added_to(self, parts: NoisyParts) -> NoisyParts:
        return replace(parts, picks=(self, *parts.picks))


@dataclass(frozen=True)
class ConcentratedPick(PrivatePick):
    """A pick that is paid in ρ: ε is worth ε²/2 (Bun & Steinke 2016, Proposition 1.4)."""

    kind: ClassVar[str] = "concentrated pick"

    @property
    def rho(self) -> str:
        """What it takes of ρ."""
        return str(self.epsilon**2 / 2)

    def loss(self, rows: int, unit: Unit) -> Loss:
        """Return ρ."""
        return ZeroConcentrated(self.price(rows, unit) ** 2 / 2)


@dataclass(frozen=True)
class NoisyParts(StepGuarantee):
    """What the noisy steps of a query say; where it is known what one unit contributes, a loss is made of them."""

    sums: AddUp | None = None
    noise: NoiseOnSums | None = None
    threshold: GroupThreshold | None = None
    picks: tuple[PrivatePick, ...] = ()
    open_groups: bool = False

    def losses(self, rows: int, unit: Unit) -> tuple[Loss, ...]:
        """Return what each part costs a unit with so many rows."""
        if (self.noise is None) != (self.sums is None) or self.open_groups != (self.threshold is not None):
            raise InvalidParameter("sums need noise, and groups that nobody listed need a threshold.")
        noise = () if self.noise is None or self.sums is None else (self.noise.loss(self.sums),)
        hidden = () if self.threshold is None else (self.threshold.loss(self.sums),)
        return (*noise, *hidden, *(pick.loss(rows, unit) for pick in self.picks))

    def reasons(self, unit: Unit) -> tuple[Theorem, ...]:
        """Return whose theorems the losses rest on."""
        noise = () if self.noise is None else (self.noise.because,)
        hidden = () if self.threshold is None else (self.threshold.because,)
        return (*noise, *dict.fromkeys(pick.because(unit) for pick in self.picks), *hidden)


def parts_of(inner: StepGuarantee) -> NoisyParts:
    """Return the parts that were told so far; or refuse steps behind which something else is released."""
    if isinstance(inner, NoisyParts):
        return inner
    if inner.loss is not None:
        raise InvalidParameter("the steps of a query do not stand in front of another release.")
    return NoisyParts()


def _same(computed: Fraction, stated: Fraction) -> Fraction:
    """Return ε as the law of the noise gives it, or refuse steps that state another."""
    if computed != stated:
        raise InvalidParameter("these steps state another epsilon than their noise has.")
    return computed
