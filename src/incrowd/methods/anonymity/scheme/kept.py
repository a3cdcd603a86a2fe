"""Kept: how many rows of a cell sampled suppression is expected to keep, in whole steps that one row cannot exceed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FINENESS = 2**16
"""How many steps one expected row has."""
_SETTLED = 1e-12


@dataclass(frozen=True, eq=False)
class Kept:
    """The steps by which the n-th row of a cell raises what is kept of it; after the last one they stay the same.

    The table is public: it follows from k and the rate.  It is close to the expectation of what sampled suppression
    keeps of n rows, E[X·1{X ≥ k}] for X ~ Bin(n, rate), but nothing about privacy hangs on how close, since scores are
    made of these whole steps and `most` is their true maximum.
    """

    steps: NDArray[np.int64]

    @property
    def most(self) -> int:
        """The most that one row can add."""
        return int(self.steps.max())

    def of(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what is kept of cells with so many rows, in steps of 1/FINENESS row; it never falls in the count.

        >>> kept = kept_of(5, Fraction(1, 2))
        >>> kept.of(np.array([0, 4, 5, 100])).tolist()[:2]
        [0, 0]
        >>> bool(abs(kept.of(np.array([100]))[0] / FINENESS - 50) < 0.1)
        True
        """
        sums = np.concatenate(([0], np.cumsum(self.steps)))
        inside = np.minimum(counts, len(self.steps))
        return sums[inside] + (counts - inside) * int(self.steps[-1])


@lru_cache(maxsize=64)
def kept_of(k: int, rate: Fraction) -> Kept:
    """Return the steps of sampled suppression below k at a rate.

    One row more in a cell of n − 1 is sampled with chance β = rate.  Beside B ~ Bin(n − 1, β) others it then adds 1 if
    B ≥ k, and k if B = k − 1, where it saves the whole cell: β·(P[B ≥ k] + k·P[B = k − 1]) in expectation.
    """
    from scipy.stats import binom

    beta, steps, size = float(rate), np.zeros(0), max(64, int(4 * k / float(rate)))
    while True:
        others = np.arange(size)
        rarely = binom.cdf(k - 1, others, beta)
        steps = beta * (1.0 - rarely + k * binom.pmf(k - 1, others, beta))
        if rarely[-1] < _SETTLED:
            break
        size *= 2
    settled = int(np.argmax(rarely < _SETTLED)) + 1
    whole = np.floor(FINENESS * steps[:settled]).astype(np.int64)
    whole[-1] = int(FINENESS * rate)
    return Kept(whole)
