"""Crowd-blending histograms: exact counts for crowds, and for the rest zero, or noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from incrowd.core.guarantee import Guarantee
from incrowd.core.schema import Schema
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.noisy_when_small import ClampedWhenSmall, NoisyWhenSmall
from incrowd.mechanisms.partition import blended
from incrowd.methods.crowds import robust_claims
from incrowd.methods.crowds.count_claims import crowd_claims
from incrowd.methods.crowds.drawing import drawn, with_chances
from incrowd.methods.crowds.robust import Robust, sample_step, solve_robust
from incrowd.methods.histograms.crowd import CrowdHistogram
from incrowd.methods.histograms.partition import LISTED, Partition, rounded
from incrowd.methods.histograms.steps import counted, published
from incrowd.methods.outcomes.histogram import COUNT, EXACT, Histogram

if TYPE_CHECKING:
    from incrowd.core.certificate import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.table import Table
    from incrowd.core.unit import Unit
    from incrowd.methods.crowds.parameters import Parameters

_ALL, _ABOVE_ZERO, _FROM_K = "all", "those above zero", "those of at least k"


@dataclass(frozen=True, kw_only=True)
class SuppressedHistogram(CrowdHistogram):
    """Counts of bins, exact from k on and zero below: what statistical offices publish, with its promise.

    Promise: (k, 0)-crowd-blending, and no ε.  On a secret sample, which `target` asks for: (ε, δ)-differential privacy
    by the tight curve of sampled suppression, and zero-knowledge with respect to the sample.

    Assumes: levels and parameters were chosen without looking at the rows; one row is one person, or the person column
    says whose it is; no second table is made from these rows, or from the same sample; the coins stay secret.

    Source: Gehrke, Hay, Lui & Pass 2012, Example 1; Li, Qardaji & Su 2010, Theorem 1.

    >>> from incrowd.core.unit import Unit
    >>> from incrowd.methods.crowds.parameters import Target
    >>> asked = SuppressedHistogram(target=Target(Fraction(1, 10**6), Fraction(1)), rate=Fraction(1, 10))
    >>> asked.parameters(Unit()).k
    8
    """

    name: ClassVar[str] = "suppressed-histogram"

    robust: Robust | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.robust is not None and (self.rate is not None or self.target is None):
            raise InvalidParameter("robust describes a biased sample: leave rate out, and give target: {delta}.")

    @property
    def noise(self) -> None:
        """Small counts have no noise: they are zero."""

    def partition(self, schema: Schema) -> Partition:
        """Return the bins; at open levels and beyond ten million of them those from k on are listed."""
        return Partition.of(schema, self.columns, self.levels)

    def parameters(self, unit: Unit) -> Parameters:
        """Return k, rate, ε and δ for a unit, the missing one solved."""
        if self.robust is not None and self.target is not None:
            return solve_robust(self.k, self.robust, self.target, unit)
        return super().parameters(unit)

    def guarantee(self, schema: Schema) -> Guarantee:
        """Promise from the schema alone."""
        promise = super().guarantee(schema)
        if self.robust is None:
            return promise
        if self.robust.probability is not None:
            with_chances(self.partition(schema).cells, schema, self.robust.probability)
        assumed = robust_claims.assumptions(self.robust, schema.unit)
        loss = self.robust.loss(self.small(schema.unit).k)
        return Guarantee(loss, schema.unit, robust_claims.THEOREM, assumed, promise.delta)

    def claims(self, schema: Schema) -> tuple[Claim, ...]:
        """Return the claims in order of strength."""
        if self.robust is None:
            return super().claims(schema)
        biased = robust_claims.private_claims(self.parameters(schema.unit), self.robust, schema.unit)
        return (*biased, *crowd_claims(self.small(schema.unit), None, schema.unit))

    def sampled_at(self, unit: Unit) -> Fraction | None:
        """Return the rate of an even secret sample, or None where there is none."""
        return None if self.robust is not None else super().sampled_at(unit)

    def chain(self, schema: Schema) -> tuple[Mapping[str, Any], ...]:
        """Return the steps: whose rows, which sample, which bins, which suppression, which order."""
        partition, k = self.partition(schema), self.small(schema.unit).k
        listed = _ALL if partition.listed else _FROM_K
        steps = counted(partition, schema.unit, self.sampled_at(schema.unit), listed)
        if self.robust is not None:
            steps = [sample_step(self.robust) if step["step"] == "sample" else step for step in steps]
        return (
            *steps,
            {"step": "suppress counts", "k": k, "below": 0},
            published(self.round, flagged=False),
        )

    def release(self, table: Table, coins: Coins) -> Histogram:
        """Count the bins in one pass and keep the counts from k on."""
        partition, k = self.partition(table.schema), self.small(table.schema.unit).k
        if self.robust is not None and self.robust.probability is not None:
            split = Partition(with_chances(partition.cells, table.schema, self.robust.probability))
            counts = drawn(split.count(table, coins, None), self.robust.low, self.robust.high, coins).at_least(k)
        else:
            counts = partition.count(table, coins, self.sampled_at(table.schema.unit), at_least=k)
        if partition.listed:
            bins = partition.occupied(counts)
            return Histogram(_listed(partition, rounded(bins.dense(), self.round)))
        found = counts.to_table(COUNT)
        return Histogram(found.set_column(len(found.schema) - 1, COUNT, [rounded(counts.counts, self.round)]))


@dataclass(frozen=True, kw_only=True)
class BlendedHistogram(CrowdHistogram):
    """Counts of bins, exact from k on and noisy below: crowds lose nothing, small groups are still seen.

    Promise: (k, `epsilon`)-crowd-blending, and no ε of differential privacy.  On a secret sample, which `target` asks
    for: (ε, δ)-differential privacy, where from ε = ln(1 + rate·(e^epsilon − 1)) on the noise costs nothing and δ is
    that of sampled suppression; and zero-knowledge with respect to the sample.

    Assumes: levels and parameters were chosen without looking at the rows; one row is one person, or the person column
    says whose it is; no second table is made from these rows, or from the same sample; the coins stay secret.

    Source: Gehrke, Hay, Lui & Pass 2012, Example 2 and Theorem 1.

    >>> from incrowd.core.unit import Unit
    >>> from incrowd.methods.crowds.parameters import Target
    >>> asked = BlendedHistogram(
    ...     epsilon=Fraction(1), target=Target(Fraction(1, 10**6), Fraction(1)), rate=Fraction(1, 10)
    ... )
    >>> asked.parameters(Unit()).k
    8
    """

    name: ClassVar[str] = "blended-histogram"

    epsilon: Fraction
    clamp: bool = True
    flag: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon <= 0:
            raise InvalidParameter(
                "epsilon is that of the noise on small counts and lies above 0; method suppressed-histogram has none."
            )

    @property
    def noise(self) -> Fraction:
        """The ε of the noise on counts below k."""
        return self.epsilon

    def partition(self, schema: Schema) -> Partition:
        """Return the bins; each must be known, since the empty ones get noise too."""
        partition = Partition.of(schema, self.columns, self.levels).drawn_over()
        size = partition.closed_size("use method suppressed-histogram, which needs no noise")
        if partition.listed:
            return partition
        if not self.clamp:
            raise InvalidParameter(
                f"{size:,} bins are too many to list them all, and without clamping every one has noise that shows. "
                "Leave clamp at true, or choose higher levels or fewer columns."
            )
        filled = float(size) / (1.0 + math.exp(min(float(self.epsilon), 700.0)))
        if filled > LISTED:
            raise InvalidParameter(
                f"of {size:,} bins about {filled:.2g} would come out above zero by their noise alone. Choose higher "
                "levels, fewer columns or a larger epsilon, or use method suppressed-histogram."
            )
        return partition

    def chain(self, schema: Schema) -> tuple[Mapping[str, Any], ...]:
        """Return the steps: whose rows, which sample, which bins, which noise, which order."""
        partition, k = self.partition(schema), self.small(schema.unit).k
        listed = _ALL if partition.listed else _ABOVE_ZERO
        noise = {
            "step": "noise when small",
            "k": k,
            "epsilon": str(self.epsilon),
            "noise": "integer Laplace",
            "scale": str(1 / self.epsilon),
            "clamp": self.clamp,
        }
        return (
            *counted(partition, schema.unit, self.sampled_at(schema.unit), listed),
            noise,
            published(self.round, flagged=self.flag),
        )

    def release(self, table: Table, coins: Coins) -> Histogram:
        """Count the bins in one pass, give every one below k noise, the empty ones too, and mark the exact ones."""
        partition, k = self.partition(table.schema), self.small(table.schema.unit).k
        bins = partition.occupied(partition.count(table, coins, self.sampled_at(table.schema.unit)))
        if partition.listed:
            counts = bins.dense()
            kind = ClampedWhenSmall if self.clamp else NoisyWhenSmall
            noisy, exact = kind(k, self.epsilon).release(counts, coins), counts >= k
            found = _listed(partition, rounded(noisy, self.round))
        else:
            above = blended(ClampedWhenSmall(k, self.epsilon), bins, coins)
            exact = above.counts >= k
            found = partition.labeled(above.places, rounded(above.counts, self.round))
        return Histogram(found.append_column(EXACT, pa.array(exact)) if self.flag else found)


def _listed(partition: Partition, counts: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Table:
    return partition.labeled(np.arange(len(counts)), counts)
