"""The file of microdata at chosen levels: counted again as safe microdata is, and the choice held to its numbers."""

from __future__ import annotations

import math
from fractions import Fraction

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import Anonymity, ApproximatePrivacy, Pseudonymity
from incrowd.core.statement import Statement
from incrowd.core.steps.choices import SuppressChosen
from incrowd.core.steps.rows import KeepRows, Recode
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import ClaimBasis, Step
from incrowd.methods.anonymity.safe import check as safe
from incrowd.methods.anonymity.scheme.steps import ChooseLevels, OrderChosen
from incrowd.verifier.check import Problem, maybe, one

STEPS: tuple[type[Step], ...] = (ChooseLevels, KeepRows, SecretSample, Recode, SuppressChosen, OrderChosen)
CLAIMS: tuple[type[Claim], ...] = (ApproximatePrivacy, Anonymity, Pseudonymity)
ORDER = (one(ChooseLevels), maybe(KeepRows), one(SecretSample), one(Recode), one(SuppressChosen), one(OrderChosen))

looks, recount, reopen = safe.looks, safe.recount, safe.reopen

_FINENESS, _DETAIL = 2**16, 2**12  # how finely worths count rows, and the details of a row
_MOST_TRIED = 2**12


def contradiction(statement: Statement) -> Problem | None:
    """Return that other columns are recoded than released, or that the choice was less sensitive than it can be."""
    return safe.contradiction(statement) or _insensitive(statement.basis)


def _insensitive(basis: ClaimBasis) -> Problem | None:
    """Return that one person can move the worth of a recoding by more than the step of the choice says."""
    k, rate = basis.need(SuppressChosen).k, basis.need(SecretSample).rate
    if basis.need(ChooseLevels).sensitivity < _DETAIL * least_width(k, rate) * basis.unit.max_rows:
        return Problem("one person can move the worth of a recoding by more than the steps say")
    return None


def least_width(k: int, rate: Fraction, fineness: int = _FINENESS) -> int:
    """Return how far one row surely moves what is expected to be kept, in steps of 1/fineness row.

    The n-th row of a cell adds rate·(P[B ≥ k] + k·P[B = k − 1]) expected rows, B of the n − 1 others being sampled.
    Near n = k/rate this is largest.  Of a long range around it, evenly spaced n are enough for a lower bound.

    >>> least_width(20, Fraction(1, 10)) / 2**16
    0.239...
    """
    beta = float(rate)
    around = range(max(0, math.floor((k - 1) / beta) - 2), math.ceil(k / beta) + 3)
    near = around[:: max(1, len(around) // _MOST_TRIED)]
    added = max(beta * (_at_least(k, n, beta) + k * (_at_least(k - 1, n, beta) - _at_least(k, n, beta))) for n in near)
    return math.floor(fineness * added * (1.0 - 1e-9))


def _at_least(k: int, n: int, rate: float) -> float:
    """Return the chance that at least k of n are sampled."""
    from scipy.stats import binom

    return float(binom.sf(k - 1, n, rate))
