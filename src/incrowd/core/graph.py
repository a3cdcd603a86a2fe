"""Graph: nodes with their columns, and the edges between them; with what a policy declares of edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.schema import Schema
from incrowd.core.unit import Kind
from incrowd.errors import InvalidParameter

Ends = NDArray[np.int64]
"""Pairs of places of nodes, the smaller place first."""
Degrees = NDArray[np.int64]
Keys = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Graph:
    """A simple graph: no loops, each edge once, in order; nodes are known by their place in `ids`.

    `columns` holds a row for each node.  `layers`, where kinds and directions are distinguished, holds the edges of
    each kind; an edge with a direction goes from its first node to its second.

    >>> graph = Graph.of(4, [(1, 0), (1, 2), (0, 1)])
    >>> graph.ends.tolist(), graph.degrees.tolist()
    ([[0, 1], [1, 2]], [1, 2, 1, 0])
    """

    ids: pa.Array
    ends: Ends
    columns: pa.Table
    layers: tuple[Ends, ...] = ()

    @classmethod
    def of(cls, size: int, pairs: object, columns: pa.Table | None = None) -> Graph:
        """Return a graph on nodes 0, 1, …; pairs in any order, doubles counted once."""
        ids = pa.array(np.arange(size)).cast(pa.string())
        return cls(ids, simple(np.asarray(pairs, np.int64).reshape(-1, 2), size), columns or pa.table({"id": ids}))

    def __post_init__(self) -> None:
        low, high = self.ends[:, 0], self.ends[:, 1]
        if len(self.ends) and (low.min() < 0 or high.max() >= self.size or bool(np.any(low >= high))):
            raise InvalidParameter("an edge of a simple graph joins two different nodes of it, the smaller first.")
        keys = low * self.size
        keys += high
        if bool(np.any(keys[1:] <= keys[:-1])):
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


def simple(pairs: NDArray[np.int32] | Ends, size: int) -> Ends:
    """Return pairs as the edges of a simple graph: the smaller place first, in order, each once; loops are refused."""
    return ends_of(keys_of(pairs, size), size)


def arcs(pairs: NDArray[np.int32] | Ends, size: int) -> Ends:
    """Return pairs as edges with a direction: in order, each once.

    >>> arcs(np.array([[1, 0], [0, 1], [1, 0]]), 2).tolist()
    [[0, 1], [1, 0]]
    """
    return ends_of(arc_keys(pairs, size), size)


def keys_of(pairs: NDArray[np.int32] | Ends, size: int) -> Keys:
    """Return one number for each pair of nodes, whichever stands first."""
    low = np.minimum(pairs[:, 0], pairs[:, 1]).astype(np.int64, copy=False)
    return _joined(low, np.maximum(pairs[:, 0], pairs[:, 1]), size)


def arc_keys(pairs: NDArray[np.int32] | Ends, size: int) -> Keys:
    """Return one number for each pair of nodes, another one if they change places."""
    return _joined(pairs[:, 0].astype(np.int64), pairs[:, 1], size)


def _joined(keys: Keys, second: NDArray[np.int32] | Keys, size: int) -> Keys:
    keys *= size
    keys += second
    return keys


def ends_of(keys: Keys, size: int) -> Ends:
    """Return the pairs of numbers, in order and each once; the numbers themselves are put in order."""
    keys.sort()
    again = keys[1:] == keys[:-1]
    if again.any():
        keys = keys[np.append(True, ~again)]
    pairs = np.empty((len(keys), 2), np.int64)
    np.divmod(keys, max(1, size), out=(pairs[:, 0], pairs[:, 1]))
    return pairs


@dataclass(frozen=True)
class Relations:
    """The declared kinds of edges, none if they are not distinguished, and whether edges have directions.

    >>> Relations(("friend", "boss"), directed=True).slots(Kind.EDGE)
    4
    """

    kinds: tuple[str, ...] = ()
    directed: bool = False

    def slots(self, unit: Kind) -> int:
        """Return how many edges of the declared kinds one unit has at most: all those of a pair, or one."""
        return 1 if unit is Kind.RELATION else max(1, len(self.kinds)) * (2 if self.directed else 1)


@dataclass(frozen=True)
class GraphSchema(Schema):
    """The columns of nodes, the unit of privacy, and what is declared of edges."""

    relations: Relations = Relations()
