"""Pairs of nodes by number: places among all pairs, and sets of places drawn by coins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from incrowd.core.coins import Coins


def subset(size: int, number: int, coins: Coins) -> NDArray[np.int64]:
    """Draw so many different whole numbers below a size, every set of them as likely."""
    if 2 * number > size:
        left_out = subset(size, size - number, coins)
        return np.setdiff1d(np.arange(size), left_out)
    found = np.zeros(0, np.int64)
    while len(found) < number:
        found = np.union1d(found, coins.below(size, number - len(found)))
    return found


def pairs_at(places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs (low, high) with high (high − 1)/2 + low = place.

    >>> [each.tolist() for each in pairs_at(np.arange(4))]
    [[0, 0, 1, 0], [1, 2, 2, 3]]
    """
    high = np.floor((1 + np.sqrt(8.0 * places + 1)) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > places
    high += (high + 1) * high // 2 <= places
    return places - high * (high - 1) // 2, high


def held(ordered: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers stand among those in order."""
    if not len(ordered):
        return np.zeros(len(wanted), np.bool_)
    places = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.asarray(ordered[places] == wanted, np.bool_)
