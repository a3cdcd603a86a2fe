"""Flips: every pair of nodes tells the truth or the contrary, by a coin; and what can be estimated from the answers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, sqrt
from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.graph import Ends, Graph
from incrowd.methods.graphs.matrices import stars, triangles
from incrowd.noise.chance import exp_enclosure

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

_PARTS = 10**12
MOST_NODES = 20_000
"""More nodes have more pairs than can be answered one by one."""
_PAIRS = 2**22


@lru_cache(maxsize=64)
def flip_of(epsilon: Fraction) -> Fraction:
    """Return the least chance of a flip, in parts of 10^12, at which an answer costs at most ε: p ≥ 1/(1 + e^ε).

    >>> flip_of(Fraction(1)) * 10**12
    Fraction(268941421370, 1)
    """
    high = exp_enclosure(epsilon, 40)[1]
    bound = high / (1 + high)
    return Fraction(-(-bound.numerator * _PARTS // bound.denominator), _PARTS)


def flipped(graph: Graph, flip: Fraction, coins: Coins) -> Ends:
    """Return the pairs that are said to be connected, each pair by a coin of its own."""
    size = graph.size
    starts = np.append(0, np.cumsum(np.arange(size - 1, -1, -1)))
    edges = starts[graph.ends[:, 0]] + graph.ends[:, 1] - graph.ends[:, 0] - 1
    found = []
    for begin in range(0, size * (size - 1) // 2, _PAIRS):
        end = min(begin + _PAIRS, size * (size - 1) // 2)
        said = coins.bernoulli(flip, end - begin)
        said[edges[(edges >= begin) & (edges < end)] - begin] ^= True
        found.append(np.flatnonzero(said) + begin)
    places = np.concatenate(found) if found else np.zeros(0, np.int64)
    first = np.searchsorted(starts, places, side="right") - 1
    return np.stack([first, places - starts[first] + first + 1], axis=1).astype(np.int64)


@dataclass(frozen=True)
class EdgeEstimates:
    """What the answers say of the true graph, without bias: edges and triangles; and how far the first strays."""

    edges: float
    triangles: float
    deviation: float


def estimates(said: Graph, flip: Fraction) -> EdgeEstimates:
    """Return the unbiased estimates: each answer y counts (y − p)/(1 − 2p), a triangle the product of its three.

    Σ over triples of (y1 − p)(y2 − p)(y3 − p) = T − p W + p² m (n − 2) − p³ C(n, 3), with the triangles T, the pairs W
    of edges with a common end, and the edges m of the answers.
    """
    size, m, p = said.size, len(said.ends), flip
    whole = triangles(said) - p * stars(said.degrees, 2) + p**2 * m * (size - 2) - p**3 * comb(size, 3)
    return EdgeEstimates(
        float((m - p * comb(size, 2)) / (1 - 2 * p)),
        float(whole / (1 - 2 * p) ** 3),
        sqrt(comb(size, 2) * deviation_of_a_pair(p) ** 2),
    )


def deviation_of_a_pair(flip: Fraction) -> float:
    """Return the standard deviation of one answer's count, √(p(1 − p))/(1 − 2p)."""
    return sqrt(float(flip * (1 - flip))) / float(1 - 2 * flip)
