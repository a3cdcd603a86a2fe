"""Pieces: parts of a table at one depth, side by side in a few arrays, all worked on and cut at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.anonymity.mondrian.axes import Axis

Whole = NDArray[np.int64]
_ROOM = 4


@dataclass(frozen=True, eq=False)
class Pieces:
    """Tuples with how many rows of them lie in each piece, piece after piece; `starts` tell where each begins.

    Within a piece tuples keep the order they had in the table, which is that of their values.

    >>> pieces = Pieces(np.array([2, 0, 1]), np.array([5, 1, 1]), np.array([0, 1]))
    >>> pieces.sizes.tolist(), pieces.number.tolist()
    ([5, 2], [0, 1, 1])
    """

    tuples: NDArray[np.intp]
    rows: Whole
    starts: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def lengths(self) -> NDArray[np.intp]:
        """How many tuples lie in each piece."""
        return np.diff(self.starts, append=len(self.tuples))

    @cached_property
    def sizes(self) -> Whole:
        """How many rows lie in each piece."""
        return np.add.reduceat(self.rows, self.starts) if len(self) else np.zeros(0, np.int64)

    @cached_property
    def number(self) -> NDArray[np.intp]:
        """For each tuple the number of its piece."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def only(self, which: NDArray[np.bool_]) -> Pieces:
        """Return some of the pieces."""
        if which.all():
            return self
        inside, lengths = np.repeat(which, self.lengths), self.lengths[which]
        return Pieces(self.tuples[inside], self.rows[inside], np.cumsum(lengths) - lengths)


NONE = Pieces(np.zeros(0, np.intp), np.zeros(0, np.int64), np.zeros(0, np.intp))


def concatenate(several: Sequence[Pieces]) -> Pieces:
    """Return the pieces of several, in order.

    >>> len(concatenate([NONE, Pieces(np.array([2, 0, 1]), np.array([5, 1, 1]), np.array([0, 1]))]))
    2
    """
    ends = np.cumsum([0, *(len(pieces.tuples) for pieces in several)])
    return Pieces(
        np.concatenate([NONE.tuples, *(pieces.tuples for pieces in several)]),
        np.concatenate([NONE.rows, *(pieces.rows for pieces in several)]),
        np.concatenate([NONE.starts, *(each.starts + end for each, end in zip(several, ends[:-1], strict=True))]),
    )


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """How many rows of each piece have each value, for values that occur, in order, piece after piece."""

    starts: NDArray[np.intp]
    values: NDArray[np.int64]
    rows: Whole

    @cached_property
    def number(self) -> NDArray[np.intp]:
        """For each value the number of its piece."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.values)))


def tally(pieces: Pieces, values: NDArray[np.integer], low: Whole, high: Whole) -> ValueCounts:
    """Count the rows of each piece by a value that each tuple has; `low` and `high` bound the values in each piece.

    Where the bounds leave few places there is a counter for each; else values are sorted.

    >>> pieces = Pieces(np.array([0, 1, 2]), np.array([5, 1, 1]), np.array([0, 2]))
    >>> counted = tally(pieces, np.array([7, 7, 3]), np.array([7, 3]), np.array([7, 3]))
    >>> counted.starts.tolist(), counted.values.tolist(), counted.rows.tolist()
    ([0, 1], [7, 3], [6, 1])
    """
    room = high - low + 1
    offsets = np.cumsum(room) - room - low
    keys = np.repeat(offsets, pieces.lengths) + values
    if int(room.sum()) <= _ROOM * len(keys) + 1024:
        counted = np.bincount(keys, pieces.rows, int(room.sum()))  # sums of whole numbers below 2^53 are exact
        found = np.flatnonzero(counted)
        rows = counted[found].astype(np.int64)
    else:
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        found, rows = keys[first], np.add.reduceat(pieces.rows[order], first)
    starts = np.searchsorted(found, offsets + low)
    return ValueCounts(starts, found - np.repeat(offsets, np.diff(starts, append=len(found))), rows)


@dataclass(frozen=True, eq=False)
class Split:
    """Pieces, perhaps with tuples shared out between two sides, and the side of each tuple; sides are in order."""

    pieces: Pieces
    sides: NDArray[np.int64]

    def only(self, which: NDArray[np.bool_]) -> Split:
        """Return what is cut of some of the pieces."""
        inside = np.repeat(which, self.pieces.lengths)
        return Split(self.pieces.only(which), self.sides[inside])

    def parts(self) -> tuple[Pieces, NDArray[np.intp]]:
        """Return the parts, piece by piece and side by side, and for each the number of the piece it comes from."""
        number, sides = self.pieces.number, self.sides
        room = int(sides.max(initial=0)) + 1
        order = np.argsort(number * room + sides, kind="stable")
        number, sides = number[order], sides[order]
        changes = np.append(True, (number[1:] != number[:-1]) | (sides[1:] != sides[:-1]))
        starts = np.flatnonzero(changes)
        return Pieces(self.pieces.tuples[order], self.pieces.rows[order], starts), number[starts]


def median(pieces: Pieces, places: NDArray[np.integer], low: Whole, high: Whole) -> Split:
    """Split each piece between two values of a line, as evenly as whole values can be shared out.

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
    return Split(pieces, (places > np.repeat(last, pieces.lengths)).astype(np.int64))


def halves(pieces: Pieces, places: NDArray[np.integer], low: Whole, high: Whole) -> Split:
    """Split each piece of a line into halves whose sizes differ by at most one; equal rows may go to either.

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
    return Split(Pieces(np.repeat(tuples, shared), times, np.cumsum(lengths) - lengths), sides)


def branches(axis: Axis, pieces: Pieces, places: NDArray[np.integer], low: Whole, high: Whole) -> Split:
    """Split each piece of a tree into the branches below the lowest node that holds it.

    Source: LeFevre, DeWitt & Ramakrishnan 2006, categories with a generalization hierarchy.
    """
    nodes = np.stack(axis.nodes)
    below = np.maximum(axis.lowest(low, high) - 1, 0)
    sides = nodes[np.repeat(below, pieces.lengths), places] - np.repeat(nodes[below, low], pieces.lengths)
    return Split(pieces, sides.astype(np.int64))
