"""Selection: which values, or combinations of values, are the most common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Pure
from incrowd.core.schema import Schema
from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.noisy_max import MonotoneNoisyMax, NoisyMax
from incrowd.methods.crowds.count_claims import noise_claim
from incrowd.methods.crowds.safe_claims import assumptions
from incrowd.methods.histograms.noise import Asked, Noise, settled
from incrowd.methods.histograms.partition import COUNT, LISTED, Partition
from incrowd.methods.histograms.private import SOURCES
from incrowd.methods.histograms.steps import counted
from incrowd.methods.outcomes.selection import RANK, Selection

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from incrowd.core.certificate import Claim
    from incrowd.core.mechanism import Coins
    from incrowd.core.table import Table


@dataclass(frozen=True, kw_only=True)
class MostCommon:
    """The most common bins of a public partition, in order, with noisy counts or without.

    Promise: ε-differential privacy, whatever `top` is.  All counts get integer Laplace noise once, and the winners and
    their counts are read off.  One winner without its count comes from permute-and-flip instead, which errs less.

    Assumes: levels and parameters were chosen without looking at the rows; one row is one person, or the person column
    says whose it is; all releases about these people go through one ledger.

    Source: Ghosh, Roughgarden & Sundararajan 2009; McKenna & Sheldon 2020.

    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.schema import Column
    >>> schema = Schema((Column("sex", hierarchy=Flat(Categories(("F", "M")))),))
    >>> MostCommon(epsilon=Fraction(1, 2)).guarantee(schema).loss
    Laplace(scale=Fraction(2, 1), sensitivity=1)
    >>> MostCommon(epsilon=Fraction(1, 2), counts=False).guarantee(schema).loss
    Pure(epsilon=Fraction(1, 2))
    """

    name: ClassVar[str] = "most-common"

    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    epsilon: Fraction
    top: int = 1
    counts: bool = True

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidParameter("epsilon must be above 0.")
        if self.top < 1:
            raise InvalidParameter("ask for at least one bin: top must be 1 or more.")

    @property
    def flips(self) -> bool:
        """Whether one winner is picked without any count."""
        return self.top == 1 and not self.counts

    def partition(self, schema: Schema) -> Partition:
        """Return the candidates, which must be known and not too many."""
        partition = Partition.of(schema, self.columns, self.levels)
        size = partition.closed_size("use method private-histogram with a delta, and read off the largest counts")
        if RANK in partition.cells.names:
            raise InvalidParameter(f"a selection has a column {RANK!r} of its own: leave that column out.")
        if size > LISTED:
            raise InvalidParameter(
                f"{size:,} candidates are too many: choose higher levels or fewer columns, or use method "
                "private-histogram."
            )
        if self.top > size:
            raise InvalidParameter(f"{self.top} of {size} bins were asked for: ask for at most all of them.")
        return partition

    def pick(self, unit: Unit) -> NoisyMax:
        """Return what picks one winner: counts rise together where people are added, not where they are replaced."""
        kind = MonotoneNoisyMax if unit.adjacency is Adjacency.ADD_REMOVE else NoisyMax
        return kind(self.epsilon, unit.max_rows)

    def noise(self, unit: Unit) -> Noise:
        """Return the noise on all counts."""
        return settled(Asked("laplace", self.epsilon, None, None, None), unit, unknown=False)

    def smallest_class(self, schema: Schema) -> None:
        """No rows are released."""

    def settings(self, schema: Schema) -> Mapping[str, Any]:
        """Return the scale of the noise and, where counts are told, the error that 95 % of them stay within."""
        if self.flips:
            return {"scale": self.pick(schema.unit).scale, "epsilon": self.epsilon}
        found = self.noise(schema.unit)
        return {"scale": found.scale, "within": found.within, "epsilon": found.epsilon}

    def guarantee(self, schema: Schema) -> Guarantee:
        """Promise from the schema alone."""
        self.partition(schema)
        unit, assumed = schema.unit, assumptions(schema.unit, sampled=False)
        if self.flips:
            return Guarantee(Pure(self.epsilon), unit, self.pick(unit).because, assumed)
        return Guarantee(self.noise(unit).loss, unit, f"{SOURCES['laplace']}; winners are read off", assumed)

    def claims(self, schema: Schema) -> tuple[Claim, ...]:
        """Return the one claim."""
        promise, how = self.guarantee(schema), "permute-and-flip" if self.flips else "laplace"
        spent = str(self.epsilon) if self.flips else str(self.noise(schema.unit).epsilon)
        numbers = {"noise": how, "scale": str(self.settings(schema)["scale"]), "epsilon": spent}
        return (noise_claim("pure differential privacy", numbers, promise.because, schema.unit, promise.assumes),)

    def chain(self, schema: Schema) -> tuple[Mapping[str, Any], ...]:
        """Return the steps: whose rows, which candidates, which noise, how many winners."""
        told = self.settings(schema)
        how = "permute-and-flip" if self.flips else "integer Laplace"
        within = {} if self.flips else {"within": told["within"]}
        return (
            *counted(self.partition(schema), schema.unit, None, "those chosen"),
            {"step": "select", "top": self.top, "noise": how, "scale": str(told["scale"]), **within},
            {"step": "publish ranking", "counts": self.counts},
        )

    def release(self, table: Table, coins: Coins) -> Selection:
        """Count the candidates in one pass, give every count noise, and read off the largest."""
        partition, unit = self.partition(table.schema), table.schema.unit
        counts = partition.occupied(partition.count(table, coins, None)).dense()
        if self.flips:
            chosen = np.array([self.pick(unit).release(counts, coins)])
            noisy: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        else:
            released = self.noise(unit).mechanism.release(counts, coins)
            chosen = np.argsort(-released, kind="stable")[: self.top]
            noisy = released[chosen]
        found = partition.labeled(chosen, noisy)
        ranked = found.add_column(0, RANK, pa.array(np.arange(1, self.top + 1)))
        return Selection(ranked if self.counts else ranked.drop_columns([COUNT]))
