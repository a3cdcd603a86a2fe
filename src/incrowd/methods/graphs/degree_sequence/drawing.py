"""Drawing a graph by degrees: ends of edges are joined by coins, round by round, until no two fit any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.graph import Degrees, Ends, keys_of, simple
from incrowd.methods.graphs.outputs import shuffled

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

_ROUNDS = 50


def drawn(degrees: Degrees, coins: Coins) -> Ends:
    """Return edges that give each node about its degree, and never more.

    Every node has as many ends as its degree says, and ends are paired by coins.  A pair that would be a loop or an
    edge that is there already is paired anew in the next round; what does not fit after all rounds is left out.
    """
    size, found = len(degrees), np.zeros((0, 2), np.int64)
    ends = np.repeat(np.arange(size), degrees)
    for _ in range(_ROUNDS):
        if len(ends) < 2:
            break
        ends = ends[shuffled(len(ends), coins)]
        pairs = ends[: len(ends) // 2 * 2].reshape(-1, 2)
        keys = keys_of(pairs, size)
        good = np.zeros(len(pairs), np.bool_)
        good[np.unique(keys, return_index=True)[1]] = True
        good &= (pairs[:, 0] != pairs[:, 1]) & ~np.isin(keys, keys_of(found, size))
        found = np.concatenate([found, pairs[good]])
        ends = np.concatenate([pairs[~good].ravel(), ends[len(pairs) * 2 :]])
    return simple(found, size)
