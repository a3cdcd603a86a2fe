"""Selection: which values, or combinations of values, are the most common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from incrowd.accounting.accountant import charge_of
from incrowd.core.loss import Pure
from incrowd.core.plan import Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.bins import ListedBins, counted
from incrowd.core.steps.rows import keep_rows
from incrowd.core.steps.samples import EveryRow
from incrowd.core.steps.step import fold
from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.selection import MonotoneNoisyMax, NoisyMax
from incrowd.methods.histograms.most_common.steps import PermuteAndFlip, PublishRanking, ReadOff, Winners
from incrowd.methods.histograms.noise import Noise, NoiseRequest, settle_noise
from incrowd.methods.histograms.partition import COUNT, LISTED, BinPartition
from incrowd.methods.outcomes.histogram import RANK, Selection

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from incrowd.core.coins import Coins
    from incrowd.core.table import Table


@dataclass(frozen=True, kw_only=True)
class MostCommon:
    """The most common bins of a public partition, in order, with noisy counts or without.

    Guarantee: ε-differential privacy, whatever `top` is.  All counts get integer Laplace noise once, and the winners
    and their counts are read off.  One winner without its count comes from permute-and-flip instead, which errs less.

    Assumes: levels and parameters were chosen without looking at the rows; one row is one person, or the person column
    says whose it is; all releases about these people go through one ledger.

    Source: Ghosh, Roughgarden & Sundararajan 2009; McKenna & Sheldon 2020.

    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.schema import Column
    >>> schema = Schema((Column("sex", hierarchy=Flat(Categories(("F", "M")))),))
    >>> MostCommon(epsilon=Fraction(1, 2)).plan(schema).guarantee.loss
    Laplace(scale=Fraction(2, 1), sensitivity=1)
    >>> MostCommon(epsilon=Fraction(1, 2), counts=False).plan(schema).guarantee.loss
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

    def partition(self, schema: Schema) -> BinPartition:
        """Return the candidates, which must be known and not too many."""
        partition = BinPartition.of(schema, self.columns, self.levels)
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
        return settle_noise(NoiseRequest("laplace", self.epsilon, None, None, None), unit, unknown=False)

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone."""
        partition, unit = self.partition(schema), schema.unit
        chosen: Winners
        settings: dict[str, Any]
        if self.flips:
            chosen = PermuteAndFlip(self.top, self.pick(unit).scale)
            spent = charge_of(Pure(self.epsilon), 0, unit.adjacency).epsilon
            settings = {"scale": chosen.scale, "epsilon": self.epsilon}
        else:
            found = self.noise(unit)
            chosen, spent = ReadOff(self.top, found.scale, found.within), found.epsilon
            settings = {"scale": found.scale, "within": found.within, "epsilon": spent}
        steps = (
            *keep_rows(unit),
            EveryRow(),
            *counted(partition.cells, partition.columns(), ListedBins.CHOSEN),
            chosen,
            PublishRanking(self.counts),
        )
        guarantee, numbers = fold(steps, unit), {"epsilon": spent}
        return Plan(self.name, steps, guarantee, numbers, self.release, settings=settings, cells=partition.cells)

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
