"""Items: the hierarchy of a set-valued column as numbered nodes, from the items up to `*`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Codes
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column
from incrowd.errors import InvalidParameter

GONE = -1
"""The node of an item that is left out everywhere."""


@dataclass(frozen=True, eq=False)
class ItemTree:
    """For each level the node of each item, and for each node its label; nodes of all levels have different numbers.

    >>> from incrowd.core.hierarchy.tree import tree
    >>> ill = Column("ill", hierarchy=tree({"lungs": ["flu", "cough"], "heart": ["attack"]}), separator=";")
    >>> items = ItemTree.of(ill)
    >>> [nodes.tolist() for nodes in items.nodes], [items.labels[node] for node in items.nodes[1]]
    ([[0, 1, 2, 3], [4, 4, 5, 6], [7, 7, 7, 7]], ['lungs', 'lungs', 'heart', 'other'])
    """

    nodes: tuple[Codes, ...]
    labels: tuple[str, ...]
    levels: Codes
    """The level of each node."""

    @classmethod
    def of(cls, column: Column) -> ItemTree:
        """Read the hierarchy of the column's items; what is outside the domain is an item of its own."""
        lowest = Recoding(column.item, 0).classes
        if lowest is None:
            raise InvalidParameter(f"the items of {column.name!r} cannot be listed: declare them.")
        nodes, labels, levels = [], list[str](), list[int]()
        for level in range(column.hierarchy.height + 1):
            classes, table = lowest.rise(level)
            nodes.append((table[: lowest.missing] + len(labels)).astype(np.int32))
            labels += [str(label) for label in classes.labels().drop_null().to_pylist()]
            levels += [level] * (len(labels) - len(levels))
        return cls(tuple(nodes), tuple(labels), np.array(levels, np.int32))

    def __len__(self) -> int:
        """How many items there are."""
        return len(self.nodes[0])

    @property
    def root(self) -> int:
        """The node of everything."""
        return int(self.nodes[-1][0])

    def below(self, node: int) -> NDArray[np.intp]:
        """Return the items under a node."""
        return np.flatnonzero(self.nodes[self.levels[node]] == node)

    @cached_property
    def loss(self) -> NDArray[np.float64]:
        """What it costs to show an item as each node: the share of all items under it, and nothing for one alone.

        Source: Xu, Wang, Pei, Wang, Shi & Fu 2006, the normalized certainty penalty; Terrovitis, Mamoulis & Kalnis 2008
        take it over to items.
        """
        under = np.zeros(len(self.labels))
        for nodes in self.nodes:
            found, times = np.unique(nodes, return_counts=True)
            under[found] = times
        return np.where(under > 1, under / len(self), 0.0)
