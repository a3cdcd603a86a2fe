"""Frame: the cells of a table with totals, each the sum of finest ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, kron

from incrowd.errors import InvalidParameter
from incrowd.methods.tabulation.axis import TableAxis

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

    def odd_sum(self, cells: Whole, known: Flags) -> tuple[int, ...] | None:
        """Return a cell that is known, as all cells right under it are, and is not their sum; None if there is none.

        >>> sex = TableFrame((TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)),))
        >>> sex.odd_sum(np.array([5, 2, 2]), np.ones(3, bool)), sex.odd_sum(np.array([4, 2, 2]), np.ones(3, bool))
        ((0,), None)
        """
        for number, axis in enumerate(self.axes):
            for node, under in enumerate(axis.children):
                if under:
                    there = np.take(known, node, number) & np.take(known, under, number).all(number)
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


def _membership(axis: TableAxis) -> NDArray[np.int8]:
    leaf = np.arange(len(axis.leaves))
    low, high = axis.ranges.T[:, :, None]
    return np.asarray((leaf >= low) & (leaf < high), np.int8)
