"""Frame: the cells of a table with totals, each the sum of finest ones; its sides list every label up to the total."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, kron

from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.recoding import Recoding


Places = NDArray[np.intp]

MOST_NODES = 10_000
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
        twice = [label for label, number in Counter(self.labels).items() if number > 1]
        if twice:
            raise InvalidParameter(
                f"the label {twice[0]!r} of {self.column!r} stands for two different lines of the table: give one of "
                "them another name."
            )

    def __len__(self) -> int:
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
        ranges = np.zeros((len(self), 2), np.intp)
        ranges[:, 0] = np.searchsorted(self.leaves, np.arange(len(self)))
        ranges[self.leaves, 1] = np.arange(len(self.leaves)) + 1
        for node in range(len(self) - 1, 0, -1):
            parent = self.parents[node]
            ranges[parent, 1] = max(ranges[parent, 1], ranges[node, 1])
        return ranges

    @cached_property
    def ends(self) -> Places:
        """For each line the one after the last that lies under it."""
        ends = np.arange(1, len(self) + 1)
        for node in range(len(self) - 1, 0, -1):
            ends[self.parents[node]] = max(ends[self.parents[node]], ends[node])
        return ends

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """For each leaf the lines that cover it, from itself up to the total."""
        paths = []
        for leaf in self.leaves.tolist():
            path = [leaf]
            while path[-1]:
                path.append(self.parents[path[-1]])
            paths.append(tuple(path))
        return tuple(paths)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each line those right under it."""
        children: list[list[int]] = [[] for _ in self.labels]
        for node, parent in enumerate(self.parents[1:], 1):
            children[parent].append(node)
        return tuple(map(tuple, children))

    @property
    def flat(self) -> bool:
        """Whether there is nothing between the leaves and the total."""
        return not any(self.parents[1:])

    def place(self, label: str | None) -> int:
        """Return the line of a label, or refuse one that the column does not have."""
        line = self._lines.get(label)
        if line is None:
            raise InvalidParameter(f"a label is none of {self.column!r} and its hierarchy at this level.")
        return line

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


Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_CELLS = 2**20
"""The most cells that a table can have, its totals among them."""


@dataclass(frozen=True)
class TableFrame:
    """The cross of one to three axes; a cell is one line of each.

    >>> sex, area = TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)), TableAxis("area", ("*", "N", "S"), (-1, 0, 0))
    >>> TableFrame((sex, area)).totals(np.array([[20, 50], [8, 19]])).tolist()
    [[97, 28, 69], [70, 20, 50], [27, 8, 19]]
    """

    axes: tuple[TableAxis, ...]

    def __post_init__(self) -> None:
        if self.size > MOST_CELLS:
            raise InvalidParameter(
                f"the table has {self.size:,} cells with its totals, and {MOST_CELLS:,} are the most: choose higher "
                "levels or fewer columns."
            )

    @property
    def columns(self) -> str:
        """The names of its columns, for people."""
        return " × ".join(axis.column for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many lines each axis has."""
        return tuple(map(len, self.axes))

    @property
    def leaf_shape(self) -> tuple[int, ...]:
        """How many finest lines each axis has."""
        return tuple(len(axis.leaves) for axis in self.axes)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return math.prod(self.shape)

    @property
    def network(self) -> bool:
        """Whether every system of totals here has whole solutions: one or two axes, of which one may be nested."""
        return len(self.axes) == 1 or (len(self.axes) == 2 and any(axis.flat for axis in self.axes))

    @cached_property
    def leaves(self) -> NDArray[np.intp]:
        """The finest cells, by their number."""
        grid = np.ix_(*(axis.leaves for axis in self.axes))
        return np.ravel_multi_index(grid, self.shape).ravel()

    @cached_property
    def matrix(self) -> csr_array:
        """One row for each cell: which finest cells it is the sum of."""
        sides = [csr_array(_membership(axis)) for axis in self.axes]
        return csr_array(reduce(lambda left, right: kron(left, right, "csr"), sides))

    def totals(self, leaves: NDArray[Any]) -> NDArray[Any]:
        """Return all cells from the finest ones."""
        cells = leaves
        for number, axis in enumerate(self.axes):
            start = np.zeros_like(np.take(cells, [0], number))
            running = np.concatenate([start, np.cumsum(cells, number)], number)
            low, high = axis.ranges.T
            cells = np.take(running, high, number) - np.take(running, low, number)
        return cells

    def finest(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Return the finest cells of all."""
        return cells[np.ix_(*(axis.leaves for axis in self.axes))]

    def within(self, cells: Places) -> Places:
        """Return these cells and all that are part of them.

        >>> sex, area = TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)), TableAxis("area", ("*", "N", "S"), (-1, 0, 0))
        >>> TableFrame((sex, area)).within(np.array([3, 8])).tolist()
        [3, 4, 5, 8]
        """
        places = zip(*(part.tolist() for part in np.unravel_index(cells, self.shape)), strict=True)
        spans = (
            [range(node, int(axis.ends[node])) for axis, node in zip(self.axes, nodes, strict=True)] for nodes in places
        )
        parts = [np.ravel_multi_index(np.ix_(*span), self.shape).ravel() for span in spans]
        return np.unique(np.concatenate([np.zeros(0, np.intp), *parts]))

    def odd_sum(self, cells: Whole, visible: Flags) -> tuple[int, ...] | None:
        """Return a cell that is known, as all cells right under it are, and is not their sum; None if there is none.

        >>> sex = TableFrame((TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)),))
        >>> sex.odd_sum(np.array([5, 2, 2]), np.ones(3, bool)), sex.odd_sum(np.array([4, 2, 2]), np.ones(3, bool))
        ((0,), None)
        """
        for number, axis in enumerate(self.axes):
            for node, under in enumerate(axis.children):
                if under:
                    there = np.take(visible, node, number) & np.take(visible, under, number).all(number)
                    differs = np.take(cells, under, number).sum(number) != np.take(cells, node, number)
                    wrong = np.argwhere(there & differs)
                    if len(wrong):
                        return tuple(np.insert(wrong[0], number, node).tolist())
        return None

    def place(self, cell: int | Sequence[int]) -> str:
        """Return the labels of a cell, for messages."""
        where = list(map(int, np.unravel_index(cell, self.shape))) if isinstance(cell, int) else list(cell)
        labels = (axis.labels[node] for axis, node in zip(self.axes, where, strict=True))
        return ", ".join(
            f"{axis.column} = {'missing' if label is None else label}"
            for axis, label in zip(self.axes, labels, strict=True)
        )


def union(frames: Sequence[TableFrame]) -> tuple[TableFrame, tuple[Places, ...]]:
    """Return the cross of all columns of some tables, and for each cell of each table which cell of the cross it is.

    A cell that two tables share is one cell there.  Each column has the finest of its axes; the others must be made of
    whole lines of it.

    >>> sex, area = TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)), TableAxis("area", ("*", "N", "S"), (-1, 0, 0))
    >>> _, cells = union((TableFrame((sex,)), TableFrame((area, sex))))
    >>> [part.tolist() for part in cells]
    [[0, 3, 6], [0, 3, 6, 1, 4, 7, 2, 5, 8]]
    """
    finest: dict[str, TableAxis] = {}
    for axis in (axis for frame in frames for axis in frame.axes):
        if len(axis) > len(finest.get(axis.column, ())):
            finest[axis.column] = axis
    cross = TableFrame(tuple(finest.values()))
    return cross, tuple(cells_within(cross, frame) for frame in frames)


def cells_within(cross: TableFrame, frame: TableFrame) -> Places:
    """Return for each cell of a table which cell of a cross of more or finer lines it is, or refuse other lines."""
    lines = {axis.column: axis for axis in cross.axes}
    places = [_lines_within(lines[axis.column], axis) for axis in frame.axes]
    grid = dict(zip((axis.column for axis in frame.axes), np.ix_(*places), strict=True))
    nodes = np.broadcast_arrays(*(grid.get(name, np.zeros(1, np.intp)) for name in lines))
    return np.broadcast_to(np.ravel_multi_index(nodes, cross.shape), frame.shape).ravel()


def _lines_within(fine: TableAxis, axis: TableAxis) -> Places:
    """Return which line of a finer axis each line of an axis is; what is under a line must make it up in both."""
    lines = np.array([fine.place(label) for label in axis.labels], np.intp)
    ranges = fine.ranges[lines].tolist()
    for node, under in enumerate(axis.children):
        ends = [end for span in sorted(ranges[child] for child in under) for end in span]
        if under and (ends[:: len(ends) - 1] != ranges[node] or ends[1:-1:2] != ends[2::2]):
            raise InvalidParameter(f"the lines of {axis.column!r} in two tables are not of one hierarchy.")
    return lines


def _membership(axis: TableAxis) -> NDArray[np.int8]:
    leaf = np.arange(len(axis.leaves))
    low, high = axis.ranges.T[:, :, None]
    return np.asarray((leaf >= low) & (leaf < high), np.int8)
