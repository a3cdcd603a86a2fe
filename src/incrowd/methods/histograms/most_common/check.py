"""The file of a selection, read again: ranks in order, each with a declared bin of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import Count, ListedBins, RecodeToBins
from incrowd.core.steps.noise import Law
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.samples import EveryRow
from incrowd.core.steps.step import Step
from incrowd.methods.histograms import contents
from incrowd.methods.histograms.laws import strays
from incrowd.methods.histograms.most_common.steps import PermuteAndFlip, PublishRanking, ReadOff, Winners
from incrowd.methods.outcomes.histogram import COUNT, RANK, Selection
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one

STEPS: tuple[type[Step], ...] = (KeepRows, EveryRow, RecodeToBins, Count, ReadOff, PermuteAndFlip, PublishRanking)
CLAIMS: tuple[type[Claim], ...] = (PurePrivacy,)
ORDER = (
    maybe(KeepRows),
    one(EveryRow),
    one(RecodeToBins),
    one(Count),
    one(ReadOff, PermuteAndFlip),
    one(PublishRanking),
)


def contradiction(statement: Statement) -> Problem | None:
    """Return where steps, unit and columns contradict each other, or None."""
    basis = statement.basis
    size, chosen, noisy = basis.need(Count).size, basis.need(Winners), basis.find(ReadOff)
    if size is None or not 1 <= chosen.top <= size:
        return Problem("as many winners cannot be chosen among these bins, or the bins are not known")
    if noisy is None and (chosen.top > 1 or basis.need(PublishRanking).counts):
        return Problem("permute-and-flip chooses one winner, without its count")
    if noisy is not None and strays(Law.LAPLACE, noisy.scale, noisy.within):
        return Problem("more than 5 % of counts lie further from the truth than the steps say")
    return contents.contradiction(statement, (ListedBins.CHOSEN,))


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look at the columns and ranks of the file."""
    (file,) = files
    return _looks(statement, contents.read(file))


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold a selection in memory against the statement."""
    if not isinstance(output, Selection):
        return Problem("it is not a selection")
    return next((look.problem for look in _looks(statement, output.table) if look.problem is not None), None)


def reopen(statement: Statement, files: tuple[Path, ...]) -> Selection:  # noqa: ARG001 - bins are labeled in the file
    """Read the published selection, as anyone can."""
    return Selection(contents.read(files[0]))


def _looks(statement: Statement, table: pa.Table) -> Iterator[CheckOutcome]:
    counts = [COUNT] if statement.basis.need(PublishRanking).counts else []
    strange = table.column_names != [RANK, *statement.released, *counts]
    problem = Problem("the columns are not those that the certificate says are released") if strange else None
    yield CheckOutcome("columns in the file", problem, "they are the released ones and the ranks, and no others")
    if not strange:
        yield CheckOutcome(
            "ranks in the file", _ranks(statement, table), "each is there once, with a bin of the declaration"
        )


def _ranks(statement: Statement, table: pa.Table) -> Problem | None:
    """Return that ranks, bins or counts are not such as a selection has, or None."""
    top = statement.basis.need(Winners).top
    ranks = [str(rank) for rank in table[RANK].to_pylist()]
    if len(ranks) != top or ranks != [str(rank) for rank in range(1, top + 1)]:
        return Problem("the ranks are not those that were asked for")
    places = []
    for bins in statement.basis.need(Count).columns:
        found = contents.places_of(table[bins.column], bins, in_order=False)
        if found is None:
            return Problem(contents.STRANGE)
        places.append(found)
    if contents.alike(places):
        return Problem("some bin is there twice")
    if COUNT in table.column_names and np.any(np.diff(table[COUNT].to_numpy()) > 0):
        return Problem("the counts are not in the order of the ranks")
    if statement.evidence.get("ranks", top) != top:
        return Problem("there are not as many ranks as the certificate's evidence says")
    return None
