"""Marginals: how far the shares of one column are from what they were.

With p before and q after, *total variation* is ½ Σ |p − q|, the share of rows that would have to change their value;
*Hellinger's distance* is √(1 − Σ √(pq)), which counts rare values more; the *earth mover's* distance is how far rows
would have to move on average, as a share of the column's whole range, where values have an order.

Source: Rubner, Tomasi & Guibas 2000 for the last; on a line it is the area between the cumulated shares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Shares = NDArray[np.float64]


@dataclass(frozen=True)
class MarginalDistance:
    """How far one column is from what it was; the last is None where values have no order."""

    name: str
    variation: float
    hellinger: float
    mover: float | None


def variation(p: Shares, q: Shares) -> float:
    """Return the total variation distance.

    >>> variation(np.array([0.5, 0.5]), np.array([0.75, 0.25]))
    0.25
    """
    return float(np.abs(p - q).sum() / 2.0)


def hellinger(p: Shares, q: Shares) -> float:
    """Return Hellinger's distance.

    >>> hellinger(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    1.0
    """
    return float(np.sqrt(max(0.0, 1.0 - float(np.sqrt(p * q).sum()))))


def mover(p: Shares, q: Shares, positions: Shares) -> float:
    """Return the earth mover's distance over the range of the positions; what has no position is left out.

    >>> mover(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), np.array([0.0, 5.0, 10.0]))
    0.5
    """
    known = np.flatnonzero(np.isfinite(positions))
    order = known[np.argsort(positions[known], kind="stable")]
    span = float(positions[order[-1]] - positions[order[0]]) if len(order) else 0.0
    one, other = p[order], q[order]
    if span <= 0 or one.sum() <= 0 or other.sum() <= 0:
        return 0.0
    apart = np.cumsum(one / one.sum() - other / other.sum())[:-1]
    return float((np.abs(apart) * np.diff(positions[order])).sum() / span)


def marginal_distance(name: str, p: Shares, q: Shares, positions: Shares | None) -> MarginalDistance:
    """Return all three for one column."""
    return MarginalDistance(
        name, variation(p, q), hellinger(p, q), None if positions is None else mover(p, q, positions)
    )
