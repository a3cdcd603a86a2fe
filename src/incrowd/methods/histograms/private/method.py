"""The differentially private histogram: noise on every count, on that of empty bins too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from incrowd.core.counts import Counts
from incrowd.core.plan import Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.bins import ListedBins, PublishCounts, counted
from incrowd.core.steps.rows import keep_rows
from incrowd.core.steps.samples import EveryRow, SecretSample
from incrowd.core.steps.step import Step, fold
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.add_noise import AddLaplace
from incrowd.mechanisms.partition import noisy_from
from incrowd.methods.histograms.noise import Noise, NoiseRequest, settle_noise
from incrowd.methods.histograms.partition import BinPartition, rounded
from incrowd.methods.histograms.private.steps import AddNoise, HideUnknown, ListFrom
from incrowd.methods.outcomes.histogram import COUNT, Histogram
from incrowd.noise.tails import laplace_reach

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.table import Table


@dataclass(frozen=True, kw_only=True)
class PrivateHistogram:
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
    clamp: bool = False
    round: int = 1

    def __post_init__(self) -> None:
        if self.round < 1:
            raise InvalidParameter("counts are rounded to multiples of a whole number of at least 1.")

    def settled(self, schema: Schema) -> Noise:
        """Return the noise, its scale solved."""
        asked = NoiseRequest(self.noise, self.epsilon, self.delta, self.error, self.rate)
        return settle_noise(asked, schema.unit, unknown=self.partition(schema).size is None)

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
        found, partition = self.settled(schema), self.partition(schema)
        steps = (
            *keep_rows(schema.unit),
            EveryRow() if self.rate is None else SecretSample(self.rate),
            *counted(
                partition.cells, partition.columns(), ListedBins.ALL if partition.listed else ListedBins.FROM_THRESHOLD
            ),
            AddNoise(found.law, found.scale, found.within, self.clamp),
            *self._threshold(found, partition),
            PublishCounts(self.round, exact=False),
        )
        settings = {
            "scale": found.scale,
            "within": found.within,
            "epsilon": found.epsilon,
            "delta": found.delta,
            "solved": "scale" if self.error is None else "epsilon",
        }
        guarantee = fold(steps, schema.unit, found.delta)
        numbers = {"epsilon": found.epsilon}
        return Plan(self.name, steps, guarantee, numbers, self.release, settings=settings, cells=partition.cells)

    def release(self, table: Table, coins: Coins) -> Histogram:
        """Count the bins in one pass and give every one noise."""
        found, partition = self.settled(table.schema), self.partition(table.schema)
        counts = partition.count(table, coins, self.rate)
        if found.threshold is not None:
            kept, noisy = found.threshold.release(counts.counts, coins)
            known = Counts(counts.classes, counts.keys[kept], rounded(noisy, self.round)).pruned()
            return Histogram(known.to_table(COUNT))
        bins, least = partition.occupied(counts), self._least(found, partition)
        if least is not None:
            above = noisy_from(AddLaplace(found.scale), least, bins, coins)
            return Histogram(partition.labeled(above.places, rounded(above.counts, self.round)))
        noisy = found.mechanism.release(bins.dense(), coins)
        noisy = np.maximum(noisy, 0) if self.clamp else noisy
        return Histogram(partition.labeled(np.arange(bins.size), rounded(noisy, self.round)))

    def _least(self, found: Noise, partition: BinPartition) -> int | None:
        """Return the least noisy count that is listed: by its proof for unknown bins, else to list few in vain."""
        if found.threshold is not None:
            return found.threshold.threshold
        if partition.size is None or partition.listed:
            return None
        return laplace_reach(found.scale, Fraction(1, partition.size))

    def _threshold(self, found: Noise, partition: BinPartition) -> tuple[Step, ...]:
        if found.threshold is not None:
            return (HideUnknown(found.threshold.threshold, found.threshold.delta, found.epsilon),)
        least = self._least(found, partition)
        return () if least is None else (ListFrom(least),)
