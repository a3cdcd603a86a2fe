"""Degrees: edges kept up to a bound in a public order, and the monotone sequence nearest to noisy degrees."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.core.graph import Ends, Graph, simple

if TYPE_CHECKING:
    from incrowd.core.graph import Degrees


_MIX = np.uint64(0x9E3779B97F4A7C15)


def projected(graph: Graph, bound: int) -> Ends:
    """Return the edges that are kept where no node may have more than `bound` of them.

    Edges are met in an order that hangs on the ids of their two ends alone, and one is kept if both ends have room.
    Adding a node then changes the number of kept edges by at most `bound` and the histogram of degrees by at most
    2 · bound + 1.  Many edges are decided at once: an edge that stands among the first at both ends, of as many as
    there is room for, is kept whatever becomes of those before it, and an edge at a full node is not.

    Source: Day, Li & Lyu 2016.

    >>> projected(Graph.of(4, [(0, 1), (0, 2), (0, 3)]), 1).shape
    (1, 2)
    """
    ends = graph.ends.astype(np.int32)[public_order(graph)]
    room = np.full(graph.size, bound, np.int64)
    retained, alive = np.zeros(len(ends), np.bool_), np.arange(len(ends), dtype=np.int32)
    while len(alive):
        pairs = ends[alive]
        ranks = _ranks(pairs.ravel()).reshape(-1, 2)
        sure = (ranks < room[pairs]).all(axis=1)
        retained[alive[sure]] = True
        room -= np.bincount(pairs[sure].ravel(), minlength=graph.size)
        alive = alive[~sure & (room[pairs] > 0).all(axis=1)]
    return simple(ends[retained], graph.size)


def public_order(graph: Graph) -> NDArray[np.int64]:
    """Return the places of the edges in an order that hangs, for any two of them, on the ids of their ends alone.

    First by a public hash of the two ids, which keeps few edges waiting for each other, then, where two edges have the
    same, by the ids themselves.
    """
    mixed = _hashes(graph)
    order = np.argsort(mixed, kind="stable")
    if not _same_as_before(mixed, order).any():
        return order
    texts, rank = graph.ids.to_pylist(), np.empty(graph.size, np.int64)
    rank[np.array(sorted(range(graph.size), key=texts.__getitem__), np.int64)] = np.arange(graph.size)
    ranks = np.sort(rank[graph.ends], axis=1)
    return np.lexsort((ranks[:, 1], ranks[:, 0], mixed)).astype(np.int64)


def _same_as_before(mixed: NDArray[np.uint64], order: NDArray[np.int64]) -> NDArray[np.bool_]:
    ordered = mixed[order]
    return np.asarray(ordered[1:] == ordered[:-1], np.bool_)


def _hashes(graph: Graph) -> NDArray[np.uint64]:
    """Return a public hash for each edge, of the ids of its ends."""
    texts = graph.ids.to_pylist()
    nodes = np.array([int.from_bytes(blake2b(str(text).encode(), digest_size=8).digest()) for text in texts], np.uint64)
    one, other = nodes[graph.ends[:, 0]], nodes[graph.ends[:, 1]]
    mixed = np.minimum(one, other) * _MIX
    mixed ^= np.maximum(one, other) + _MIX
    mixed ^= mixed >> np.uint64(31)
    mixed *= _MIX
    return mixed


def _ranks(nodes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return for each entry how many equal ones stand before it."""
    order = np.argsort(nodes, kind="stable")
    ordered = nodes[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])).astype(np.int32)
    lengths = np.diff(np.append(starts, len(ordered)))
    result = np.empty(len(nodes), np.int32)
    result[order] = np.arange(len(nodes), dtype=np.int32) - np.repeat(starts, lengths)
    return result


def fitted(noisy: NDArray[np.int64]) -> Degrees:
    """Return the sequence of whole numbers that does not fall and lies nearest to noisy degrees, within what can be.

    Source: Hay, Li, Miklau & Jensen 2009.

    >>> fitted(np.array([1, 0, 3, 2])).tolist()
    [0, 0, 2, 2]
    """
    from scipy.optimize import isotonic_regression

    if not len(noisy):
        return noisy
    near = isotonic_regression(noisy.astype(np.float64)).x
    return np.asarray(np.clip(np.rint(near), 0, len(noisy) - 1), np.int64)
