"""Boxes: amounts moved around boxes of finest cells, which change no sum but those that separate the corners.

An amount that is added at one corner of a box of finest cells and taken away at the next, all around, leaves every sum
as it is except those that separate the corners.  If all that change are suppressed, the moved table agrees with all
that is published: a cell at a corner is open that far up, and by the opposite move that far down.  A box may be open
along an axis; then the sums along that axis, up to the total, change too.  Among boxes whose sides are cheap the one is
taken that costs least.

Source: the hypercube method, Giessing & Repsilber 2002, here on hierarchies, with exact amounts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.tabulation.protected.frame import TableAxis, TableFrame, Whole

Costs = NDArray[np.float64]
Places = NDArray[np.intp]

NEVER = 1e15
"""The cost of a cell that is always published."""

_BASES = 3
_SIDES = {1: 4096, 2: 64, 3: 18, 4: 7, 5: 5}


@dataclass(frozen=True)
class ProtectionDemand:
    """A cell by its number, and how far below and above the truth it must stay open.

    `known_cells` are cells that somebody knows beside, in a program; `readers_only` is set where no coalition is meant.
    Where there are cells finer than those of any table, `parts` are for each table its finest cells above zero in the
    cell.
    """

    cell: int
    down: int
    up: int
    known_cells: tuple[int, ...] = ()
    readers_only: bool = False
    parts: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class CellBox:
    """A finest cell and, along each axis, the opposite one (None: the box is open there)."""

    base: tuple[int, ...]
    opposite: tuple[int | None, ...]

    def moves(self, shape: tuple[int, ...], amount: int) -> dict[int, int]:
        """Return by how much finest cells change, by their number, if the base goes up by an amount.

        >>> CellBox((0, 0), (1, 1)).moves((2, 2), 3)
        {0: 3, 1: -3, 2: -3, 3: 3}
        """
        sides = [
            ((base, 1),) if other is None else ((base, 1), (other, -1))
            for base, other in zip(self.base, self.opposite, strict=True)
        ]
        corners = {
            int(np.ravel_multi_index([place for place, _ in corner], shape)): amount * prod(sign for _, sign in corner)
            for corner in product(*sides)
        }
        return dict(sorted(corners.items()))


@dataclass(frozen=True, eq=False)
class BoxSearch:
    """How far each finest cell can go down and up, and what it costs to leave a cell empty; these change meanwhile.

    `costs` has one more line along each axis, of cost 0.
    """

    frame: TableFrame
    room: Whole
    head: Whole
    costs: Costs
    paths: tuple[Places, ...]

    @classmethod
    def of(cls, frame: TableFrame, room: Whole, head: Whole, costs: Costs) -> BoxSearch:
        """Return a search over a table."""
        padded = np.pad(costs.reshape(frame.shape), [(0, 1)] * len(frame.axes))
        shape = frame.leaf_shape
        return cls(frame, room.reshape(shape), head.reshape(shape), padded, tuple(map(paths_down, frame.axes)))

    def best(self, cell: int, down: int, up: int) -> CellBox | None:
        """Return a box that costs little and lets a cell go down and up so far; None if none has enough room."""
        nodes = np.unravel_index(cell, self.frame.shape)
        ranges = [tuple(axis.ranges[int(node)]) for axis, node in zip(self.frame.axes, nodes, strict=True)]
        most = _SIDES.get(len(ranges), 3)
        boxes = [self._cheapest(base, ranges, (down, up), most) for base in self._bases(ranges, down, up)]
        best = min((box for box in boxes if box is not None), key=lambda box: box[0], default=None)
        return None if best is None else best[1]

    def _bases(self, ranges: Sequence[tuple[int, int]], down: int, up: int) -> list[tuple[int, ...]]:
        """Return finest cells inside a cell that can go down and up so far, the smallest first."""
        part = tuple(slice(low, high) for low, high in ranges)
        inside, above = self.room[part], self.head[part]
        flat = np.flatnonzero(((inside >= down) & (above >= up)).ravel())
        chosen = flat[np.argsort(inside.ravel()[flat], kind="stable")[:_BASES]]
        offsets = np.stack(np.unravel_index(chosen, inside.shape), axis=1) + [low for low, _ in ranges]
        return [tuple(offset) for offset in offsets.tolist()]

    def _cheapest(
        self, base: tuple[int, ...], ranges: Sequence[tuple[int, int]], amounts: tuple[int, int], most: int
    ) -> tuple[float, CellBox] | None:
        opposite = [self._sides(number, base, span, amounts, most) for number, span in enumerate(ranges)]
        costs = np.where(self._fits(base, opposite, amounts), self._prices(base, opposite), np.inf)
        best = int(np.argmin(costs))
        least = float(costs.ravel()[best])
        if least >= NEVER:
            return None
        places = np.unravel_index(best, costs.shape)
        corner = tuple(
            int(side[place]) if place < len(side) else None for side, place in zip(opposite, places, strict=True)
        )
        return least, CellBox(base, corner)

    def _prices(self, base: tuple[int, ...], opposite: Sequence[Places]) -> Costs:
        """Return for each choice of opposite lines, the last being none, what the cells cost that change."""
        sides = [_between(*side) for side in zip(self.paths, base, opposite, strict=True)]
        block = self.costs[np.ix_(*(lines for lines, _ in sides))]
        for _, covers in reversed(sides):
            block = np.tensordot(covers, block, (1, -1))
        return np.asarray(block)

    def _sides(
        self, number: int, base: tuple[int, ...], span: tuple[int, int], amounts: tuple[int, int], most: int
    ) -> Places:
        """Return opposite lines along an axis whose next corner has room, the cheapest ones."""
        along = tuple(slice(None) if axis == number else leaf for axis, leaf in enumerate(base))
        here = tuple(
            slice(None) if place == number else int(axis.leaves[leaf])
            for place, (axis, leaf) in enumerate(zip(self.frame.axes, base, strict=True))
        )
        down, up = amounts
        fits = (self.room[along] >= up) & (self.head[along] >= down)
        fits[span[0] : span[1]] = False
        open_lines = np.flatnonzero(fits)
        if len(open_lines) <= most:
            return open_lines
        paths = self.paths[number]
        under = paths[open_lines]
        costs = np.where(under != paths[base[number]], self.costs[here][under], 0.0).sum(1)
        return open_lines[np.sort(np.argpartition(costs, most)[:most])]

    def _fits(self, base: tuple[int, ...], opposite: Sequence[Places], amounts: tuple[int, int]) -> NDArray[np.bool_]:
        """Return for each choice of opposite lines, the last being none, whether all corners have room."""
        fits = np.ones(tuple(len(side) + 1 for side in opposite), np.bool_)
        down, up = amounts
        block = np.ix_(*([leaf, *side] for leaf, side in zip(base, opposite, strict=True)))
        room, head = self.room[block], self.head[block]
        open_corners = ((room >= down) & (head >= up), (room >= up) & (head >= down))
        for corner in product((False, True), repeat=len(base)):
            enough = open_corners[sum(corner) % 2][tuple(slice(1, None) if far else slice(1) for far in corner)]
            fits[tuple(slice(-1) if far else slice(None) for far in corner)] &= enough
        return fits


def paths_down(axis: TableAxis) -> Places:
    """Return for each leaf the lines from the total down to it; the line after the last fills up.

    >>> paths_down(TableAxis("place", ("*", "North", "a", "b", "South"), (-1, 0, 1, 1, 0))).tolist()
    [[0, 1, 2], [0, 1, 3], [0, 4, 5]]
    """
    deepest = max(map(len, axis.paths))
    return np.array([[*path[::-1], *[len(axis)] * (deepest - len(path))] for path in axis.paths], np.intp)


def _between(paths: Places, leaf: int, others: Places) -> tuple[Places, Costs]:
    """Return lines, and for each other leaf, and last for none, which of them cover one of the two and not both."""
    here, there = paths[leaf], paths[others]
    apart = there != here
    which, level = np.nonzero(apart)
    lines = np.concatenate([here, there[which, level]])
    covers = np.zeros((len(others) + 1, len(lines)))
    covers[:-1, : len(here)] = apart
    covers[-1, : len(here)] = 1.0
    covers[which, len(here) + np.arange(len(which))] = 1.0
    return lines, covers
