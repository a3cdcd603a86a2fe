"""Classes of nodes: by degree, by neighborhood, and by all that can be seen within some hops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.graph import Graph
from incrowd.core.words import counted
from incrowd.measures.score import Score
from incrowd.methods.graphs.shared.matrices import adjacency

Colors = NDArray[np.int64]
_HOPS = 3


def colors(graph: Graph, hops: int) -> Colors:
    """Return a number for each node that is the same for nodes that look the same within so many hops.

    Within one hop that is the degree, within two the degrees of neighbors besides, and so on: each hop adds the
    multiset of the neighbors' colors (Weisfeiler & Leman 1968), known by sums of random words.  Two colors that differ
    are taken for one with a chance below 10⁻⁶ for a million nodes.

    >>> sizes_of(colors(Graph.of(5, [(0, 1), (1, 2), (2, 3), (3, 4)]), 1)).tolist()
    [2, 3, 3, 3, 2]
    """
    matrix, found = adjacency(graph), np.zeros(graph.size, np.int64)
    chance = np.random.default_rng(0)
    for _ in range(hops):
        words = chance.integers(0, 2**63, size=(int(found.max(initial=0)) + 1, 2), dtype=np.int64)
        sums = np.stack([_wrapped(matrix, words[found, part]) for part in (0, 1)], axis=1)
        found = np.unique(np.column_stack([found, sums]), axis=0, return_inverse=True)[1].ravel().astype(np.int64)
    return found


def _wrapped(matrix: object, words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums of neighbors' words modulo 2^64."""
    with np.errstate(over="ignore"):
        return np.asarray(matrix @ words, np.int64)  # type: ignore[operator]


def sizes_of(found: Colors) -> NDArray[np.int64]:
    """Return for each node how many look the same."""
    return np.bincount(found)[found].astype(np.int64) if len(found) else found


def uniqueness(graph: Graph) -> tuple[Score, ...]:
    """Return the smallest class and the share of nodes that are alone, by what can be seen within 1, 2, 3 hops."""
    scores = []
    names = {1: "degree", 2: "set of neighbors by degree", 3: "surroundings within three hops"}
    for hops in range(1, _HOPS + 1):
        sizes = sizes_of(colors(graph, hops))
        smallest = int(sizes.min(initial=graph.size))
        alone = float((sizes == 1).mean()) if graph.size else 0.0
        scores.append(Score(f"smallest class, {counted(hops, 'hop')}", smallest, f"nodes of the rarest {names[hops]}"))
        scores.append(
            Score(f"unique, {counted(hops, 'hop')}", alone, f"share of nodes that are alone with their {names[hops]}")
        )
    return tuple(scores)
