"""Matrices of graphs: adjacency, triangles, and pairs by their common neighbors, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.graph import Degrees, Graph
from incrowd.methods.graphs.pairs import held

_ENTRIES = 2**21
"""About so many entries of a product are held at once."""


def adjacency(graph: Graph) -> Any:
    """Return the symmetric matrix that is 1 where two nodes are connected.

    >>> adjacency(Graph.of(3, [(0, 1), (1, 2)])).toarray().tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    """
    ends = graph.ends.astype(np.int32)
    low, high = ends[:, 0], ends[:, 1]
    return _matrix(np.concatenate([low, high]), np.concatenate([high, low]), graph.size)


def _matrix(rows: NDArray[np.int32], columns: NDArray[np.int32], size: int) -> Any:
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(rows), np.int32), (rows, columns)), shape=(size, size))


def triangles(graph: Graph) -> int:
    """Return how many triples of nodes are all connected: each edge points to its end of higher degree.

    >>> triangles(Graph.of(4, [(0, 1), (1, 2), (0, 2), (2, 3)]))
    1
    """
    rank = np.empty(graph.size, np.int32)
    rank[np.lexsort((np.arange(graph.size), graph.degrees))] = np.arange(graph.size)
    ends = rank[graph.ends]
    upward = _matrix(ends.min(axis=1), ends.max(axis=1), graph.size)
    work = upward @ np.diff(upward.indptr).astype(np.int64)
    return sum(int((upward[rows] @ upward).multiply(upward[rows]).sum(dtype=np.int64)) for rows in pieces(work))


def pieces(work: NDArray[np.int64]) -> Iterator[slice]:
    """Yield stretches of rows whose product has about as many entries as are held at once."""
    total, start = np.cumsum(work), 0
    while start < len(work):
        before = int(total[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(total, before + _ENTRIES, side="right")))
        yield slice(start, stop)
        start = stop


def stars(degrees: Degrees, size: int) -> int:
    """Return how many stars with so many leaves there are: Σ C(d, size), exactly.

    >>> stars(np.array([3, 1, 1, 1]), 2)
    3
    """
    from math import comb

    values, times = np.unique(degrees, return_counts=True)
    return sum(comb(int(value), size) * int(number) for value, number in zip(values, times, strict=True))


def widest(graph: Graph) -> dict[int, int]:
    """Return for each number c of common neighbors the largest d_i + d_j − 2 a_ij of a pair with so many.

    Pairs without a common neighbor are represented by the largest such number of any pair: some pair with that number
    and at least as many common neighbors moves a triangle count at least as far (see `smooth`).
    """
    matrix, degrees = adjacency(graph), graph.degrees
    best = np.full(int(degrees.max(initial=0)) + 1, -1, np.int64)
    keys = graph.ends[:, 0] * graph.size + graph.ends[:, 1]
    for rows in pieces(matrix @ degrees):
        product = (matrix[rows] @ matrix).tocoo()
        first, second = product.row.astype(np.int64) + rows.start, product.col.astype(np.int64)
        later = second > first
        first, second, common = first[later], second[later], product.data[later]
        joined = held(keys, first * graph.size + second).astype(np.int64)
        np.maximum.at(best, common, degrees[first] + degrees[second] - 2 * joined)
    found = {int(c): int(best[c]) for c in np.flatnonzero(best >= 0) if c}
    return {0: largest_sum(graph), **found}


def largest_sum(graph: Graph) -> int:
    """Return the largest d_i + d_j − 2 a_ij over all pairs of nodes.

    The two largest degrees give their sum less 2 at least, so that only pairs whose sum is the largest or one less can
    do better, and they do if not connected: then their degrees are among the three largest values.
    """
    degrees = graph.degrees
    values, times = np.unique(degrees, return_counts=True)
    number = dict(zip(values.tolist(), times.tolist(), strict=True))
    top = np.sort(degrees)[-2:]
    most = int(top.sum())
    near = [int(value) for value in values[-3:]]
    first, second = degrees[graph.ends[:, 0]], degrees[graph.ends[:, 1]]
    for wanted in (most, most - 1):
        for x in near:
            y = wanted - x
            if y < x or y not in number:
                continue
            pairs = number[x] * (number[x] - 1) // 2 if x == y else number[x] * number[y]
            joined = int((((first == x) & (second == y)) | ((first == y) & (second == x))).sum())
            if joined < pairs:
                return wanted
    return most - 2
