"""Changes at random: some edges are removed, and as many added where there were none, all by coins."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, comb
from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.graph import Ends, Graph, keys_of, simple
from incrowd.methods.graphs.pairs import pairs_at, subset

if TYPE_CHECKING:
    from incrowd.core.coins import Coins


def perturbed(graph: Graph, share: Fraction, coins: Coins) -> Ends:
    """Return the edges without a share of them, and with as many others, or as many as there is room for.

    Every set of edges is as likely to go, and every set of pairs that were not connected to come.
    """
    number = len(graph.ends)
    wanted = min(ceil(share * number), comb(graph.size, 2) - number)
    kept = np.delete(graph.ends, subset(number, wanted, coins), axis=0)
    return simple(np.concatenate([kept, _others(graph, wanted, coins)]), graph.size)


def _others(graph: Graph, wanted: int, coins: Coins) -> Ends:
    """Draw so many different pairs that are not connected; a pair that is connected or drawn twice is drawn again."""
    own, found = keys_of(graph.ends, graph.size), np.zeros(0, np.int64)
    while len(found) < wanted:
        places = coins.below(comb(graph.size, 2), wanted - len(found))
        keys = keys_of(np.stack(pairs_at(places), axis=1), graph.size)
        found = np.union1d(found, keys[~np.isin(keys, own)])
    return np.stack(np.divmod(found, max(1, graph.size)), axis=1)
