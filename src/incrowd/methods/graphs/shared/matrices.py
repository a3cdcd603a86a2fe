"""Matrices of graphs: pairs of nodes, triangles, common neighbors, and how far one edge can move them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.graph import Degrees, Graph
from incrowd.methods.graphs.shared.compiled import kernels

if TYPE_CHECKING:
    from incrowd.core.coins import Coins


def subset(size: int, number: int, coins: Coins) -> NDArray[np.int64]:
    """Draw so many different whole numbers below a size, every set of them as likely."""
    if 2 * number > size:
        left_out = subset(size, size - number, coins)
        return np.setdiff1d(np.arange(size), left_out)
    numbers = np.zeros(0, np.int64)
    while len(numbers) < number:
        numbers = np.union1d(numbers, coins.below(size, number - len(numbers)))
    return numbers


def pairs_at(places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs (low, high) with high (high − 1)/2 + low = place.

    >>> [each.tolist() for each in pairs_at(np.arange(4))]
    [[0, 0, 1, 0], [1, 2, 2, 3]]
    """
    high = np.floor((1 + np.sqrt(8.0 * places + 1)) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > places
    high += (high + 1) * high // 2 <= places
    return places - high * (high - 1) // 2, high


def held(ordered: NDArray[np.int64], searched: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers stand among those in order."""
    if not len(ordered):
        return np.zeros(len(searched), np.bool_)
    places = np.minimum(np.searchsorted(ordered, searched), len(ordered) - 1)
    return np.asarray(ordered[places] == searched, np.bool_)


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
    degrees = graph.degrees
    rank, compiled = _rank(degrees), kernels(degrees)
    if compiled is not None:
        return int(compiled.triangles(*compiled.neighbors(graph.ends, rank, False)))
    ends = rank[graph.ends]
    upward = _matrix(ends.max(axis=1), ends.min(axis=1), graph.size)
    work = upward @ np.diff(upward.indptr).astype(np.int64)
    return sum(int((upward[rows] @ upward).multiply(upward[rows]).sum(dtype=np.int64)) for rows in pieces(work))


def _rank(degrees: Degrees) -> NDArray[np.int32]:
    """Return the place of each node among all, those of high degree first."""
    rank = np.empty(len(degrees), np.int32)
    rank[np.argsort(-degrees, kind="stable")] = np.arange(len(degrees), dtype=np.int32)
    return rank


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
    """Return for numbers c of common neighbors the largest d_i + d_j − 2 a_ij of a pair with so many, or with more.

    Left out are numbers for which a pair with more of them is as wide: it moves a triangle count at least as far.  So
    does, of pairs without a common neighbor, one with the largest such number of any pair (see `farthest`).

    >>> widest(Graph.of(4, [(0, 1), (1, 2), (0, 2), (2, 3)]))
    {0: 3, 1: 3}
    """
    degrees = graph.degrees
    best = np.full(int(degrees.max(initial=0)) + 2, -1, np.int64)
    compiled = kernels(degrees)
    if compiled is None:
        _raise(best, graph)
    else:
        compiled.widest(*compiled.neighbors(graph.ends, _rank(degrees), True), best)
    best = np.maximum.accumulate(best[::-1])[::-1]
    largest = {int(c): int(best[c]) for c in np.flatnonzero(best[1:] < best[:-1]) if c}
    return {0: largest_sum(graph), **largest}


def _raise(best: NDArray[np.int64], graph: Graph) -> None:
    """Raise `best` by products of matrices, piece by piece."""
    matrix, degrees = adjacency(graph), graph.degrees
    keys = graph.ends[:, 0] * graph.size + graph.ends[:, 1]
    for rows in pieces(matrix @ degrees):
        product = (matrix[rows] @ matrix).tocoo()
        first, second = product.row.astype(np.int64) + rows.start, product.col.astype(np.int64)
        later = second > first
        first, second, common = first[later], second[later], product.data[later]
        joined = held(keys, first * graph.size + second).astype(np.int64)
        np.maximum.at(best, common, degrees[first] + degrees[second] - 2 * joined)


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
    high = degrees >= min(near, default=0)
    first, second = degrees[graph.ends[high[graph.ends[:, 0]] & high[graph.ends[:, 1]]].T]
    for total in (most, most - 1):
        for x in near:
            y = total - x
            if y < x or y not in number:
                continue
            pairs = number[x] * (number[x] - 1) // 2 if x == y else number[x] * number[y]
            joined = int((((first == x) & (second == y)) | ((first == y) & (second == x))).sum())
            if joined < pairs:
                return total
    return most - 2


def farthest(pairs: Mapping[int, int], steps: int, size: int) -> int:
    """Return how far one edge can move the number of triangles in any graph so many edges away.

    A pair with c common neighbors and b nodes that know one of both moves it by c + ⌊(s + min(s, b))/2⌋ once s edges
    have changed, n − 2 at most.  With w = 2c + b = d_i + d_j − 2 a_ij that is min(c + s, ⌊(s + w)/2⌋, n − 2).

    Source: Nissim, Raskhodnikova & Smith 2007, Claim 3.13.
    """
    most = max(min(common + steps, (steps + wide) // 2) for common, wide in pairs.items())
    return max(0, min(most, size - 2))


def smooth_sensitivity(graph: Graph, ratio: Fraction) -> Fraction:
    """Return the largest ratio^s times how far one edge moves the triangles s edges away.

    >>> smooth_sensitivity(Graph.of(4, [(0, 1), (1, 2)]), Fraction(1, 2))
    Fraction(1, 1)
    """
    if graph.size < 3:
        return Fraction(0)
    pairs = widest(graph)
    return _smoothed(lambda steps: farthest(pairs, steps, graph.size), graph.size - 2, ratio)


def smooth_wedges(graph: Graph, ratio: Fraction) -> Fraction:
    """Return the same for pairs of edges with a common end.

    An edge between i and j moves their number by w = d_i + d_j − 2 a_ij; each changed edge moves w by 1 at most, and
    there is one that raises it unless all others know both: so s edges away it is min(w + s, 2(n − 2)), exactly.

    >>> smooth_wedges(Graph.of(4, [(0, 1), (1, 2)]), Fraction(1, 2))
    Fraction(2, 1)
    """
    if graph.size < 3:
        return Fraction(0)
    here, most = largest_sum(graph), 2 * (graph.size - 2)
    return _smoothed(lambda steps: min(here + steps, most), most, ratio)


def _smoothed(reach: Callable[[int], int], most: int, ratio: Fraction) -> Fraction:
    best, weight, steps = Fraction(0), Fraction(1), 0
    while weight * most > best:
        best = max(best, weight * reach(steps))
        weight, steps = weight * ratio, steps + 1
    return best
