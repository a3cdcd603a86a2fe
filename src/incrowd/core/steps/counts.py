"""Counts: crowds keep exact counts, counts below k become zero or noisy; or every count gets noise."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.claims.claim import GROUPS, Precondition, assumed, checked, proved
from incrowd.core.claims.privacy import ApproximatePrivacy, Blending, PurePrivacy, ZeroKnowledge
from incrowd.core.loss import Crowd, Gaussian, Laplace
from incrowd.core.loss import NoisyWhenSmall as NoisyCrowd
from incrowd.core.steps.samples import COINS, SecretSample, Survey
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.steps.suppression import (
    BLENDING,
    COIN,
    REPLACED,
    REPLACED_AS_TWO,
    SEVERAL_ROWS,
    TIGHT,
    blends,
    one_row,
    survey_claims,
)
from incrowd.core.terms import Condition, Exposure, Theorem
from incrowd.core.unit import Adjacency

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.steps.step import ClaimBasis
    from incrowd.core.unit import Unit


ROWS_ALONE = Condition("rows-recoded-alone", "rows are recoded one by one, by declared rules")
_BINS = Condition("bins-declared", "the bins are fixed by the declaration, and each row counts in one bin, once")
_NOISY = Condition("small-counts-noisy", "every count below k gets noise, also that of every empty bin")
_POSSIBLE = Condition("counts-possible", "these steps can produce the bins and counts of the written output")
_MEMBERS = Exposure(
    "sample-members-see-counts", "attackers who learn who is in the sample see the exact counts of their crowds"
)
_OVERLAP = Exposure(
    "second-table",
    "a second table from the same rows or the same sample, whatever its columns: crowds do not compose, and two "
    "overlapping tables can differ by one person",
)
_SUMS = Exposure("margins-from-rows", "margins computed from the rows: add up the published counts instead")
_SIMULATED = Theorem(
    "gehrke-2012-theorem-1-simulator",
    "Gehrke, Hay, Lui & Pass 2012, Theorem 1: a simulator releases the same from a sample of everyone else",
)


@dataclass(frozen=True)
class SmallCounts(Step):
    """Counts below k are changed; counts of at least k stay exact."""

    source: ClassVar[Theorem]
    """The example that says what such counts guarantee."""
    curve: ClassVar[Theorem]
    """The theorem for such counts on a secret sample."""
    replaced: ClassVar[Theorem]
    """How that theorem is read for rows that are replaced."""

    k: int

    @property
    def crowd(self) -> Crowd:
        """What such counts guarantee where every row is read."""
        return Crowd(self.k)

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee a crowd of k; on a secret sample, by the tight bound."""
        if inner.loss is not None:
            return inner
        return StepGuarantee(self.crowd, (self.source,), assumptions(unit), (self.curve,))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim what exact counts of crowds guarantee: on a sample, on a biased one, or on all rows."""
        if basis.guarantee.syntactic:
            return ()
        crowds = (self._blending(basis),) if blends(basis) else ()
        survey, sample = basis.find(Survey), basis.find(SecretSample)
        if survey is not None:
            return (*survey_claims(self.k, survey, basis), *crowds)
        return (*(self._sampled(sample, basis) if sample is not None else ()), *crowds)

    def _blending(self, basis: ClaimBasis) -> Blending:
        return Blending(
            k=self.k,
            epsilon=self.crowd.epsilon,
            unit=basis.unit,
            theorem=(self.source,),
            preconditions=(*one_row(basis.unit), *self._conditions(basis.unit, sampled=False)),
            not_protected=(GROUPS, _MEMBERS, _OVERLAP, _SUMS),
        )

    def _sampled(self, sample: SecretSample, basis: ClaimBasis) -> tuple[Claim, ...]:
        unit, noise = basis.unit, None if self.crowd.epsilon == 0 else str(self.crowd.epsilon)
        shared: dict[str, Any] = {"k": self.k, "noise": noise, "rate": sample.rate, "epsilon": basis.epsilon}
        shared |= {"delta": basis.guarantee.delta, "unit": unit, "not_protected": (GROUPS, _SUMS)}
        shared["preconditions"] = self._conditions(unit, sampled=True)
        several = (SEVERAL_ROWS,) if unit.max_rows > 1 else ()
        replaced = (self.replaced,) if unit.adjacency is Adjacency.REPLACE else ()
        theorem = (self.curve, *several, *replaced)
        private = ApproximatePrivacy(**shared, adjacency=unit.adjacency, max_rows=unit.max_rows, theorem=theorem)
        if unit.max_rows > 1 or unit.adjacency is not Adjacency.ADD_REMOVE:
            return (private,)
        return (private, ZeroKnowledge(**shared, theorem=(_SIMULATED,)))

    def _conditions(self, unit: Unit, *, sampled: bool) -> tuple[Precondition, ...]:
        return (
            *proved(_BINS, ROWS_ALONE, *([_NOISY] if self.crowd.epsilon else [])),
            *(COIN if sampled else ()),
            *checked(_POSSIBLE),
            *assumed(assumptions(unit) | ({COINS} if sampled else set())),
        )


@dataclass(frozen=True)
class SuppressCounts(SmallCounts):
    """Counts below k become zero."""

    kind: ClassVar[str] = "suppress counts"
    title: ClassVar[str] = "Suppress small counts"
    source: ClassVar[Theorem] = BLENDING
    curve: ClassVar[Theorem] = TIGHT
    replaced: ClassVar[Theorem] = REPLACED

    @property
    def sentence(self) -> str:
        return f"Counts below {self.k} become 0. The others stay exact."


@dataclass(frozen=True)
class NoiseWhenSmall(SmallCounts):
    """Counts below k get integer Laplace noise of scale 1/ε, also those of empty bins."""

    kind: ClassVar[str] = "noise when small"
    title: ClassVar[str] = "Noise on small counts"
    source: ClassVar[Theorem] = Theorem("gehrke-2012-example-2", "Gehrke, Hay, Lui & Pass 2012, Example 2")
    curve: ClassVar[Theorem] = Theorem(
        "gehrke-2012-theorem-1-noisy-counts",
        "Gehrke, Hay, Lui & Pass 2012, Theorem 1, by the tight bound of noisy small counts on a sample",
    )
    replaced: ClassVar[Theorem] = REPLACED_AS_TWO

    epsilon: Fraction
    clamp: bool

    def __post_init__(self) -> None:
        _ = self.crowd  # which refuses k and ε that mean nothing

    @property
    def scale(self) -> Fraction:
        """The scale of the noise."""
        return 1 / self.epsilon

    @property
    def crowd(self) -> Crowd:
        return NoisyCrowd(self.k, self.epsilon)

    @property
    def sentence(self) -> str:
        clamp = " and is clamped to 0 … k − 1" if self.clamp else ""
        return (
            f"Every count below k = {self.k}, also that of an empty bin, gets integer Laplace noise of scale "
            f"{1 / self.epsilon}{clamp}. Counts of at least k stay exact."
        )


def small_counts(k: int, noise: Fraction | None, *, clamp: bool = True) -> SmallCounts:
    """Return what becomes of counts below k: zero, or noise of a stated ε.

    >>> small_counts(5, None).crowd
    Crowd(k=5, epsilon=Fraction(0, 1))
    """
    return SuppressCounts(k) if noise is None else NoiseWhenSmall(k, noise, clamp)


EVERY_BIN = Condition("every-bin-noisy", "every bin of the partition gets independent noise, also the empty bins")
DECLARED = Condition("written-bins-declared", "the bins in the written output are those of the declaration")


_GEOMETRIC_NOISE = Theorem("geometric-noise", "Ghosh, Roughgarden & Sundararajan 2009 (two-sided geometric noise)")
_GAUSSIAN_NOISE = Theorem("gaussian-noise", "Canonne, Kamath & Steinke 2020 (integer Gaussian noise)")


class Law(StrEnum):
    """The law of the noise, as a step names it."""

    LAPLACE = "integer Laplace"
    GAUSSIAN = "integer Gaussian"

    @property
    def kind(self) -> str:
        """Its name in policies and claims.

        >>> Law.GAUSSIAN.kind
        'gaussian'
        """
        return self.removeprefix("integer ").lower()

    @property
    def source(self) -> Theorem:
        """The theorem that says what such noise costs."""
        return _GEOMETRIC_NOISE if self is Law.LAPLACE else _GAUSSIAN_NOISE

    def loss(self, scale: Fraction) -> Laplace | Gaussian:
        """Return what such noise on a count costs a row."""
        return Laplace(scale) if self is Law.LAPLACE else Gaussian(scale)


def noise_claim(
    noise: str,
    scale: Fraction,
    epsilon: Decimal | Fraction,
    basis: ClaimBasis,
    conditions: tuple[Condition, Condition] = (EVERY_BIN, DECLARED),
) -> PurePrivacy | ApproximatePrivacy:
    """Return the claim of counts with noise: differential privacy, by the theorem of the guarantee.

    `conditions` are what gets noise, which is proved, and what the output shows of that.
    """
    unit, guarantee, sample = basis.unit, basis.guarantee, basis.find(SecretSample)
    fields: dict[str, Any] = {"noise": noise, "scale": scale, "epsilon": epsilon, "unit": unit}
    fields |= {"adjacency": unit.adjacency, "max_rows": unit.max_rows, "rate": None if sample is None else sample.rate}
    fields["preconditions"] = (
        *proved(conditions[0], ROWS_ALONE),
        *checked(conditions[1]),
        *assumed(guarantee.assumes),
    )
    fields |= {"theorem": guarantee.because, "not_protected": (GROUPS,)}
    return ApproximatePrivacy(**fields, delta=guarantee.delta) if guarantee.delta else PurePrivacy(**fields)
