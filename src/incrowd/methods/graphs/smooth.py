"""Smooth sensitivity of triangles and wedges: how far one edge can move them, here and some edges away, exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from incrowd.core.graph import Graph
from incrowd.methods.graphs.matrices import largest_sum, widest


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
