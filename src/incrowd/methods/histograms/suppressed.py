"""Suppressed histograms: exact counts for crowds, and zero for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from markupsafe import Markup

from incrowd.core.claims.privacy import (
    ApproximatePrivacy,
    Blending,
    RobustTheorem,
    RobustZeroKnowledge,
    ZeroKnowledge,
)
from incrowd.core.schema import Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import Count, ListedBins, PublishCounts, RecodeToBins
from incrowd.core.steps.counts import SuppressCounts
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.samples import DrawnBefore, DrawnHere, EveryRow, SecretSample
from incrowd.errors import InvalidParameter
from incrowd.methods.histograms.shared.check import (
    Flags,
    HistogramCheck,
    Numbers,
)
from incrowd.methods.histograms.shared.check import rounded as rounded_count
from incrowd.methods.histograms.shared.crowd import CrowdHistogram
from incrowd.methods.histograms.shared.partition import BinPartition, rounded
from incrowd.methods.histograms.shared.picture import EXACT, HistogramPicture, bin_bars
from incrowd.methods.shared.outcome import COUNT, Histogram
from incrowd.methods.shared.robust import Robust, draw_sample, published_numbers, solve_robust, survey, with_chances
from incrowd.verifier.check import maybe, one

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.steps.step import Step
    from incrowd.core.table import Table
    from incrowd.core.unit import Unit
    from incrowd.methods.shared.sampling import Parameters


@dataclass(frozen=True, kw_only=True)
class SuppressedHistogram(CrowdHistogram):
    """Counts of bins, exact from k on and zero below: what statistical offices publish, with its guarantee.

    Guarantee: (k, 0)-crowd-blending, and no ε.  On a secret sample, which `delta` asks for: (ε, δ)-differential
    privacy by the tight curve of sampled suppression, and zero-knowledge with respect to the sample.

    Assumes: levels and parameters were chosen without looking at the rows; one row is one person, or the person column
    says whose it is; no second table is made from these rows, or from the same sample; the coins stay secret.

    Source: Gehrke, Hay, Lui & Pass 2012, Example 1; Li, Qardaji & Su 2010, Theorem 1.

    >>> from incrowd.core.unit import Unit
    >>> asked = SuppressedHistogram(epsilon=Fraction(1), delta=Fraction(1, 10**6), rate=Fraction(1, 10))
    >>> asked.parameters(Unit()).k
    8
    """

    name: ClassVar[str] = "suppressed-histogram"

    robust: Robust | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.robust is not None and (self.rate is not None or self.target is None):
            raise InvalidParameter("robust describes a biased sample: leave rate out, and give delta.")

    @property
    def noise(self) -> None:
        """Small counts have no noise: they are zero."""

    def partition(self, schema: Schema) -> BinPartition:
        """Return the bins; at open levels and beyond ten million of them those from k on are listed."""
        return BinPartition.of(schema, self.columns, self.levels)

    def parameters(self, unit: Unit) -> Parameters:
        if self.robust is not None and self.target is not None:
            return solve_robust(self.k, self.robust, self.target, unit)
        return super().parameters(unit)

    def sampled_at(self, unit: Unit) -> Fraction | None:
        """Return the rate of an even secret sample, or None where there is none."""
        return None if self.robust is not None else super().sampled_at(unit)

    def listed(self, partition: BinPartition) -> ListedBins:
        """Return which bins are listed: all, or those from k on."""
        return ListedBins.ALL if partition.listed else ListedBins.FROM_K

    def protected(self, k: int) -> tuple[Step, ...]:
        """Return the steps that suppress counts below k and publish the others."""
        return SuppressCounts(k), PublishCounts(self.round, exact=False)

    def sample(self, schema: Schema) -> Step:
        if self.robust is None:
            return super().sample(schema)
        if self.robust.probability is not None:
            with_chances(self.partition(schema).cells, schema, self.robust.probability)
        return survey(self.robust)

    def numbers(self, parameters: Parameters) -> Mapping[str, Any]:
        numbers = super().numbers(parameters)
        return numbers if self.robust is None else {**numbers, **published_numbers(parameters.k, self.robust.bias)}

    def release(self, table: Table, coins: Coins) -> Histogram:
        """Count the bins in one pass and keep the counts from k on."""
        partition, k = self.partition(table.schema), self.crowd(table.schema.unit)
        if self.robust is not None and self.robust.probability is not None:
            split = BinPartition(with_chances(partition.cells, table.schema, self.robust.probability))
            counts = draw_sample(split.count(table, coins, None), self.robust.low, self.robust.high, coins).at_least(k)
        else:
            counts = partition.count(table, coins, self.sampled_at(table.schema.unit), at_least=k)
        if partition.listed:
            bins = partition.occupied(counts)
            return Histogram(partition.labeled(np.arange(bins.size), rounded(bins.dense(), self.round)))
        table_of_bins = counts.to_table(COUNT)
        return Histogram(
            table_of_bins.set_column(len(table_of_bins.schema) - 1, COUNT, [rounded(counts.counts, self.round)])
        )


@dataclass(frozen=True, kw_only=True)
class SuppressedCheck(HistogramCheck):
    """Counts from k on, and zero or nothing below."""

    def impossible(self, statement: Statement, counts: Numbers, exact: Flags | None) -> bool:
        basis = statement.basis
        small = counts < rounded_count(basis.need(SuppressCounts).k, basis.need(PublishCounts).round)
        empty = counts == 0 if basis.need(Count).listed is ListedBins.ALL else np.zeros(len(counts), bool)
        return bool(np.any(small & ~empty))


class SuppressedPicture(HistogramPicture):
    """Counts from k on are exact, smaller ones are not there."""

    def exactness(self, statement: Statement) -> str:
        return (
            f"Counts of {statement.basis.need(SuppressCounts).k} or more are exact, smaller ones are 0 or suppressed."
        )

    def draw(self, statement: Statement, output: Histogram) -> Markup | None:
        marks = np.where(output.counts > 0, EXACT, "suppressed or empty").tolist()
        return bin_bars(output, marks, "Every count above zero is exact.")


METHOD = SuppressedHistogram
CHECK = SuppressedCheck(
    order=(
        maybe(KeepRows),
        one(EveryRow, SecretSample, DrawnBefore, DrawnHere),
        one(RecodeToBins),
        one(Count),
        one(SuppressCounts),
        one(PublishCounts),
    ),
    claims=(ApproximatePrivacy, ZeroKnowledge, RobustZeroKnowledge, RobustTheorem, Blending),
    listed=(ListedBins.ALL, ListedBins.FROM_K),
    exact_counts_marked="exact counts are marked, and every count that is not zero is exact",
)
PICTURE = SuppressedPicture()
