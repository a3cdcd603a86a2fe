"""Permutation: a uniform order, drawn exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

_KEYS = 2**62


def permutation(coins: Coins, size: int) -> NDArray[np.int64]:
    """Return the places of so many things in an order that is uniform over all orders.

    Each place gets an independent uniform key, and places are sorted by their keys.  Keys that are all different come
    in every order alike; should two be equal, all are drawn again.

    >>> from incrowd.noise.system import SystemCoins
    >>> sorted(permutation(SystemCoins(), 4).tolist())
    [0, 1, 2, 3]
    """
    while True:
        keys = coins.below(_KEYS, size)
        order = np.argsort(keys)
        if np.all(np.diff(keys[order]) > 0):
            return order.astype(np.int64)
