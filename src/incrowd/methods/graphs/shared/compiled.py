"""Kernels in Numba for graphs of many edges: triangles and common neighbors, with a counter for each node.

They return what `matrices` computes with products of matrices, which stay where Numba is not installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Places = NDArray[np.int32]
_MANY = 2**25
"""Loading Numba and compiling takes about as long as products of matrices with so many entries."""


def kernels(work: int) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """Return the kernels for triangles and for common neighbors; None for little work, or without Numba.

    >>> kernels(10) is None
    True
    """
    return _compiled() if work >= _MANY else None


@cache
def _compiled() -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    try:
        compiler = importlib.import_module("numba").njit(cache=True, nogil=True)
    except ImportError:  # a charge may stand already: the release goes on without it
        return None
    return compiler(triangles), compiler(widest)


def triangles(starts: Places, ends: Places) -> int:
    """Return the number of triangles: nodes, of which each points to its neighbors of higher rank."""
    size, total = len(starts) - 1, 0
    mark = np.full(size, -1, np.int64)
    for node in range(size):
        for place in range(starts[node], starts[node + 1]):
            mark[ends[place]] = node
        for place in range(starts[node], starts[node + 1]):
            between = ends[place]
            for further in range(starts[between], starts[between + 1]):
                if mark[ends[further]] == node:
                    total += 1
    return total


def widest(starts: Places, ends: Places, degrees: Integers, best: Integers) -> None:
    """Raise `best`, for each number of common neighbors, to the largest d_i + d_j − 2 a_ij of a pair with so many."""
    size = len(starts) - 1
    common = np.zeros(size, np.int64)
    met = np.empty(size, np.int64)
    mark = np.full(size, -1, np.int64)
    for node in range(size):
        number = 0
        for place in range(starts[node], starts[node + 1]):
            between = ends[place]
            mark[between] = node
            for further in range(starts[between], starts[between + 1]):
                other = ends[further]
                if other > node:
                    if common[other] == 0:
                        met[number] = other
                        number += 1
                    common[other] += 1
        for place in range(number):
            other = met[place]
            wide = degrees[node] + degrees[other]
            if mark[other] == node:
                wide -= 2
            best[common[other]] = max(best[common[other]], wide)
            common[other] = 0
