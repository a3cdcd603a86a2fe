"""Survey: the risk of a record of a weighted sample, without knowing the population.

Of a class of f rows whose weights add up to W, the people F in the population are taken as negative binomial: each of
them was drawn with probability p = f/W, and drawing went on until f were there.  Somebody who links a row at random is
right with r = E[1/F] = (p/f)·₂F₁(1, 1; f + 1; 1 − p), that is (p/f)·Σ n!·(1 − p)ⁿ / ((f + 1)…(f + n)).

All terms are positive, so the sum is safe everywhere, and short unless f is small and p is too.  There the recursion
r₁ = p/(1 − p)·ln(1/p), r_{f+1} = p/(1 − p)·(1/f − r_f) is exact, because it shrinks its own rounding for p < 1/2.
For larger p it blows it up: with p = 0.9 and f = 20 doubles give −584 for 0.045.

Source: Benedetti & Franconi 1998; Polettini 2003 for the form with ₂F₁.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Keys
from incrowd.errors import InvalidParameter
from incrowd.measures.score import Score, around

Numbers = NDArray[np.float64]
_FEW = 30
_TERMS = 400
_MEANS = "expected number of rows that are linked rightly, if everybody is linked at random among those who look alike"


def individual_risk(rows: Sequence[int] | NDArray[np.int64], weights: Sequence[float] | Numbers) -> Numbers:
    """Return the risk of a row of each class, from the rows of the class and the sum of their weights.

    >>> individual_risk([1, 2, 20], [10, 20, 20 / 0.9]).round(6).tolist()
    [0.255843, 0.082684, 0.045216]
    """
    f, total = np.asarray(rows, np.float64), np.asarray(weights, np.float64)
    if f.shape != total.shape:
        raise InvalidParameter("each class has its rows and the sum of their weights: give as many of both.")
    if not (np.isfinite(total) & (total > 0)).all() or (f < 1).any():
        raise InvalidParameter(
            "a weight is a number above 0, how many people of the population a row stands for, and a class has at "
            "least one row: leave rows without a weight out, or use no weights."
        )
    p = np.minimum(1.0, f / total)
    recursive = (p < 0.5) & (f <= _FEW)
    found = np.empty(len(f))
    found[recursive] = _recursion(f[recursive], p[recursive])
    found[~recursive] = _series(f[~recursive], p[~recursive])
    return found


def _recursion(f: Numbers, p: Numbers) -> Numbers:
    odds = p / (1.0 - p)
    risk = -odds * np.log(p)
    for step in range(1, int(f.max(initial=1))):
        risk = np.where(f > step, odds * (1.0 / step - risk), risk)
    return risk


def _series(f: Numbers, p: Numbers) -> Numbers:
    term, total = np.ones(len(f)), np.ones(len(f))
    for n in range(1, _TERMS):
        term = term * (1.0 - p) * n / (f + n)
        if not (term > total * 1e-17).any():
            break
        total = total + term
    return p / f * total


def class_weights(keys: Keys, weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], Numbers]:
    """Return for each class its rows and the sum of their weights, given for each row its class and its weight.

    >>> class_weights(np.array([3, 5, 3]), np.array([1.0, 2.0, 4.0]))
    (array([2, 1]), array([5., 2.]))
    """
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise InvalidParameter(
            "some row has a weight of 0, none, or one that is no number: a weight is how many people a row stands for."
        )
    _, places, rows = np.unique(keys, return_inverse=True, return_counts=True)
    return rows.astype(np.int64), np.bincount(places, weights).astype(np.float64)


def expected_links(rows: NDArray[np.int64], weights: Numbers) -> Score:
    """Return how many rows are expected to be linked rightly, over the whole sample.

    >>> round(expected_links(np.array([1, 2]), np.array([10.0, 20.0])).value, 6)
    0.421211
    """
    risk = individual_risk(rows, weights)
    error = float(np.sqrt((rows * risk * (1.0 - risk)).sum()))
    return around("expected links", float((rows * risk).sum()), error, _MEANS)
