"""Drawing a graph from a block model: so many edges inside and between blocks, at places drawn by coins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.core.graph import Ends, Graph, simple
from incrowd.methods.graphs.pairs import pairs_at, subset

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

Counts = NDArray[np.int64]


def block_counts(graph: Graph, blocks: NDArray[np.int32], number: int) -> Counts:
    """Return how many edges there are inside and between blocks: (0, 0), (0, 1) and so on, then (1, 1) and so on.

    One edge is counted once: it moves these numbers by 1 in all.
    """
    ends = np.sort(blocks[graph.ends].astype(np.int64), axis=1).reshape(-1, 2)
    square = np.bincount(ends[:, 0] * number + ends[:, 1], minlength=number * number).reshape(number, number)
    return np.asarray(square[np.triu_indices(number)], np.int64)


def drawn(counts: Counts, blocks: NDArray[np.int32], number: int, coins: Coins) -> Ends:
    """Return edges at places drawn by coins, as many for each pair of blocks as it says, or as there is room for."""
    members = [np.flatnonzero(blocks == block) for block in range(number)]
    found = [np.zeros((0, 2), np.int64)]
    for count, one, other in zip(counts.tolist(), *np.triu_indices(number), strict=True):
        first, second = members[one], members[other]
        room = len(first) * (len(first) - 1) // 2 if one == other else len(first) * len(second)
        places = subset(room, min(max(0, count), room), coins)
        if one == other:
            low, high = pairs_at(places)
            found.append(np.stack([first[low], first[high]], axis=1))
        elif len(places):
            found.append(np.stack([first[places // len(second)], second[places % len(second)]], axis=1))
    pairs = np.concatenate(found)
    return simple(pairs, len(blocks)) if len(pairs) else pairs
