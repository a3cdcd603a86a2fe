"""Individual risk: the probability that a record of a weighted sample is linked correctly.

For a class of f rows whose weights add up to W, the number F of people in the population is modeled as negative
binomial: each person was sampled with probability p = f/W, until f were sampled.  A random link of a row is right with
probability r = E[1/F] = (p/f)·₂F₁(1, 1; f + 1; 1 − p), that is (p/f)·Σ n!·(1 − p)ⁿ / ((f + 1)…(f + n)).

All terms are positive, so the sum is safe everywhere, and short unless f is small and p is too.  There the recursion
r₁ = p/(1 − p)·ln(1/p), r_{f+1} = p/(1 − p)·(1/f − r_f) is exact, because it shrinks its own rounding for p < 1/2.
For larger p it amplifies it: with p = 0.9 and f = 20 doubles give −584 for 0.045.

Source: Benedetti & Franconi 1998; Polettini 2003 for the form with ₂F₁.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter

_Numbers = NDArray[np.float64]
_FEW = 30  # the recursion multiplies its rounding by the odds, below 1 here; its loop runs over f
_TERMS = 400  # the series stops by itself before: its terms fall by (1 − p)·n/(f + n) each, with p ≥ 1/2 or f > 30


def individual_risk(rows: Sequence[int] | NDArray[np.int64], weights: Sequence[float] | _Numbers) -> _Numbers:
    """Return the risk of a row of each class, from the rows of the class and the sum of their weights.

    >>> individual_risk([1, 2, 20], [10, 20, 20 / 0.9]).round(6).tolist()
    [0.255843, 0.082684, 0.045216]
    """
    f, total = np.asarray(rows, np.float64), np.asarray(weights, np.float64)
    if f.shape != total.shape:
        raise InvalidParameter("rows and weights must have one number for each class.")
    if not (np.isfinite(total) & (total > 0)).all() or (f < 1).any():
        raise InvalidParameter(
            "a weight must be a number above 0 (the people of the population that a row represents), and a class "
            "needs at least one row: omit rows without a weight, or use no weights."
        )
    p = np.minimum(1.0, f / total)
    recursive = (p < 0.5) & (f <= _FEW)
    risk = np.empty(len(f))
    risk[recursive] = _recursion(f[recursive], p[recursive])
    risk[~recursive] = _series(f[~recursive], p[~recursive])
    return risk


def _recursion(f: _Numbers, p: _Numbers) -> _Numbers:
    odds = p / (1.0 - p)
    risk = -odds * np.log(p)
    for step in range(1, int(f.max(initial=1))):
        risk = np.where(f > step, odds * (1.0 / step - risk), risk)
    return risk


def _series(f: _Numbers, p: _Numbers) -> _Numbers:
    term, total = np.ones(len(f)), np.ones(len(f))
    for n in range(1, _TERMS):
        term = term * (1.0 - p) * n / (f + n)
        if not (term > total * 1e-17).any():
            break
        total = total + term
    return p / f * total
