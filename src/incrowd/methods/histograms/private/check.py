"""The file of a private histogram, counted again: the declared bins, or those from a threshold that hides enough."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import ApproximatePrivacy, PurePrivacy
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import Count, ListedBins, PublishCounts, RecodeToBins
from incrowd.core.steps.noise import Law
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.samples import EveryRow, SecretSample, moved
from incrowd.core.steps.step import Step
from incrowd.core.unit import Adjacency
from incrowd.methods.histograms import contents
from incrowd.methods.histograms.contents import Flags, Numbers, reopen
from incrowd.methods.histograms.laws import TOLERANCE, WIDEST, noise_delta, strays, tail
from incrowd.methods.histograms.private.steps import AddNoise, HideUnknown, ListFrom
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one

__all__ = ["CLAIMS", "ORDER", "STEPS", "contradiction", "looks", "recount", "reopen"]

STEPS: tuple[type[Step], ...] = (
    KeepRows,
    EveryRow,
    SecretSample,
    RecodeToBins,
    Count,
    AddNoise,
    ListFrom,
    HideUnknown,
    PublishCounts,
)
CLAIMS: tuple[type[Claim], ...] = (PurePrivacy, ApproximatePrivacy)
ORDER = (
    maybe(KeepRows),
    one(EveryRow, SecretSample),
    one(RecodeToBins),
    one(Count),
    one(AddNoise),
    maybe(ListFrom, HideUnknown),
    one(PublishCounts),
)


def contradiction(statement: Statement) -> Problem | None:
    """Return where steps, unit and columns contradict each other, or what noise and threshold cannot do; or None."""
    basis = statement.basis
    hidden, fewer = basis.find(HideUnknown), basis.find(ListFrom)
    if (basis.need(Count).size is None) != (hidden is not None):
        return Problem("bins that nobody listed, and only those, are hidden by a threshold with a delta")
    if basis.need(PublishCounts).exact:
        return Problem("exact counts are marked, and none is exact")
    listed = ListedBins.ALL if hidden is None and fewer is None else ListedBins.FROM_THRESHOLD
    return contents.contradiction(statement, (listed,)) or _noise(statement)


def _noise(statement: Statement) -> Problem | None:
    """Return that noise strays further than stated, or is sampled where no sample saves anything, or None."""
    basis = statement.basis
    noise, hidden = basis.need(AddNoise), basis.find(HideUnknown)
    if basis.find(SecretSample) and (hidden is not None or basis.unit.adjacency is Adjacency.REPLACE):
        return Problem("a secret sample needs known bins, and rows that are added or removed")
    if noise.noise is Law.GAUSSIAN and noise.scale > WIDEST:
        return Problem("the noise is too wide to write out its law", undecided=True)
    if strays(noise.noise, noise.scale, noise.within):
        return Problem("more than 5 % of counts lie further from the truth than the steps say")
    return None if hidden is None else _threshold(statement, noise, hidden)


def _threshold(statement: Statement, noise: AddNoise, hidden: HideUnknown) -> Problem | None:
    """Return that a threshold could show a bin that one person is alone in, or that its noise costs more, or None."""
    unit, whole = statement.basis.unit, statement.basis.guarantee.delta
    passed = unit.max_rows * moved(unit) * tail(noise.noise, noise.scale, hidden.least - unit.max_rows)
    if passed > float(hidden.delta) * TOLERANCE:
        return Problem("the threshold is too low for its delta: it could show a bin that one person is alone in")
    if hidden.delta > whole:
        return Problem("the delta of the threshold is larger than that of the guarantee")
    spent = noise_delta(noise.noise, noise.scale, unit, Fraction(hidden.epsilon))
    if spent > float(whole - hidden.delta) * TOLERANCE:
        return Problem(f"at the epsilon of the threshold the noise has a delta of {spent:.6g}")
    return None


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look at the columns, bins and counts of the file."""
    (file,) = files
    return contents.looks(statement, contents.read(file), _impossible)


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold a histogram in memory against the statement."""
    return contents.recount(statement, output, _impossible)


def _impossible(statement: Statement, counts: Numbers, exact: Flags | None) -> bool:  # noqa: ARG001 - nothing is marked
    """Return whether some count lies below the threshold, or below zero where counts are held."""
    basis = statement.basis
    threshold = basis.find(HideUnknown) or basis.find(ListFrom)
    if threshold is not None:
        return bool(np.any(counts < contents.rounded(threshold.least, basis.need(PublishCounts).round)))
    return basis.need(AddNoise).clamp and bool(np.any(counts < 0))
