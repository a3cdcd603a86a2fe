"""The file of a blended histogram, counted again: the declared bins, and counts as noise below k leaves them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.crowds import Blending
from incrowd.core.claims.privacy import ApproximatePrivacy, ZeroKnowledge
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import Count, ListedBins, PublishCounts, RecodeToBins
from incrowd.core.steps.counts import NoiseWhenSmall
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.samples import EveryRow, SecretSample
from incrowd.core.steps.step import Step
from incrowd.methods.histograms import contents
from incrowd.methods.histograms.contents import Flags, Numbers, reopen
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one

__all__ = ["CLAIMS", "ORDER", "STEPS", "contradiction", "looks", "recount", "reopen"]

STEPS: tuple[type[Step], ...] = (
    KeepRows,
    EveryRow,
    SecretSample,
    RecodeToBins,
    Count,
    NoiseWhenSmall,
    PublishCounts,
)
CLAIMS: tuple[type[Claim], ...] = (ApproximatePrivacy, ZeroKnowledge, Blending)
ORDER = (
    maybe(KeepRows),
    one(EveryRow, SecretSample),
    one(RecodeToBins),
    one(Count),
    one(NoiseWhenSmall),
    one(PublishCounts),
)


def contradiction(statement: Statement) -> Problem | None:
    """Return where steps, unit and columns contradict each other, or None."""
    if statement.basis.need(Count).size is None:
        return Problem("empty bins that are not known cannot have got noise")
    return contents.contradiction(statement, (ListedBins.ALL, ListedBins.ABOVE_ZERO))


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look at the columns, bins and counts of the file."""
    (file,) = files
    return contents.looks(statement, contents.read(file), _impossible)


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold a histogram in memory against the statement."""
    return contents.recount(statement, output, _impossible)


def _impossible(statement: Statement, counts: Numbers, exact: Flags | None) -> bool:
    """Return whether some count lies outside of where noise is held, or is marked as what it cannot be."""
    small, base = statement.basis.need(NoiseWhenSmall), statement.basis.need(PublishCounts).round
    if small.clamp and np.any(counts < 0):
        return True
    if exact is None:
        return False
    noisy, most = counts[~exact], contents.rounded(small.k - 1, base)
    return bool(np.any(counts[exact] < contents.rounded(small.k, base)) or (small.clamp and np.any(noisy > most)))
