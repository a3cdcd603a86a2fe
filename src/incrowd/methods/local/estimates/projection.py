"""Projection: shares that are not below zero and add up to one, nearest to unbiased estimates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Shares = NDArray[np.float64]


def projected(shares: Shares) -> Shares:
    """Return the point of the simplex that is nearest to some estimates: max(share + t, 0) for one t.

    It is never further from the truth than the estimates are, and it is biased: common values come out too small, all
    rare ones together too large.  No interval holds around it.

    Source: Wang et al. 2020 (Norm-Sub), which is this projection (Michelot 1986).

    >>> projected(np.array([0.5, 0.4, 0.3, -0.2])).round(6).tolist()
    [0.433333, 0.333333, 0.233333, 0.0]
    """
    ranked = np.sort(shares)[::-1]
    moves = (1.0 - np.cumsum(ranked)) / np.arange(1, len(shares) + 1)
    last = int(np.flatnonzero(ranked + moves > 0)[-1])
    return np.asarray(np.maximum(shares + moves[last], 0.0), np.float64)
