"""Blended histograms: exact counts for crowds, and noise for the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from incrowd.core.schema import Schema
from incrowd.core.steps.bins import ListedBins, PublishCounts
from incrowd.core.steps.counts import NoiseWhenSmall
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.partition import ClampedSmallCounts, NoisySmallCounts, blend
from incrowd.methods.histograms.crowd import CrowdHistogram
from incrowd.methods.histograms.partition import LISTED, BinPartition, rounded
from incrowd.methods.outcomes.histogram import EXACT, Histogram

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
            found = partition.labeled(np.arange(bins.size), rounded(noisy, self.round))
        else:
            above = blend(ClampedSmallCounts(k, self.noise_epsilon), bins, coins)
            exact = above.counts >= k
            found = partition.labeled(above.places, rounded(above.counts, self.round))
        return Histogram(found.append_column(EXACT, pa.array(exact)) if self.flag else found)
