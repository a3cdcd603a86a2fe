"""The file of a suppressed histogram, counted again: the declared bins, and no count between zero and k."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.crowds import Blending
from incrowd.core.claims.privacy import ApproximatePrivacy, RobustTheorem, RobustZeroKnowledge, ZeroKnowledge
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import Count, ListedBins, PublishCounts, RecodeToBins
from incrowd.core.steps.counts import SuppressCounts
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.samples import DrawnBefore, DrawnHere, EveryRow, SecretSample
from incrowd.core.steps.step import Step
from incrowd.methods.histograms import contents
from incrowd.methods.histograms.contents import Flags, Numbers, reopen
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one

__all__ = ["CLAIMS", "ORDER", "STEPS", "contradiction", "looks", "recount", "reopen"]

SAMPLES = (EveryRow, SecretSample, DrawnBefore, DrawnHere)
STEPS: tuple[type[Step], ...] = (KeepRows, *SAMPLES, RecodeToBins, Count, SuppressCounts, PublishCounts)
CLAIMS: tuple[type[Claim], ...] = (ApproximatePrivacy, ZeroKnowledge, RobustZeroKnowledge, RobustTheorem, Blending)
ORDER = (
    maybe(KeepRows),
    one(*SAMPLES),
    one(RecodeToBins),
    one(Count),
    one(SuppressCounts),
    one(PublishCounts),
)


def contradiction(statement: Statement) -> Problem | None:
    """Return where steps, unit and columns contradict each other, or None."""
    if statement.basis.need(PublishCounts).exact:
        return Problem("exact counts are marked, and every count that is not zero is exact")
    return contents.contradiction(statement, (ListedBins.ALL, ListedBins.FROM_K))


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look at the columns, bins and counts of the file."""
    (file,) = files
    return contents.looks(statement, contents.read(file), _impossible)


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold a histogram in memory against the statement."""
    return contents.recount(statement, output, _impossible)


def _impossible(statement: Statement, counts: Numbers, exact: Flags | None) -> bool:  # noqa: ARG001 - nothing is marked
    """Return whether some count lies below k and is not zero, or is zero where only counts from k on are listed."""
    basis = statement.basis
    small = counts < contents.rounded(basis.need(SuppressCounts).k, basis.need(PublishCounts).round)
    hidden = counts == 0 if basis.need(Count).listed is ListedBins.ALL else np.zeros(len(counts), bool)
    return bool(np.any(small & ~hidden))
