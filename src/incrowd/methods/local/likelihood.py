"""Likelihood: the shares under which the reports of a choice are likeliest; none is below zero, and they add up to one.

An unbiased estimate of many shares is mostly noise.  Shares that are held between zero and one by the likelihood are
nearer to the truth on average, and biased; the exact interval of each share does not depend on how it is estimated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.randomizer import Categorical
from incrowd.methods.local.mechanisms.sets import OptimalUnary, SymmetricUnary

MOST_CELLS = 2**23
"""So many reports times values are held in memory."""
_ROUNDS = 5_000
_NEAR = 0.01
"""The logarithm of the likelihood is at most so far below its largest value."""

Shares = NDArray[np.float64]


def likeliest(randomizer: Categorical, reports: Any) -> Shares:
    """Return the shares of largest likelihood, by expectation and maximization from even shares on.

    A report is likelier by one factor under the values that it supports, by another under all others.  The likelihood
    is concave in the shares: with s_v the mean over reports of its value's likelihood divided by that of the shares, it
    lies at most n · (max s_v − 1) below its largest logarithm, which says when to stop.

    Source: Agrawal & Aggarwal 2001; ElSalamouny & Palamidessi 2020 (iterative Bayesian update).

    >>> from incrowd.methods.local.mechanisms.ratio import Weights
    >>> from incrowd.methods.local.mechanisms.randomizer import Response
    >>> likeliest(Response(3, Weights(3, 1)), np.repeat([0, 1, 2], [480, 280, 240])).round(1).tolist()
    [0.7, 0.2, 0.1]
    """
    members, times = _patterns(randomizer, reports)
    own, other = _factors(randomizer)
    chances = other + (own - other) * members
    people, shares = float(times.sum()), np.full(randomizer.size, 1.0 / randomizer.size)
    for _ in range(_ROUNDS):
        scores = chances.T @ (times / (chances @ shares)) / people
        if people * (float(scores.max()) - 1.0) <= _NEAR:
            break
        shares = shares * scores
        shares /= shares.sum()
    return np.asarray(shares, np.float64)


def _patterns(randomizer: Categorical, reports: Any) -> tuple[Shares, Shares]:
    """Return which values each different report supports, and how often it came."""
    distinct, times = np.unique(reports, axis=0, return_counts=True)
    if len(distinct) * randomizer.size > MOST_CELLS:
        raise InvalidParameter(
            f"the likelihood takes at most {MOST_CELLS:,} different reports times values. Leave --likelihood out."
        )
    return randomizer.members(distinct).astype(np.float64), times.astype(np.float64)


def _factors(randomizer: Categorical) -> tuple[float, float]:
    """Return how much likelier a report is under a value that it supports, and under one that it does not."""
    p, q = float(randomizer.p), float(randomizer.q)
    if isinstance(randomizer, OptimalUnary | SymmetricUnary):
        return p / q, (1 - p) / (1 - q)
    return float(randomizer.weights.value), 1.0
