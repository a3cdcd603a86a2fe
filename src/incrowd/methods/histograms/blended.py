"""Blended histograms: exact counts for crowds, and noise for the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from incrowd.core.claims.privacy import (
    ApproximatePrivacy,
    Blending,
    ZeroKnowledge,
)
from incrowd.core.schema import Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import Count, ListedBins, PublishCounts, RecodeToBins
from incrowd.core.steps.counts import NoiseWhenSmall
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.samples import EveryRow, SecretSample
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.partition import ClampedSmallCounts, NoisySmallCounts, blend
from incrowd.methods.histograms.shared.check import (
    Flags,
    HistogramCheck,
    Numbers,
)
from incrowd.methods.histograms.shared.check import rounded as rounded_count
from incrowd.methods.histograms.shared.crowd import CrowdHistogram
from incrowd.methods.histograms.shared.partition import LISTED, BinPartition, rounded
from incrowd.methods.histograms.shared.picture import EXACT, NOISY, HistogramPicture, bin_bars
from incrowd.methods.shared.outcome import EXACT as EXACT_COLUMN
from incrowd.methods.shared.outcome import Histogram
from incrowd.verifier.check import Problem, maybe, one

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.steps.step import Step
    from incrowd.core.table import Table


@dataclass(frozen=True, kw_only=True)
class BlendedHistogram(CrowdHistogram):
    """Counts of bins, exact from k on and noisy below: crowds lose nothing, small groups are still seen.

    Guarantee: (k, `noise_epsilon`)-crowd-blending, and no ε of differential privacy.  On a secret sample, which `delta`
    asks for: (ε, δ)-differential privacy, where from ε = ln(1 + rate·(e^noise_epsilon − 1)) on the noise costs nothing
    and δ is that of sampled suppression; and zero-knowledge with respect to the sample.

    Assumes: levels and parameters were chosen without looking at the rows; one row is one person, or the person column
    says whose it is; no second table is made from these rows, or from the same sample; the coins stay secret.

    Source: Gehrke, Hay, Lui & Pass 2012, Example 2 and Theorem 1.

    >>> from incrowd.core.unit import Unit
    >>> asked = BlendedHistogram(
    ...     noise_epsilon=Fraction(1), epsilon=Fraction(1), delta=Fraction(1, 10**6), rate=Fraction(1, 10)
    ... )
    >>> asked.parameters(Unit()).k
    8
    """

    name: ClassVar[str] = "blended-histogram"

    noise_epsilon: Fraction
    clamp: bool = True
    flag: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise_epsilon <= 0:
            raise InvalidParameter(
                "noise_epsilon, of the noise on small counts, lies above 0; method suppressed-histogram has none."
            )

    @property
    def noise(self) -> Fraction:
        """The ε of the noise on counts below k."""
        return self.noise_epsilon

    def partition(self, schema: Schema) -> BinPartition:
        """Return the bins; each must be known, since the empty ones get noise too."""
        partition = BinPartition.of(schema, self.columns, self.levels).drawn_over()
        size = partition.closed_size("use method suppressed-histogram, which needs no noise")
        if partition.listed:
            return partition
        if not self.clamp:
            raise InvalidParameter(
                f"{size:,} bins are too many to list them all, and without clamping every one has noise that shows. "
                "Leave clamp at true, or choose higher levels or fewer columns."
            )
        filled = float(size) / (1.0 + math.exp(min(float(self.noise_epsilon), 700.0)))
        if filled > LISTED:
            raise InvalidParameter(
                f"of {size:,} bins about {filled:.2g} would come out above zero by their noise alone. Choose higher "
                "levels, fewer columns or a larger noise_epsilon, or use method suppressed-histogram."
            )
        return partition

    def listed(self, partition: BinPartition) -> ListedBins:
        """Return which bins are listed: all, or those above zero."""
        return ListedBins.ALL if partition.listed else ListedBins.ABOVE_ZERO

    def protected(self, k: int) -> tuple[Step, ...]:
        """Return the steps that give counts below k noise and publish all."""
        return NoiseWhenSmall(k, self.noise_epsilon, self.clamp), PublishCounts(self.round, exact=self.flag)

    def release(self, table: Table, coins: Coins) -> Histogram:
        """Count the bins in one pass, give every one below k noise, the empty ones too, and mark the exact ones."""
        partition, k = self.partition(table.schema), self.crowd(table.schema.unit)
        bins = partition.occupied(partition.count(table, coins, self.sampled_at(table.schema.unit)))
        if partition.listed:
            counts = bins.dense()
            kind = ClampedSmallCounts if self.clamp else NoisySmallCounts
            noisy, exact = kind(k, self.noise_epsilon).release(counts, coins), counts >= k
            table_of_bins = partition.labeled(np.arange(bins.size), rounded(noisy, self.round))
        else:
            above = blend(ClampedSmallCounts(k, self.noise_epsilon), bins, coins)
            exact = above.counts >= k
            table_of_bins = partition.labeled(above.places, rounded(above.counts, self.round))
        return Histogram(table_of_bins.append_column(EXACT_COLUMN, pa.array(exact)) if self.flag else table_of_bins)


_WORDS = {
    (EXACT, NOISY): "Full bars are exact counts, pale ones carry noise.",
    (NOISY,): "Every count carries noise.",
    (EXACT,): "Every count above zero is exact.",
}


@dataclass(frozen=True, kw_only=True)
class BlendedCheck(HistogramCheck):
    """Exact counts from k on, noisy ones below."""

    def contradiction(self, statement: Statement) -> Problem | None:
        if statement.basis.need(Count).size is None:
            return Problem("empty bins that are not known cannot have got noise")
        return super().contradiction(statement)

    def impossible(self, statement: Statement, counts: Numbers, exact: Flags | None) -> bool:
        small, base = statement.basis.need(NoiseWhenSmall), statement.basis.need(PublishCounts).round
        if small.clamp and np.any(counts < 0):
            return True
        if exact is None:
            return False
        noisy, most = counts[~exact], rounded_count(small.k - 1, base)
        return bool(np.any(counts[exact] < rounded_count(small.k, base)) or (small.clamp and np.any(noisy > most)))


class BlendedPicture(HistogramPicture):
    """Large counts are exact, small ones noisy, as far as the release shows which."""

    def exactness(self, statement: Statement) -> str:
        return f"Counts of {statement.basis.need(NoiseWhenSmall).k} or more are exact, smaller ones carry noise."

    def draw(self, statement: Statement, output: Histogram) -> Markup | None:
        small, published = statement.basis.need(NoiseWhenSmall), statement.basis.need(PublishCounts)
        exact = output.exact
        if exact is None and small.clamp and published.round == 1:
            exact = output.counts >= small.k
        if exact is None:
            words = "Large counts are exact and small ones noisy; the release does not show which is which."
            return bin_bars(output, ["not stated"] * len(output), words)
        marks = np.where(exact, EXACT, NOISY).tolist()
        return bin_bars(output, marks, _WORDS[tuple(sorted(set(marks)))]) if marks else None


METHOD = BlendedHistogram
CHECK = BlendedCheck(
    order=(
        maybe(KeepRows),
        one(EveryRow, SecretSample),
        one(RecodeToBins),
        one(Count),
        one(NoiseWhenSmall),
        one(PublishCounts),
    ),
    claims=(ApproximatePrivacy, ZeroKnowledge, Blending),
    listed=(ListedBins.ALL, ListedBins.ABOVE_ZERO),
)
PICTURE = BlendedPicture()
