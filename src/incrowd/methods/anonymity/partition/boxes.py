"""Boxes: pieces of the space of declared values, known before a row is read, and the private cuts that make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.mechanisms.add_noise import AddLaplace
from incrowd.mechanisms.selection import MonotoneNoisyMax
from incrowd.methods.anonymity.mondrian.axes import Axis
from incrowd.methods.anonymity.mondrian.pieces import TupleGrid

WHOLE = 2**16
"""The share of a column that is as wide as all of it."""

Stretch = tuple[int, int]
"""The first and the last place of a box on one axis."""


@dataclass(frozen=True)
class AxisCut:
    """A cut: on which axis, and before which place."""

    axis: int
    before: int


@dataclass(frozen=True)
class Box:
    """A stretch on each axis."""

    sides: tuple[Stretch, ...]

    @classmethod
    def whole(cls, axes: Sequence[Axis]) -> Box:
        """Return the box that holds everything."""
        return cls(tuple((0, len(axis) - 1) for axis in axes))

    def candidates(self, axes: Sequence[Axis]) -> list[AxisCut]:
        """Return every cut in the order of the axes and places: between any two values of a line, or two branches.

        Only the declaration and this box decide.

        >>> from incrowd.core.domain import Categories
        >>> from incrowd.core.hierarchy.flat import Flat
        >>> from incrowd.core.recoding import Recoding
        >>> from incrowd.core.schema import Column
        >>> axis = Axis.of(Recoding(Column("sex", hierarchy=Flat(Categories(("F", "M")))), 0).classes)
        >>> [cut.before for cut in Box(((0, 2),)).candidates([axis])]
        [1, 2]
        """
        candidates = []
        for number, (axis, (low, high)) in enumerate(zip(axes, self.sides, strict=True)):
            if low == high:
                continue
            level = 0 if axis.line else int(axis.lowest(np.array([low]), np.array([high]))[0]) - 1
            nodes = axis.nodes[level][low : high + 1]
            edges = np.flatnonzero(nodes[1:] != nodes[:-1]) + low + 1
            candidates += [AxisCut(number, int(edge)) for edge in edges]
        return candidates

    def cut(self, cut: AxisCut) -> tuple[Box, Box]:
        """Return the two parts."""
        low, high = self.sides[cut.axis]
        return self._with(cut.axis, (low, cut.before - 1)), self._with(cut.axis, (cut.before, high))

    def share(self, axes: Sequence[Axis], number: int) -> int:
        """Return how wide the box is on an axis, of WHOLE: at least 1, and public like the box."""
        axis, (low, high) = axes[number], self.sides[number]
        ends = np.array([0, low]), np.array([len(axis) - 1, high])
        widest, here = axis.width(*ends)
        return max(1, min(WHOLE, int(WHOLE * here / widest))) if widest > 0 else WHOLE

    def _with(self, axis: int, side: Stretch) -> Box:
        return Box((*self.sides[:axis], side, *self.sides[axis + 1 :]))


def scores(box: Box, axes: Sequence[Axis], places: NDArray[np.integer], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the score of every candidate: the rows of the smaller part, times the share of its column, rounded down.

    So a cut is good that leaves much on both sides, and in a wide column: Mondrian's two rules in one number.
    One row more raises the rows of one part by one, the smaller part's by at most one, and never lowers it; the share
    is at most one.  So each score rises by 0 or 1: sensitivity 1, and all scores move in one direction.

    >>> from incrowd.core.domain import Numbers
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.recoding import Recoding
    >>> from incrowd.core.schema import Column, Type
    >>> age = Column("age", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 3)), missing="drop")
    >>> axis = Axis.of(Recoding(age, 0).classes)
    >>> scores(Box.whole([axis]), [axis], np.array([[0, 1, 3]]), np.array([5, 2, 1])).tolist()
    [3, 1, 1]
    """
    total, columns = int(rows.sum()), []
    cuts = box.candidates(axes)
    for number, (low, high) in enumerate(box.sides):
        edges = [cut.before for cut in cuts if cut.axis == number]
        counted = np.bincount(places[number] - low, rows, high - low + 1).astype(np.int64)
        left = np.cumsum(counted)[np.array(edges, np.intp) - low - 1]
        columns.append(np.minimum(left, total - left) * box.share(axes, number) // WHOLE)
    return np.concatenate(columns).astype(np.int64)


@dataclass(frozen=True)
class Growth:
    """How boxes are cut: how deep at most, for which ε in all, and how many rows a box must seem to have.

    Guarantee: the boxes are ε-differentially private if rows are added or removed.
    Assumes: axes, depth and `least` are public.
    Source: McKenna & Sheldon 2020 for each choice, Ghosh et al. 2009 for each count; the proof follows.

    Proof.  Let c = ε/(2·depth).  At each depth the boxes are disjoint and were fixed by what was drawn at smaller
    depths, so one row lies in one box and moves nothing in the others.  There it moves the count by one, which is told
    with noise at a cost of c, and every score by 0 or 1 in the same direction, for which the choice costs c.  Whether
    a choice is made hangs on the noisy count alone.  Together 2c at each depth and ε in all, by adaptive composition:
    given the same earlier draws, the chances of the next ones differ by a factor of e^(2c) at most.  ∎

    >>> Growth(4, Fraction(1), 100).cost
    Fraction(1, 8)
    """

    depth: int
    epsilon: Fraction
    least: int

    @property
    def cost(self) -> Fraction:
        """What one noisy count costs, and one choice."""
        return self.epsilon / (2 * self.depth)

    def leaves(self, grid: TupleGrid, coins: Coins) -> tuple[Box, ...]:
        """Return the boxes that are not cut any more, in the order of the space; together they hold everything."""
        return self._grown(grid, np.arange(len(grid.rows)), Box.whole(grid.axes), self.depth, coins)

    def _grown(self, grid: TupleGrid, inside: NDArray[np.intp], box: Box, depth: int, coins: Coins) -> tuple[Box, ...]:
        candidates = box.candidates(grid.axes) if depth else []
        if not candidates:
            return (box,)
        rows, places = grid.rows[inside], grid.places[:, inside]
        noisy = AddLaplace.costing(self.cost).release(np.array([int(rows.sum())]), coins)[0]
        if noisy < self.least:
            return (box,)
        chosen = candidates[MonotoneNoisyMax(self.cost).release(scores(box, grid.axes, places, rows), coins)]
        right = places[chosen.axis] >= chosen.before
        below, above = box.cut(chosen)
        return (
            *self._grown(grid, inside[~right], below, depth - 1, coins),
            *self._grown(grid, inside[right], above, depth - 1, coins),
        )


def leaf_of(leaves: tuple[Box, ...], places: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return for each tuple, given by its place on every axis, the number of the leaf it lies in."""
    numbers = np.zeros(places.shape[1], np.intp)
    for number, leaf in enumerate(leaves):
        inside = np.ones(places.shape[1], np.bool_)
        for row, (low, high) in zip(places, leaf.sides, strict=True):
            inside &= (row >= low) & (row <= high)
        numbers[inside] = number
    return numbers
