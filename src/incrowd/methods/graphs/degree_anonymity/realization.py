"""Realization: a graph gets given degrees by new edges, and where these cannot be by a swap; it is verified."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.graph import Degrees, Ends, Graph, arc_keys, ends_of, keys_of
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.degree_anonymity.sequence import MOST_NODES, fewest, graphical, targets
from incrowd.methods.graphs.shared.matrices import adjacency


def anonymized(graph: Graph, classes: NDArray[np.int64], k: int) -> Ends:
    """Return the edges of a graph in which each degree is shared by k nodes of the same class, each of k nodes or more.

    The cheapest degrees are raised, by new edges; where these cannot be had, small degrees are raised to 1, 2, 4, …
    first, until they can: at the latest where all nodes are connected, so that there is always an answer.  No edge is
    removed but in a swap, which needs one.  Small graphs then get the fewest changes that can be.
    """
    ends = by_additions(graph, classes, k)
    if graph.size > MOST_NODES:
        return ends
    changed = len(np.setxor1d(keys_of(ends, graph.size), keys_of(graph.ends, graph.size)))
    alternative = fewest(graph, classes, k, changed) if changed else None
    if alternative is None or not _crowded(graph.with_ends(alternative), classes, k):
        return ends
    return alternative


def by_additions(graph: Graph, classes: NDArray[np.int64], k: int) -> Ends:
    """Return the same by raising degrees alone, however large the graph is."""
    degrees = graph.degrees
    for least in (0, *(2**power for power in range(graph.size.bit_length())), graph.size - 1):
        target = targets(np.maximum(degrees, least), classes, k)
        if target is None or not graphical(target):
            continue
        ends = realized(graph, target)
        if ends is not None:
            return ends
    raise InvalidParameter(f"some class has fewer than {k} nodes.")


def _crowded(graph: Graph, classes: NDArray[np.int64], k: int) -> bool:
    """Whether each degree is shared by k nodes of the same class."""
    return int(np.unique(np.stack([classes, graph.degrees]), axis=1, return_counts=True)[1].min()) >= k


def realized(graph: Graph, target: Degrees) -> Ends | None:
    """Return edges that give every node the wanted degree, no smaller than its own; None if no swap helps."""
    left = target - graph.degrees
    work = _Edits(graph, left > 0)
    stuck: list[int] = []
    open_ = np.flatnonzero(left)
    while len(open_):
        node = int(open_[left[open_].argmax()])
        need, left[node] = int(left[node]), 0
        open_ = open_[left[open_] > 0]
        free = open_[~np.isin(open_, work.neighbors(node))]
        chosen = free[np.argsort(-left[free], kind="stable")[:need]]
        for other in chosen.tolist():
            work.add(node, other)
        left[chosen] -= 1
        stuck += [node] * (need - len(chosen))
        open_ = open_[left[open_] > 0]
    for first, second in zip(stuck[::2], stuck[1::2], strict=True):
        if not work.swap(first, second):
            return None
    ends = work.ends()
    same = np.array_equal(np.bincount(ends.ravel(), minlength=graph.size), target)
    return ends if same else None


class _Edits:
    """A graph with edges added and removed, which come and go at some nodes; the original stays as it is."""

    def __init__(self, graph: Graph, some: NDArray[np.bool_]) -> None:
        near = some[graph.ends[:, 0]] | some[graph.ends[:, 1]]
        self._graph, self._matrix = graph, adjacency(graph.with_ends(graph.ends[near]))
        self._alive = np.ones(len(graph.ends), np.bool_)
        self._added: list[tuple[int, int]] = []
        self._beside: dict[int, set[int]] = {}
        self._without: dict[int, set[int]] = {}

    def neighbors(self, node: int) -> NDArray[np.int64]:
        """Return the neighbors of one of these nodes."""
        start, stop = self._matrix.indptr[node], self._matrix.indptr[node + 1]
        own = set(self._matrix.indices[start:stop].tolist()) - self._without.get(node, set())
        return np.array(sorted(own | self._beside.get(node, set())), np.int64)

    def add(self, one: int, other: int) -> None:
        self._added.append((one, other))
        for node, beside in ((one, other), (other, one)):
            self._beside.setdefault(node, set()).add(beside)

    def swap(self, first: int, second: int) -> bool:
        """Take an edge (x, y) away and join x with the first node and y with the second."""
        far = []
        for node in (first, second):
            mask = np.ones(self._graph.size, np.bool_)
            mask[self.neighbors(node)] = False
            mask[node] = False
            far.append(mask)
        low, high = self._graph.ends[:, 0], self._graph.ends[:, 1]
        apart = ~np.isin(low, (first, second)) & ~np.isin(high, (first, second))
        for x, y in ((low, high), (high, low)):
            fits = np.flatnonzero(self._alive & apart & far[0][x] & far[1][y])
            if len(fits):
                edge = int(fits[0])
                self._remove(edge)
                self.add(first, int(x[edge]))
                self.add(second, int(y[edge]))
                return True
        return False

    def _remove(self, edge: int) -> None:
        self._alive[edge] = False
        one, other = self._graph.ends[edge].tolist()
        for node, beside in ((one, other), (other, one)):
            self._without.setdefault(node, set()).add(beside)

    def ends(self) -> Ends:
        size, added = self._graph.size, np.array(self._added, np.int64).reshape(-1, 2)
        keys = arc_keys(self._graph.ends, size)  # the smaller number stands first
        return ends_of(np.concatenate([keys if self._alive.all() else keys[self._alive], keys_of(added, size)]), size)
