"""Switches: pairs of edges exchange an end, many at once, and every degree stays."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.core.graph import Ends, Graph, keys_of, simple
from incrowd.methods.graphs.outputs import shuffled

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

_ROUNDS = 20


def switched(graph: Graph, share: Fraction, coins: Coins) -> Ends:
    """Return the edges after a share of them exchanged an end with another edge: (a, b), (c, d) to (a, d), (c, b).

    Edges are paired by coins, round by round among those that were not switched yet; a pair that would make a loop or
    an edge that exists is left as it is.
    """
    size, ends = graph.size, graph.ends.copy()
    fresh = np.arange(len(ends))
    wanted = math.ceil(share * len(ends) / 2)
    for _ in range(_ROUNDS):
        if wanted <= 0 or len(fresh) < 2:
            break
        order = fresh[shuffled(len(fresh), coins)]
        pairs = order[: len(order) // 2 * 2].reshape(-1, 2)[: 2 * wanted]
        turned = coins.bernoulli(Fraction(1, 2), len(pairs))
        done = _exchange(ends, pairs, turned, size, wanted)
        wanted -= len(done)
        fresh = np.setdiff1d(fresh, done.ravel())
    return simple(ends, size) if len(ends) else ends


def _exchange(ends: Ends, pairs: Ends, turned: NDArray[np.bool_], size: int, wanted: int) -> Ends:
    """Exchange ends where the result is simple, in place, and return the pairs of edges that did."""
    one, other = ends[pairs[:, 0]], ends[pairs[:, 1]]
    other = np.where(turned[:, None], other[:, ::-1], other)
    new = np.stack([np.stack([one[:, 0], other[:, 1]], 1), np.stack([other[:, 0], one[:, 1]], 1)], 1)
    keys = keys_of(new.reshape(-1, 2), size)
    bad = (new[:, :, 0] == new[:, :, 1]).ravel() | np.isin(keys, keys_of(ends, size))
    first = np.zeros(len(keys), np.bool_)
    first[np.unique(keys, return_index=True)[1]] = True
    good = np.flatnonzero((first & ~bad).reshape(-1, 2).all(axis=1))[:wanted]
    ends[pairs[good].ravel()] = new[good].reshape(-1, 2)
    return pairs[good]
