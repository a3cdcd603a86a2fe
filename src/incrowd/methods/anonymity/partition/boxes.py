"""Boxes: pieces of the space of declared values, known before a row is read, and the cuts that can be made in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.anonymity.mondrian.axes import Axis

WHOLE = 2**16
"""The share of a column that is as wide as all of it."""

Stretch = tuple[int, int]
"""The first and the last place of a box on one axis."""


@dataclass(frozen=True)
class Candidate:
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

    def candidates(self, axes: Sequence[Axis]) -> list[Candidate]:
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
        found = []
        for number, (axis, (low, high)) in enumerate(zip(axes, self.sides, strict=True)):
            if low == high:
                continue
            level = 0 if axis.line else int(axis.lowest(np.array([low]), np.array([high]))[0]) - 1
            nodes = axis.nodes[level][low : high + 1]
            edges = np.flatnonzero(nodes[1:] != nodes[:-1]) + low + 1
            found += [Candidate(number, int(edge)) for edge in edges]
        return found

    def cut(self, cut: Candidate) -> tuple[Box, Box]:
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
    total, found = int(rows.sum()), []
    cuts = box.candidates(axes)
    for number, (low, high) in enumerate(box.sides):
        edges = [cut.before for cut in cuts if cut.axis == number]
        counted = np.bincount(places[number] - low, rows, high - low + 1).astype(np.int64)
        left = np.cumsum(counted)[np.array(edges, np.intp) - low - 1]
        found.append(np.minimum(left, total - left) * box.share(axes, number) // WHOLE)
    return np.concatenate(found).astype(np.int64)
