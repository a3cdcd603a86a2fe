"""Axis: one side of a table with totals: every label of a hierarchy from its finest level up to the total."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incrowd.core.recoding import Recoding

Places = NDArray[np.intp]

MOST_NODES = 5000
"""The most lines that a side of a table can have."""


@dataclass(frozen=True)
class TableAxis:
    """The labels of one column with the place of the label above each: a parent comes before what lies under it.

    Whatever lies under a label follows it at once, so that every label covers a range of the finest ones.

    >>> place = TableAxis("place", ("*", "North", "a", "b", "South"), (-1, 0, 1, 1, 0))
    >>> place.leaves.tolist(), place.ranges.tolist()
    ([2, 3, 4], [[0, 3], [0, 2], [0, 1], [1, 2], [2, 3]])
    """

    column: str
    labels: tuple[str | None, ...]
    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.parents) or self.parents[:1] != (-1,):
            raise InvalidParameter(f"the labels of {self.column!r} do not start with one total.")
        if len(self.labels) > MOST_NODES:
            raise InvalidParameter(
                f"{self.column!r} has {len(self.labels):,} lines with its totals, and {MOST_NODES:,} are the most: "
                "choose a higher level."
            )
        path = [0]
        for node, parent in enumerate(self.parents[1:], 1):
            while path and path[-1] != parent:
                path.pop()
            if not path:
                raise InvalidParameter(f"the labels of {self.column!r} are not nested: each lies under one other.")
            path.append(node)
        twice = [label for label in set(self.labels) if self.labels.count(label) > 1]
        if twice:
            raise InvalidParameter(
                f"the label {twice[0]!r} of {self.column!r} stands for two different lines of the table: give one of "
                "them another name."
            )

    def __len__(self) -> int:
        """How many lines there are."""
        return len(self.labels)

    @classmethod
    def of(cls, recoding: Recoding, total: str) -> tuple[TableAxis, Places]:
        """Return the axis of a column from a level up, and for each code at that level its place among the leaves.

        >>> from incrowd.core.hierarchy.tree import tree
        >>> from incrowd.core.recoding import Recoding
        >>> from incrowd.core.schema import Column, Missing, Outside
        >>> where = tree({"North": ["a", "b"], "South": ["c"]})
        >>> place = Column("place", hierarchy=where, missing=Missing.DROP, outside=Outside.DROP)
        >>> TableAxis.of(Recoding(place, 0), "*")[0].labels
        ('*', 'North', 'a', 'b', 'South', 'c')
        """
        lowest = recoding.classes
        if lowest is None:
            raise InvalidParameter(
                f"the lines of {recoding.column.name!r} at level {recoding.level} cannot be listed from the "
                "declaration: declare categories or bounds, or use a higher level."
            )
        names: list[list[str | None]] = [lowest.open_labels().to_pylist()]
        chains = [np.arange(len(lowest))]
        for level in range(recoding.level + 1, recoding.column.hierarchy.height):
            classes, table = lowest.rise(level)
            names.append(classes.labels().to_pylist())
            chains.append(table.astype(np.intp))
        return _Grower(names, chains, [total], [-1]).axis(recoding.column.name)

    @cached_property
    def leaves(self) -> Places:
        """The finest lines, in order."""
        inner = set(self.parents)
        return np.array([node for node in range(len(self)) if node not in inner], np.intp)

    @cached_property
    def ranges(self) -> Places:
        """For each line the first leaf that it covers, and the one after the last."""
        found = np.zeros((len(self), 2), np.intp)
        found[:, 0] = np.searchsorted(self.leaves, np.arange(len(self)))
        found[self.leaves, 1] = np.arange(len(self.leaves)) + 1
        for node in range(len(self) - 1, 0, -1):
            parent = self.parents[node]
            found[parent, 1] = max(found[parent, 1], found[node, 1])
        return found

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """For each leaf the lines that cover it, from itself up to the total."""
        found = []
        for leaf in self.leaves.tolist():
            path = [leaf]
            while path[-1]:
                path.append(self.parents[path[-1]])
            found.append(tuple(path))
        return tuple(found)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each line those right under it."""
        found: list[list[int]] = [[] for _ in self.labels]
        for node, parent in enumerate(self.parents[1:], 1):
            found[parent].append(node)
        return tuple(map(tuple, found))

    @property
    def flat(self) -> bool:
        """Whether there is nothing between the leaves and the total."""
        return not any(self.parents[1:])

    def place(self, label: str | None) -> int:
        """Return the line of a label, or refuse one that the column does not have."""
        found = self._lines.get(label)
        if found is None:
            raise InvalidParameter(f"a label is none of {self.column!r} and its hierarchy at this level.")
        return found

    @cached_property
    def _lines(self) -> dict[str | None, int]:
        return {label: node for node, label in enumerate(self.labels)}


@dataclass(frozen=True, eq=False)
class _Grower:
    """Labels and chains of codes from the finest level up, and the lines so far."""

    names: Sequence[Sequence[str | None]]
    chains: Sequence[Places]
    labels: list[str | None]
    parents: list[int]

    def axis(self, column: str) -> tuple[TableAxis, Places]:
        order: list[int] = []
        self._grow(np.arange(len(self.chains[0])), len(self.chains) - 1, 0, order)
        places = np.empty(len(order), np.intp)
        places[order] = np.arange(len(order))
        return TableAxis(column, tuple(self.labels), tuple(self.parents)), places

    def _grow(self, members: Places, depth: int, parent: int, order: list[int]) -> None:
        codes = self.chains[depth][members]
        for code in dict.fromkeys(codes.tolist()):
            part, label, node = members[codes == code], self.names[depth][code], parent
            if not parent or len(part) < len(members) or label != self.labels[parent]:
                node = len(self.labels)
                self.labels.append(label)
                self.parents.append(parent)
            if depth:
                self._grow(part, depth - 1, node, order)
            else:
                order.append(int(part[0]))
