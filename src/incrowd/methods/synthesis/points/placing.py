"""Placing: how many points each cell gets, and where in it they lie."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.counts import Counts
from incrowd.core.keys import Codes, Keys
from incrowd.mechanisms.noisy_when_small import ClampedWhenSmall
from incrowd.mechanisms.partition import Occupied, blended
from incrowd.methods.synthesis.points.grid import Axis, Grid
from incrowd.methods.synthesis.points.steps import FINE


def released_cells(counts: Counts, k: int, noise: Fraction | None, coins: Coins) -> tuple[Keys, NDArray[np.int64]]:
    """Return the cells that get points, in order, and how many; without noise, cells below k were left out before.

    With noise every cell of the grid takes part: those that no row was in get theirs as all others do.
    """
    if noise is None:
        large = counts.at_least(k)
        return large.keys, large.counts
    bins = Occupied(counts.keys.astype(np.int64), counts.counts, counts.layout.size)
    out = blended(ClampedWhenSmall(k, noise), bins, coins)
    return out.places, out.counts


def uniform_offsets(grid: Grid, keys: Keys, counts: NDArray[np.int64], coins: Coins) -> tuple[NDArray[Any], ...]:
    """Draw for each axis and each point a place inside its cell, uniform and exact, whatever the rows are."""
    codes = grid.cells.layout.unpack(keys)
    return tuple(_drawn(axis, np.repeat(found, counts), coins) for axis, found in zip(grid.axes, codes, strict=True))


def _drawn(axis: Axis, codes: Codes, coins: Coins) -> NDArray[Any]:
    if not axis.slices.whole:
        return coins.below(FINE, len(codes)).astype(np.uint32)
    sizes = np.diff(axis.slices.ends)[codes]
    drawn = np.zeros(len(codes), np.int64)
    for size in np.unique(sizes).tolist():
        where = np.flatnonzero(sizes == size)
        drawn[where] = coins.below(size, len(where))
    return drawn
