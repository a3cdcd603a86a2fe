"""Cuts: where pieces are cut along one axis, as a number for every tuple that says on which side it comes to lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.anonymity.mondrian.axes import Axis
from incrowd.methods.anonymity.mondrian.pieces import Pieces, Whole, tally


@dataclass(frozen=True, eq=False)
class Cut:
    """Pieces, perhaps with tuples shared out between two sides, and the side of each tuple; sides are in order."""

    pieces: Pieces
    sides: NDArray[np.int64]

    def only(self, which: NDArray[np.bool_]) -> Cut:
        """Return what is cut of some of the pieces."""
        inside = np.repeat(which, self.pieces.lengths)
        return Cut(self.pieces.only(which), self.sides[inside])

    def parts(self) -> tuple[Pieces, NDArray[np.intp]]:
        """Return the parts, piece by piece and side by side, and for each the number of the piece it comes from."""
        number, sides = self.pieces.number, self.sides
        room = int(sides.max(initial=0)) + 1
        order = np.argsort(number * room + sides, kind="stable")
        number, sides = number[order], sides[order]
        changes = np.append(True, (number[1:] != number[:-1]) | (sides[1:] != sides[:-1]))
        starts = np.flatnonzero(changes)
        return Pieces(self.pieces.tuples[order], self.pieces.rows[order], starts), number[starts]


def median(pieces: Pieces, places: NDArray[np.integer], low: Whole, high: Whole) -> Cut:
    """Cut each piece between two values of a line, as evenly as whole values can be shared out.

    The cut is beside the median, on the side that leaves the larger smaller part; if both do the same, the median
    goes to the lower part.  So if this cut leaves a part of fewer than k rows, every cut of the piece along this line
    does.

    Source: LeFevre, DeWitt & Ramakrishnan 2006, strict multidimensional partitioning at the median.

    >>> one = Pieces(np.arange(3), np.array([1, 3, 1]), np.array([0]))
    >>> median(one, np.array([4, 7, 9]), np.array([4]), np.array([9])).sides.tolist()
    [0, 0, 1]
    """
    counted = tally(pieces, places, low, high)
    upto = np.cumsum(counted.rows)
    before = upto[counted.starts] - counted.rows[counted.starts]
    middle = np.searchsorted(upto, before + (pieces.sizes + 1) // 2)
    above, below = before + pieces.sizes - upto[middle], upto[middle] - counted.rows[middle] - before
    last = counted.values[middle] - (above < below)
    return Cut(pieces, (places > np.repeat(last, pieces.lengths)).astype(np.int64))


def halves(pieces: Pieces, places: NDArray[np.integer], low: Whole, high: Whole) -> Cut:
    """Cut each piece of a line into halves whose sizes differ by at most one; equal rows may go to either.

    Tuples are taken in the order of their places, equal ones in the order of the table, so that nothing hangs on the
    order of the rows.

    Source: LeFevre, DeWitt & Ramakrishnan 2006, relaxed multidimensional partitioning.

    >>> one = Pieces(np.arange(3), np.array([1, 3, 1]), np.array([0]))
    >>> cut = halves(one, np.array([4, 7, 9]), np.array([4]), np.array([9]))
    >>> cut.sides.tolist(), cut.pieces.rows.tolist()
    ([0, 0, 1, 1], [1, 1, 2, 1])
    """
    offsets = np.cumsum(high - low + 1)
    order = np.argsort(np.repeat(offsets - high, pieces.lengths) + places, kind="stable")
    tuples, rows = pieces.tuples[order], pieces.rows[order]
    upto = np.cumsum(rows)
    goal = np.repeat(upto[pieces.starts] - rows[pieces.starts] + pieces.sizes // 2, pieces.lengths)
    left = np.clip(goal - (upto - rows), 0, rows)
    shared = 1 + ((left > 0) & (left < rows))
    sides, times = np.repeat((left == 0).astype(np.int64), shared), np.repeat(rows, shared)
    seconds = np.cumsum(shared)[shared == 2] - 1
    times[seconds - 1], times[seconds] = left[shared == 2], (rows - left)[shared == 2]
    sides[seconds] = 1
    lengths = np.add.reduceat(shared, pieces.starts)
    return Cut(Pieces(np.repeat(tuples, shared), times, np.cumsum(lengths) - lengths), sides)


def branches(axis: Axis, pieces: Pieces, places: NDArray[np.integer], low: Whole, high: Whole) -> Cut:
    """Cut each piece of a tree into the branches below the lowest node that holds it.

    Source: LeFevre, DeWitt & Ramakrishnan 2006, categories with a generalization hierarchy.
    """
    nodes = np.stack(axis.nodes)
    below = np.maximum(axis.lowest(low, high) - 1, 0)
    sides = nodes[np.repeat(below, pieces.lengths), places] - np.repeat(nodes[below, low], pieces.lengths)
    return Cut(pieces, sides.astype(np.int64))
