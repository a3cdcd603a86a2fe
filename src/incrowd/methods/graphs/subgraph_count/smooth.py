"""Smooth sensitivity of triangles: how far one edge can move their number, here and some edges away, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from incrowd.core.graph import Graph
from incrowd.methods.graphs.matrices import widest


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
    pairs, best, weight = widest(graph), Fraction(0), Fraction(1)
    steps = 0
    while weight * (graph.size - 2) > best:
        best = max(best, weight * farthest(pairs, steps, graph.size))
        weight, steps = weight * ratio, steps + 1
    return best
