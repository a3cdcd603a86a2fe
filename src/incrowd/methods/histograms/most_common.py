"""Selection: which values, or combinations of values, are the most common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from incrowd.accounting.accountant import charge_of
from incrowd.core.claims.privacy import (
    PurePrivacy,
)
from incrowd.core.loss import Pure
from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import Count, ListedBins, RecodeToBins, counted
from incrowd.core.steps.counts import Law, noise_claim
from incrowd.core.steps.rows import KeepRows, keep_rows
from incrowd.core.steps.samples import EveryRow, moved
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions, fold
from incrowd.core.terms import Theorem
from incrowd.core.unit import Adjacency, Unit
from incrowd.core.words import counted as in_words
from incrowd.drawing.markup import Description
from incrowd.drawing.markup import table as markup_table
from incrowd.drawing.picture import Picture
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.selection import MonotoneNoisyMax, NoisyMax
from incrowd.methods.histograms.shared.check import (
    UNKNOWN_LABEL,
    HistogramCheck,
    alike,
    places_of,
    read,
    strays,
)
from incrowd.methods.histograms.shared.noise import Noise, NoiseRequest, settle_noise
from incrowd.methods.histograms.shared.partition import LISTED, BinPartition
from incrowd.methods.shared.outcome import COUNT, RANK, Selection
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.table import Table


FLIP = "permute-and-flip"


_READ_OFF = Theorem("winners-read-off", "winners are read off")


@dataclass(frozen=True)
class Winners(Step):
    """Noise decides among bins that are close, and the most common are chosen."""

    kind: ClassVar[str] = "select"
    title: ClassVar[str] = "Choose the most common"

    top: int
    scale: Fraction

    @property
    def sentence(self) -> str:
        return f"Noise decides among bins that are close. The most common {self.top} are chosen."


@dataclass(frozen=True)
class ReadOff(Winners):
    """All counts get integer Laplace noise once, and winners and their counts are read off."""

    within: int

    @property
    def noise(self) -> str:
        """The law of the noise."""
        return str(Law.LAPLACE)

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what noise on all counts costs a row."""
        return StepGuarantee(Law.LAPLACE.loss(self.scale), (Law.LAPLACE.source, _READ_OFF), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim differential privacy."""
        return (noise_claim(Law.LAPLACE.kind, self.scale, basis.epsilon, basis),)


@dataclass(frozen=True)
class PermuteAndFlip(Winners):
    """One winner is chosen by exponential noise, without its count."""

    @property
    def noise(self) -> str:
        """How the winner is chosen."""
        return FLIP

    def epsilon(self, unit: Unit) -> Fraction:
        """Return what the choice costs: a unit moves the winner's lead by so many rows, replaced by twice as many."""
        return unit.max_rows * moved(unit) / self.scale

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what the choice costs a unit: counts rise together where people are added, not where replaced."""
        law = MonotoneNoisyMax if unit.adjacency is Adjacency.ADD_REMOVE else NoisyMax
        return StepGuarantee(Pure(self.epsilon(unit)), (law.because,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim differential privacy, with an ε that follows from the scale."""
        return (noise_claim(FLIP, self.scale, self.epsilon(basis.unit), basis),)


@dataclass(frozen=True)
class PublishRanking(Step):
    """The chosen bins are published in order, with their noisy counts or without."""

    kind: ClassVar[str] = "publish ranking"
    title: ClassVar[str] = "Publish the winners"

    counts: bool

    @property
    def sentence(self) -> str:
        return f"The chosen bins in order, {'with their noisy counts' if self.counts else 'without any counts'}."


@dataclass(frozen=True, kw_only=True)
class MostCommon(Method):
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
            noise = self.noise(unit)
            chosen, spent = ReadOff(self.top, noise.scale, noise.within), noise.epsilon
            settings = {"scale": noise.scale, "within": noise.within, "epsilon": spent}
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
        winners = partition.labeled(chosen, noisy)
        ranked = winners.add_column(0, RANK, pa.array(np.arange(1, self.top + 1)))
        return Selection(ranked if self.counts else ranked.drop_columns([COUNT]))


@dataclass(frozen=True, kw_only=True)
class RankingCheck(HistogramCheck):
    """Ranks in order, each with a declared bin of its own."""

    def contradiction(self, statement: Statement) -> Problem | None:
        basis = statement.basis
        size, winners, noisy = basis.need(Count).size, basis.need(Winners), basis.find(ReadOff)
        if size is None or not 1 <= winners.top <= size:
            return Problem("as many winners cannot be chosen among these bins, or the bins are not known")
        if noisy is None and (winners.top > 1 or basis.need(PublishRanking).counts):
            return Problem("permute-and-flip chooses one winner, without its count")
        if noisy is not None and strays(Law.LAPLACE, noisy.scale, noisy.within):
            return Problem("more than 5 % of counts lie further from the truth than the steps say")
        return super().contradiction(statement)

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        if not isinstance(output, Selection):
            return Problem("it is not a selection")
        outcomes = self.outcomes(statement, output.table)
        return next((outcome.problem for outcome in outcomes if outcome.problem is not None), None)

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Selection:
        return Selection(read(files[0]))

    def outcomes(self, statement: Statement, table: pa.Table) -> Iterator[CheckOutcome]:
        counts = [COUNT] if statement.basis.need(PublishRanking).counts else []
        other = table.column_names != [RANK, *statement.released, *counts]
        problem = Problem("the columns are not those that the certificate says are released") if other else None
        yield CheckOutcome("columns in the file", problem, "they are the released ones and the ranks, and no others")
        if not other:
            ranks = _ranks_problem(statement, table)
            yield CheckOutcome("ranks in the file", ranks, "each is there once, with a bin of the declaration")


def _ranks_problem(statement: Statement, table: pa.Table) -> Problem | None:
    """Return a problem if ranks, bins or counts are not such as a selection has, else None."""
    top = statement.basis.need(Winners).top
    ranks = [str(rank) for rank in table[RANK].to_pylist()]
    if len(ranks) != top or ranks != [str(rank) for rank in range(1, top + 1)]:
        return Problem("the ranks are not those that were asked for")
    columns = []
    for bins in statement.basis.need(Count).columns:
        places = places_of(table[bins.column], bins, in_order=False)
        if places is None:
            return Problem(UNKNOWN_LABEL)
        columns.append(places)
    if alike(columns):
        return Problem("some bin is there twice")
    if COUNT in table.column_names and np.any(np.diff(table[COUNT].to_numpy()) > 0):
        return Problem("the counts are not in the order of the ranks")
    if statement.evidence.get("ranks", top) != top:
        return Problem("there are not as many ranks as the certificate's evidence says")
    return None


class RankingPicture(Picture):
    """The most common bins, in order."""

    evidence: Mapping[str, str] | None = {"ranks": "Bins chosen"}

    def description(self, statement: Statement) -> Description:
        bins = in_words(int(statement.evidence["ranks"]), "most common bin")
        return Description(f"The {bins}", "No row is published.")

    def draw(self, statement: Statement, output: Selection) -> Markup | None:
        rows = [["missing" if cell is None else cell for cell in row.values()] for row in output.table.to_pylist()]
        return markup_table(f"The {in_words(len(rows), 'most common bin')}", output.schema.names, rows)


METHOD = MostCommon
CHECK = RankingCheck(
    order=(
        maybe(KeepRows),
        one(EveryRow),
        one(RecodeToBins),
        one(Count),
        one(ReadOff, PermuteAndFlip),
        one(PublishRanking),
    ),
    claims=(PurePrivacy,),
    listed=(ListedBins.CHOSEN,),
)
PICTURE = RankingPicture()
