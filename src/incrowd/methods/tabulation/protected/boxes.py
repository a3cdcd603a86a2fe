"""Boxes: a pattern of suppressed cells found by moving amounts around boxes of cells, whose every move is a proof.

An amount that is added at one corner of a box of finest cells and taken away at the next, all around, leaves every sum
as it is except those that separate the corners.  If all that change are suppressed, the moved table agrees with all
that is published: a cell at a corner is open that far up, and by the opposite move that far down.  A box may be open
along an axis; then the sums along that axis, up to the total, change too.  For each sensitive cell the box is taken
that costs least given what is suppressed already, and boxes are taken again until nothing becomes cheaper.

Source: the hypercube method, Giessing & Repsilber 2002, here on hierarchies, with exact amounts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from incrowd.methods.tabulation.protected.frame import TableAxis, TableFrame, Whole

Costs = NDArray[np.float64]

NEVER = 1e15
"""The cost of a cell that is always published."""

_BASES = 6
_PASSES = 3


@dataclass(frozen=True)
class ProtectionDemand:
    """A cell by its number, and how far below and above the truth it must stay open."""

    cell: int
    down: int
    up: int


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


@dataclass
class BoxSearch:
    """The table, what each cell costs, and which boxes are in use; `uses` counts them for every cell."""

    frame: TableFrame
    leaves: Whole
    weights: Costs
    uses: Whole = field(init=False)
    _sides: dict[tuple[int, int], csr_array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.uses = np.zeros(self.frame.size, np.int64)

    def run(self, demands: list[ProtectionDemand]) -> dict[int, CellBox]:
        """Return a box for each demand, by its place; none where no single box is enough."""
        boxes: dict[int, CellBox] = {}
        for demand in demands:
            self.uses[demand.cell] += 1
        for number in range(_PASSES):
            before = dict(boxes)
            for place in list(boxes) if number else range(len(demands)):
                if place in boxes:
                    self.uses[self.touched(boxes.pop(place))] -= 1
                box = self.best(demands[place])
                if box is not None:
                    boxes[place] = box
                    self.uses[self.touched(box)] += 1
            if boxes == before:
                break
        return boxes

    def best(self, demand: ProtectionDemand) -> CellBox | None:
        """Return the box that suppresses least beyond what is suppressed already; None if none has enough room."""
        nodes = np.unravel_index(demand.cell, self.frame.shape)
        ranges = [axis.ranges[int(node)] for axis, node in zip(self.frame.axes, nodes, strict=True)]
        best: tuple[float, CellBox] | None = None
        costs = np.where(self.uses.reshape(self.frame.shape) > 0, 0.0, self.weights)
        for base in self._bases(ranges, demand.down):
            tried = self._cheapest(base, ranges, demand, costs)
            if tried is not None and (best is None or tried[0] < best[0]):
                best = tried
        return None if best is None else best[1]

    def _bases(self, ranges: list[NDArray[np.intp]], least: int) -> list[tuple[int, ...]]:
        """Return finest cells inside a cell from which enough can be taken away, the smallest first."""
        inside = self.leaves[tuple(slice(low, high) for low, high in ranges)]
        flat = np.flatnonzero(inside.ravel() >= least)
        chosen = flat[np.argsort(inside.ravel()[flat], kind="stable")[:_BASES]]
        offsets = np.stack(np.unravel_index(chosen, inside.shape), axis=1) + [low for low, _ in ranges]
        return [tuple(offset) for offset in offsets.tolist()]

    def _cheapest(
        self, base: tuple[int, ...], ranges: list[NDArray[np.intp]], demand: ProtectionDemand, costs: Costs
    ) -> tuple[float, CellBox] | None:
        for number, leaf in enumerate(base):  # each turn takes the first axis and puts its opposite lines last
            side = self._side(number, leaf)
            taken = side @ costs.reshape(len(self.frame.axes[number]), -1)
            costs = np.moveaxis(taken.reshape(side.shape[0], *costs.shape[1:]), 0, -1)
        room = self._room(base, demand)
        for number, (low, high) in enumerate(ranges):
            room[(slice(None),) * number + (slice(low, high),)] = False
        costs = np.where(room, costs, np.inf)
        best = int(np.argmin(costs))
        least = float(costs.ravel()[best])
        if least >= NEVER:
            return None
        places = np.unravel_index(best, costs.shape)
        opposite = tuple(
            None if int(place) == size else int(place)
            for place, size in zip(places, self.frame.leaf_shape, strict=True)
        )
        return least, CellBox(base, opposite)

    def _room(self, base: tuple[int, ...], demand: ProtectionDemand) -> NDArray[np.bool_]:
        """Return for each choice of opposite lines whether all corners have enough to be taken away."""
        room = np.ones(tuple(size + 1 for size in self.frame.leaf_shape), np.bool_)
        for corner in product((False, True), repeat=len(base)):
            where = tuple(
                slice(None) if primed else slice(leaf, leaf + 1) for primed, leaf in zip(corner, base, strict=True)
            )
            enough = self.leaves[where] >= (demand.up if sum(corner) % 2 else demand.down)
            pad = [(0, 1) if primed else (0, 0) for primed in corner]
            room &= np.pad(enough, pad, constant_values=True)
        return room

    def _side(self, number: int, leaf: int) -> csr_array:
        key = (number, leaf)
        if key not in self._sides:
            self._sides[key] = _separating(self.frame.axes[number], leaf)
        return self._sides[key]

    def touched(self, box: CellBox) -> NDArray[np.intp]:
        """Return the cells that a move around a box changes."""
        lines = []
        for axis, leaf, other in zip(self.frame.axes, box.base, box.opposite, strict=True):
            here, there = set(axis.paths[leaf]), set() if other is None else set(axis.paths[other])
            lines.append(sorted(here ^ there))
        return np.ravel_multi_index(np.ix_(*lines), self.frame.shape).ravel()


def _separating(axis: TableAxis, leaf: int) -> csr_array:
    """Return for each other leaf, and last for none, which lines cover one of the two and not both."""
    here = set(axis.paths[leaf])
    lines = [sorted(here ^ set(path)) for path in axis.paths]
    lines.append(sorted(here))
    starts = np.cumsum([0, *map(len, lines)])
    return csr_array(
        (np.ones(starts[-1]), np.concatenate([np.array(line, np.intp) for line in lines]), starts),
        (len(lines), len(axis)),
    )
