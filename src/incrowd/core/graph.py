"""Graph: nodes with what is known of each, and the pairs of them that are connected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter

Ends = NDArray[np.int64]
"""Pairs of places of nodes, the smaller place first."""
Degrees = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Graph:
    """A simple graph: no loops, each edge once, in order; nodes are known by their place in `ids`.

    `columns` holds a row for each node.

    >>> graph = Graph.of(4, [(1, 0), (1, 2), (0, 1)])
    >>> graph.ends.tolist(), graph.degrees.tolist()
    ([[0, 1], [1, 2]], [1, 2, 1, 0])
    """

    ids: pa.Array
    ends: Ends
    columns: pa.Table

    @classmethod
    def of(cls, size: int, pairs: object, columns: pa.Table | None = None) -> Graph:
        """Return a graph on nodes 0, 1, …; pairs in any order, doubles counted once."""
        ids = pa.array(np.arange(size)).cast(pa.string())
        return cls(ids, simple(np.asarray(pairs, np.int64).reshape(-1, 2), size), columns or pa.table({"id": ids}))

    def __post_init__(self) -> None:
        low, high = self.ends[:, 0], self.ends[:, 1]
        if len(self.ends) and (low.min() < 0 or high.max() >= self.size or bool(np.any(low >= high))):
            raise InvalidParameter("an edge of a simple graph joins two different nodes of it, the smaller first.")
        if bool(np.any(np.diff(low * self.size + high) <= 0)):
            raise InvalidParameter("each edge of a simple graph stands once, and in order.")

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self.ids)

    @property
    def degrees(self) -> Degrees:
        """With how many others each node is connected."""
        return np.bincount(self.ends.ravel(), minlength=self.size).astype(np.int64)

    def with_ends(self, ends: Ends) -> Graph:
        """Return the same nodes with other edges."""
        return Graph(self.ids, ends, self.columns)


def simple(pairs: Ends, size: int) -> Ends:
    """Return pairs as the edges of a simple graph: the smaller place first, in order, each once; loops are refused."""
    keys = np.sort(keys_of(pairs, size))
    keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
    return np.stack([keys // max(1, size), keys % max(1, size)], axis=1)


def keys_of(pairs: Ends, size: int) -> NDArray[np.int64]:
    """Return one number for each pair of nodes, whichever stands first."""
    return np.asarray(pairs.min(axis=1) * size + pairs.max(axis=1), np.int64)
