"""Kernels in Numba for graphs of many edges: triangles and common neighbors, with a counter for each node.

They return what `matrices` computes with products of matrices, which stay where Numba is not installed.  Nodes are
known by their rank, those of high degree first.  Most counters stay small: a table of few counters, which nodes share
and which fits the nearest cache, rules these nodes out, and exact counters are read for the others alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Places = NDArray[np.int32]
_MANY = 2**25
"""Loading Numba and compiling takes about as long as products of matrices with so many entries."""
_FEW = 2**13
"""So many counters are shared by all nodes: they stay in a near cache."""


class Kernels(NamedTuple):
    """The rows of neighbors, and what is counted in them."""

    neighbors: Callable[..., Any]
    triangles: Callable[..., Any]
    widest: Callable[..., Any]


def kernels(degrees: Integers) -> Kernels | None:
    """Return the kernels; None for few pairs of edges with a common end, or without Numba.

    >>> kernels(np.array([1, 2, 1])) is None
    True
    """
    return _compiled() if int((degrees * degrees).sum()) >= _MANY else None


@cache
def _compiled() -> Kernels | None:
    try:
        compiler = importlib.import_module("numba").njit(cache=True, nogil=True)
    except ImportError:  # a charge may stand already: the release goes on without it
        return None
    return Kernels(compiler(neighbors), compiler(triangles), compiler(widest))


def neighbors(ends: Integers, rank: Places, both: bool) -> tuple[Integers, Places]:
    """Return where the row of each node starts, and the rows: of neighbors of lower number, or of all."""
    starts = np.zeros(len(rank) + 1, np.int64)
    for edge in range(len(ends)):
        first, second = rank[ends[edge, 0]], rank[ends[edge, 1]]
        starts[max(first, second) + 1] += 1
        if both:
            starts[min(first, second) + 1] += 1
    starts = np.cumsum(starts)
    rows, filled = np.empty(starts[-1], np.int32), starts.copy()
    for edge in range(len(ends)):
        first, second = rank[ends[edge, 0]], rank[ends[edge, 1]]
        low, high = min(first, second), max(first, second)
        rows[filled[high]] = low
        filled[high] += 1
        if both:
            rows[filled[low]] = high
            filled[low] += 1
    return starts, rows


def triangles(starts: Integers, rows: Places) -> int:
    """Return the number of triangles, where the row of each node holds its neighbors of lower number."""
    total = 0
    mark, near = np.full(len(starts) - 1, -1, np.int64), np.zeros(_FEW, np.bool_)
    for node in range(len(starts) - 1):
        for place in range(starts[node], starts[node + 1]):
            between = rows[place]
            mark[between] = node
            near[between & (_FEW - 1)] = True
            total += rows[starts[between]] < 0  # never so: all rows are fetched at once, of which each would be awaited
        for place in range(starts[node], starts[node + 1]):
            between = rows[place]
            for further in range(starts[between], starts[between + 1]):
                if near[rows[further] & (_FEW - 1)] and mark[rows[further]] == node:
                    total += 1
        for place in range(starts[node], starts[node + 1]):
            near[rows[place] & (_FEW - 1)] = False
    return total


def widest(starts: Integers, rows: Places, best: Integers) -> None:
    """Raise `best`, for each number of common neighbors, to the largest d_i + d_j − 2 a_ij of a pair with so many.

    The row of each node holds all its neighbors, and no node has more than those before it.  A node is met with those
    before it: a pair of c common neighbors is passed over where pairs with so many are at least as wide as it may be.
    """
    lower, filled = np.zeros(len(rows), np.int32), starts[:-1].copy()  # of each row, the nodes that were met before
    common, shared = np.zeros(len(starts) - 1, np.int64), np.zeros(_FEW, np.int64)
    mark = np.full(len(starts) - 1, -1, np.int64)
    before, floor, least = 0, 0, 1  # what counters may have from nodes before is their zero
    for node in range(len(starts) - 1):
        degree = starts[node + 1] - starts[node]
        while least <= degree and best[least] >= degree + starts[1]:
            least += 1
        if least > degree:  # and so it is for all nodes behind it
            return
        work = 0
        for place in range(starts[node], starts[node + 1]):
            between = rows[place]
            work += filled[between] - starts[between] + (lower[starts[between]] < 0)  # never so, as above
            lower[filled[between]] = node
            filled[between] += 1
        enough = work >= _FEW
        if not enough:
            for place in range(starts[node], starts[node + 1]):
                between = rows[place]
                for further in range(starts[between], filled[between] - 1):
                    at = lower[further] & (_FEW - 1)
                    shared[at] = max(shared[at], floor) + 1
                    enough |= shared[at] >= floor + least
            floor += work
        if enough:
            mark[rows[starts[node] : starts[node + 1]]] = node
            for place in range(starts[node], starts[node + 1]):
                between = rows[place]
                for further in range(starts[between], filled[between] - 1):
                    other = lower[further]
                    common[other] = max(common[other], before) + 1
                    count = common[other] - before
                    if count >= least:
                        wide = degree + starts[other + 1] - starts[other] - 2 * (mark[other] == node)
                        while count and best[count] < wide:
                            best[count] = wide
                            count -= 1
            before += degree
