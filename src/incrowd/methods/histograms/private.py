"""The differentially private histogram: noise on every count, on that of empty bins too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from incrowd.core.counts import Counts
from incrowd.core.guarantee import Guarantee
from incrowd.core.schema import Schema
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.add_noise import AddLaplace
from incrowd.mechanisms.partition import noisy_from
from incrowd.methods.crowds.count_claims import noise_claim, of_unknown_bins
from incrowd.methods.crowds.safe_claims import assumptions
from incrowd.methods.histograms.noise import Asked, Noise, settled
from incrowd.methods.histograms.partition import Partition, rounded
from incrowd.methods.histograms.steps import counted, published
from incrowd.methods.outcomes.histogram import COUNT, Histogram
from incrowd.noise.tails import laplace_reach

if TYPE_CHECKING:
    from incrowd.core.certificate import Claim
    from incrowd.core.mechanism import Coins
    from incrowd.core.table import Table

SOURCES = {
    "laplace": "Ghosh, Roughgarden & Sundararajan 2009 (two-sided geometric noise)",
    "gaussian": "Canonne, Kamath & Steinke 2020 (integer Gaussian noise)",
}
_SAMPLE = "; amplified by a secret sample"
_UNKNOWN = "; Korolova, Kenthapadi, Mishra & Ntoulas 2009 (unknown bins from a threshold on)"


@dataclass(frozen=True, kw_only=True)
class PrivateHistogram:
    """Counts of bins, each with integer Laplace or Gaussian noise: differential privacy for small and large alike.

    Promise: ε-differential privacy with Laplace noise on known bins, else (ε, δ)-differential privacy; it composes with
    everything.  With a rate, counts are those of a secret sample, and the noise is smaller for the same ε.

    Assumes: levels and parameters were chosen without looking at the rows; one row is one person, or the person column
    says whose it is; all releases about these people go through one ledger.

    Source: Ghosh, Roughgarden & Sundararajan 2009; Canonne, Kamath & Steinke 2020; for bins that are not known before
    rows are read Korolova, Kenthapadi, Mishra & Ntoulas 2009; for very many bins Cormode, Procopiuc, Srivastava & Tran
    2012.

    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.schema import Column
    >>> schema = Schema((Column("sex", hierarchy=Flat(Categories(("F", "M")))),))
    >>> PrivateHistogram(epsilon=Fraction(1, 2)).settings(schema)["within"]
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
        asked = Asked(self.noise, self.epsilon, self.delta, self.error, self.rate)
        return settled(asked, schema.unit, unknown=self.partition(schema).size is None)

    def partition(self, schema: Schema) -> Partition:
        """Return the bins; beyond ten million, and at open levels, those from a public threshold on are listed."""
        partition = Partition.of(schema, self.columns, self.levels).drawn_over()
        if partition.size is not None and not partition.listed and self.noise == "gaussian":
            raise InvalidParameter(
                f"{partition.size:,} bins are too many to list them all, and only Laplace noise can be drawn where it "
                "shows alone. Use noise: laplace, or choose higher levels or fewer columns."
            )
        return partition

    def smallest_class(self, schema: Schema) -> None:
        """No rows are released."""

    def settings(self, schema: Schema) -> Mapping[str, Any]:
        """Return the scale of the noise, the error that 95 % of counts stay within, ε and δ."""
        found = self.settled(schema)
        return {
            "scale": found.scale,
            "within": found.within,
            "epsilon": found.epsilon,
            "delta": found.delta,
            "solved": "scale" if self.error is None else "epsilon",
        }

    def guarantee(self, schema: Schema) -> Guarantee:
        """Promise from the schema alone."""
        found, assumed = self.settled(schema), assumptions(schema.unit, sampled=self.rate is not None)
        return Guarantee(found.loss, schema.unit, self._theorem(schema), assumed, found.delta)

    def claims(self, schema: Schema) -> tuple[Claim, ...]:
        """Return the one claim."""
        found, promise = self.settled(schema), self.guarantee(schema)
        kind = "approximate differential privacy" if found.delta else "pure differential privacy"
        numbers = {"noise": self.noise, "scale": str(found.scale), "epsilon": str(found.epsilon)}
        numbers |= {"delta": str(found.delta)} if found.delta else {}
        numbers |= {"rate": str(self.rate)} if self.rate is not None else {}
        claim = noise_claim(kind, numbers, promise.because, schema.unit, promise.assumes)
        return (claim if found.threshold is None else of_unknown_bins(claim),)

    def chain(self, schema: Schema) -> tuple[Mapping[str, Any], ...]:
        """Return the steps: whose rows, which sample, which bins, which noise, which threshold, which order."""
        found, partition = self.settled(schema), self.partition(schema)
        noise = {
            "step": "noise",
            "noise": f"integer {self.noise.capitalize()}",
            "scale": str(found.scale),
            "within": found.within,
            "clamp": self.clamp,
        }
        listed = "all" if partition.listed else "those from the threshold on"
        least = self._least(found, partition)
        hidden = "0" if found.threshold is None else str(found.threshold.delta)
        threshold = [] if least is None else [{"step": "threshold", "least": least, "delta": hidden}]
        return (
            *counted(partition, schema.unit, self.rate, listed),
            noise,
            *threshold,
            published(self.round, flagged=False),
        )

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

    def _least(self, found: Noise, partition: Partition) -> int | None:
        """Return the least noisy count that is listed: by its proof for unknown bins, else to list few in vain."""
        if found.threshold is not None:
            return found.threshold.threshold
        if partition.size is None or partition.listed:
            return None
        return laplace_reach(found.scale, Fraction(1, partition.size))

    def _theorem(self, schema: Schema) -> str:
        unknown = self.partition(schema).size is None
        return SOURCES[self.noise] + (_SAMPLE if self.rate is not None else "") + (_UNKNOWN if unknown else "")
