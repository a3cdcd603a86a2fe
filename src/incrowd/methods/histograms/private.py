"""The differentially private histogram: noise on every count, on that of empty bins too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from markupsafe import Markup

from incrowd.core.claims.privacy import (
    ApproximatePrivacy,
    PurePrivacy,
)
from incrowd.core.counts import Counts
from incrowd.core.loss import Approximate
from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import Count, ListedBins, PublishCounts, RecodeToBins, counted
from incrowd.core.steps.counts import DECLARED, EVERY_BIN, Law, noise_claim
from incrowd.core.steps.rows import KeepRows, keep_rows
from incrowd.core.steps.samples import EveryRow, SecretSample, moved
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions, fold
from incrowd.core.terms import Condition, Theorem
from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.add_noise import AddLaplace
from incrowd.mechanisms.partition import noisy_from
from incrowd.methods.histograms.shared.check import (
    TOLERANCE,
    WIDEST,
    Flags,
    HistogramCheck,
    Numbers,
    bins_problem,
    noise_delta,
    strays,
    tail,
)
from incrowd.methods.histograms.shared.check import rounded as rounded_count
from incrowd.methods.histograms.shared.noise import Noise, NoiseRequest, settle_noise
from incrowd.methods.histograms.shared.partition import BinPartition, adding_up, rounded
from incrowd.methods.histograms.shared.picture import NOISY, HistogramPicture, bin_bars
from incrowd.methods.shared.outcome import COUNT, Histogram
from incrowd.noise.tails import laplace_reach
from incrowd.verifier.check import Problem, maybe, one

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.table import Table


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
class AddBinNoise(Step):
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
        clamped = (
            " Then negative counts become 0, and as much is taken from the others: the sum stays." if self.clamp else ""
        )
        return (
            f"Every count, that of empty bins too, gets {self.noise} noise. Of all these counts, listed or not, 95 % "
            f"are within {self.within} of the truth.{clamped}"
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
        return f"Bins whose noisy count is below {self.least} are not listed. {NEAR_THRESHOLD}"

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee that bins of one person alone stay hidden, but for δ, at the ε of the noise."""
        return StepGuarantee(Approximate(Fraction(self.epsilon), self.delta), (_UNKNOWN,), assumptions(unit))


@dataclass(frozen=True, kw_only=True)
class PrivateHistogram(Method):
    """Counts of bins, each with integer Laplace or Gaussian noise: differential privacy for small and large alike.

    Guarantee: ε-differential privacy with Laplace noise on known bins, else (ε, δ)-differential privacy; it composes
    with everything.  With a rate, counts are those of a secret sample, and the noise is smaller for the same ε.

    Assumes: levels and parameters were chosen without looking at the rows; one row is one person, or the person column
    says whose it is; all releases about these people go through one ledger.

    Source: Ghosh, Roughgarden & Sundararajan 2009; Canonne, Kamath & Steinke 2020; for bins that are not known before
    rows are read Korolova, Kenthapadi, Mishra & Ntoulas 2009; for very many bins Cormode, Procopiuc, Srivastava & Tran
    2012.

    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.schema import Column
    >>> schema = Schema((Column("sex", hierarchy=Flat(Categories(("F", "M")))),))
    >>> PrivateHistogram(epsilon=Fraction(1, 2)).plan(schema).settings["within"]
    6
    """

    name: ClassVar[str] = "private-histogram"

    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    noise: Literal["laplace", "gaussian"] = "laplace"
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    error: int | None = None
    rate: Fraction | None = None
    clamp: bool = True
    round: int = 1

    def __post_init__(self) -> None:
        if self.round < 1:
            raise InvalidParameter("counts are rounded to multiples of a whole number of at least 1.")

    def settled(self, schema: Schema) -> Noise:
        """Return the noise, its scale solved."""
        request = NoiseRequest(self.noise, self.epsilon, self.delta, self.error, self.rate)
        return settle_noise(request, schema.unit, unknown=self.partition(schema).size is None)

    def partition(self, schema: Schema) -> BinPartition:
        """Return the bins; beyond ten million, and at open levels, those from a public threshold on are listed."""
        partition = BinPartition.of(schema, self.columns, self.levels).drawn_over()
        if partition.size is not None and not partition.listed and self.noise == "gaussian":
            raise InvalidParameter(
                f"{partition.size:,} bins are too many to list them all, and only Laplace noise can be drawn where it "
                "shows alone. Use noise: laplace, or choose higher levels or fewer columns."
            )
        return partition

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone."""
        noise, partition = self.settled(schema), self.partition(schema)
        steps = (
            *keep_rows(schema.unit),
            EveryRow() if self.rate is None else SecretSample(self.rate),
            *counted(
                partition.cells, partition.columns(), ListedBins.ALL if partition.listed else ListedBins.FROM_THRESHOLD
            ),
            AddBinNoise(noise.law, noise.scale, noise.within, self.clamp and partition.listed),
            *self._threshold(noise, partition),
            PublishCounts(self.round, exact=False),
        )
        settings = {
            "scale": noise.scale,
            "within": noise.within,
            "epsilon": noise.epsilon,
            "delta": noise.delta,
            "solved": "scale" if self.error is None else "epsilon",
        }
        guarantee = fold(steps, schema.unit, noise.delta)
        numbers = {"epsilon": noise.epsilon}
        return Plan(self.name, steps, guarantee, numbers, self.release, settings=settings, cells=partition.cells)

    def release(self, table: Table, coins: Coins) -> Histogram:
        """Count the bins in one pass and give every one noise."""
        noise, partition = self.settled(table.schema), self.partition(table.schema)
        counts = partition.count(table, coins, self.rate)
        if noise.threshold is not None:
            places, noisy = noise.threshold.release(counts.counts, coins)
            listed = Counts(counts.classes, counts.keys[places], rounded(noisy, self.round)).pruned()
            return Histogram(listed.to_table(COUNT))
        bins, least = partition.occupied(counts), self._least(noise, partition)
        if least is not None:
            above = noisy_from(AddLaplace(noise.scale), least, bins, coins)
            return Histogram(partition.labeled(above.places, rounded(above.counts, self.round)))
        noisy = noise.mechanism.release(bins.dense(), coins)
        published = adding_up(noisy, self.round) if self.clamp else rounded(noisy, self.round)
        return Histogram(partition.labeled(np.arange(bins.size), published))

    def _least(self, noise: Noise, partition: BinPartition) -> int | None:
        """Return the least noisy count that is listed: by its proof for unknown bins, else to list few in vain."""
        if noise.threshold is not None:
            return noise.threshold.threshold
        if partition.size is None or partition.listed:
            return None
        return laplace_reach(noise.scale, Fraction(1, partition.size))

    def _threshold(self, noise: Noise, partition: BinPartition) -> tuple[Step, ...]:
        if noise.threshold is not None:
            return (HideUnknown(noise.threshold.threshold, noise.threshold.delta, noise.epsilon),)
        least = self._least(noise, partition)
        return () if least is None else (ListFrom(least),)


@dataclass(frozen=True, kw_only=True)
class NoisyCheck(HistogramCheck):
    """The declared bins, or those from a threshold that hides enough."""

    def contradiction(self, statement: Statement) -> Problem | None:
        basis = statement.basis
        threshold, fewer = basis.find(HideUnknown), basis.find(ListFrom)
        if (basis.need(Count).size is None) != (threshold is not None):
            return Problem("bins that nobody listed, and only those, are hidden by a threshold with a delta")
        if basis.need(PublishCounts).exact:
            return Problem("exact counts are marked, and none is exact")
        listed = ListedBins.ALL if threshold is None and fewer is None else ListedBins.FROM_THRESHOLD
        return bins_problem(statement, (listed,)) or _noise_problem(statement)

    def impossible(self, statement: Statement, counts: Numbers, exact: Flags | None) -> bool:
        basis = statement.basis
        threshold = basis.find(HideUnknown) or basis.find(ListFrom)
        if threshold is not None:
            return bool(np.any(counts < rounded_count(threshold.least, basis.need(PublishCounts).round)))
        return basis.need(AddBinNoise).clamp and bool(np.any(counts < 0))


def _noise_problem(statement: Statement) -> Problem | None:
    """Return a problem if noise strays further than stated, or is sampled where no sample saves anything, else None."""
    basis = statement.basis
    noise, threshold = basis.need(AddBinNoise), basis.find(HideUnknown)
    if basis.find(SecretSample) and (threshold is not None or basis.unit.adjacency is Adjacency.REPLACE):
        return Problem("a secret sample needs known bins, and rows that are added or removed")
    if noise.noise is Law.GAUSSIAN and noise.scale > WIDEST:
        return Problem("the noise is too wide to write out its law", undecided=True)
    if strays(noise.noise, noise.scale, noise.within):
        return Problem("more than 5 % of counts lie further from the truth than the steps say")
    return None if threshold is None else _threshold_problem(statement, noise, threshold)


def _threshold_problem(statement: Statement, noise: AddBinNoise, threshold: HideUnknown) -> Problem | None:
    """Return a problem if a threshold could reveal a bin with one person, or if its noise costs more, else None."""
    unit, whole = statement.basis.unit, statement.basis.guarantee.delta
    passed = unit.max_rows * moved(unit) * tail(noise.noise, noise.scale, threshold.least - unit.max_rows)
    if passed > float(threshold.delta) * TOLERANCE:
        return Problem("the threshold is too low for its delta: it could reveal a bin with one person")
    if threshold.delta > whole:
        return Problem("the delta of the threshold is larger than that of the guarantee")
    spent = noise_delta(noise.noise, noise.scale, unit, Fraction(threshold.epsilon))
    if spent > float(whole - threshold.delta) * TOLERANCE:
        return Problem(f"at the epsilon of the threshold the noise has a delta of {spent:.6g}")
    return None


class NoisyPicture(HistogramPicture):
    """Every count carries noise."""

    def exactness(self, statement: Statement) -> str:
        return "Every count carries noise."

    def draw(self, statement: Statement, output: Histogram) -> Markup | None:
        return bin_bars(output, [NOISY] * len(output), "Every count carries noise.")


METHOD = PrivateHistogram
CHECK = NoisyCheck(
    order=(
        maybe(KeepRows),
        one(EveryRow, SecretSample),
        one(RecodeToBins),
        one(Count),
        one(AddBinNoise),
        maybe(ListFrom, HideUnknown),
        one(PublishCounts),
    ),
    claims=(PurePrivacy, ApproximatePrivacy),
)
PICTURE = NoisyPicture()
