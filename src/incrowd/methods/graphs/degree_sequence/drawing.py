"""Drawing a graph by degrees: ends of edges are joined by coins, round by round, until no two fit any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.graph import Degrees, Ends, keys_of
from incrowd.methods.graphs.outputs import shuffled
from incrowd.methods.graphs.pairs import held

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

_ROUNDS = 50


def drawn(degrees: Degrees, coins: Coins) -> Ends:
    """Return edges that give each node about its degree, and never more.

    Every node has as many ends as its degree says, and ends are paired by coins.  A pair that would be a loop or an
    edge that is there already is paired anew in the next round; what does not fit after all rounds is left out.
    """
    size, found = len(degrees), np.zeros(0, np.int64)
    ends = np.repeat(np.arange(size, dtype=np.int32), degrees)
    for _ in range(_ROUNDS):
        if len(ends) < 2:
            break
        ends = ends[shuffled(len(ends), coins)]
        pairs = ends[: len(ends) // 2 * 2].reshape(-1, 2)
        keys = keys_of(pairs, size)
        good = np.zeros(len(pairs), np.bool_)
        good[np.unique(keys, return_index=True)[1]] = True
        good &= (pairs[:, 0] != pairs[:, 1]) & ~held(found, keys)
        new = np.sort(keys[good])
        found = np.insert(found, np.searchsorted(found, new), new)
        ends = np.concatenate([pairs[~good].ravel(), ends[len(pairs) * 2 :]])
    return np.stack(np.divmod(found, max(1, size)), axis=1)
