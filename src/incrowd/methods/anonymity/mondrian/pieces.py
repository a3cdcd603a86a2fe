"""Pieces: parts of a table, side by side in a few arrays, cut all at once, depth by depth, until none can be cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.keys import Codes
from incrowd.criteria.criterion import Criterion
from incrowd.criteria.groups import Groups
from incrowd.criteria.partition import Partition, lifts
from incrowd.methods.anonymity.mondrian.axes import Axis, Widths

Whole = NDArray[np.int64]
_ROOM = 4  # a dense table is used up to four times the rows: beyond it is mostly empty; both give the same counts


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
        np.concatenate([NONE.starts, *(pieces.starts + end for pieces, end in zip(several, ends[:-1], strict=True))]),
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
        present = np.flatnonzero(counted)
        rows = counted[present].astype(np.int64)
    else:
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        present, rows = keys[first], np.add.reduceat(pieces.rows[order], first)
    starts = np.searchsorted(present, offsets + low)
    return ValueCounts(starts, present - np.repeat(offsets, np.diff(starts, append=len(present))), rows)


@dataclass(frozen=True, eq=False)
class Split:
    """Pieces, perhaps with tuples shared out between two sides, and the side of each tuple; sides are in order."""

    pieces: Pieces
    sides: NDArray[np.int64]

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


@dataclass(frozen=True, eq=False)
class SensitiveValues:
    """One sensitive column: the value of each tuple, values that occur being numbered in order, and their labels."""

    values: NDArray[np.intp]
    totals: NDArray[np.int64]
    labels: pa.Array
    lifts: tuple[Codes, ...]

    @classmethod
    def of(cls, counts: Counts, column: str) -> SensitiveValues:
        """Read a column off counts."""
        place = counts.names.index(column)
        met, values = np.unique(counts.codes()[place], return_inverse=True)
        totals = np.bincount(values, counts.counts, len(met)).astype(np.int64)
        classes = counts.classes[place]
        return cls(values, totals, classes.labels().take(pa.array(met)), lifts(classes, met))

    def groups(self, pieces: Pieces) -> Groups:
        """Return how the column falls into the pieces and, last, into the rest of the table."""
        none = np.zeros(len(pieces), np.int64)
        counted = tally(pieces, self.values[pieces.tuples], none, none + len(self.totals) - 1)
        rest = self.totals - np.bincount(counted.values, counted.rows, len(self.totals)).astype(np.int64)
        left = np.flatnonzero(rest)
        starts = np.append(counted.starts, len(counted.rows)) if len(left) else counted.starts
        values = np.concatenate([counted.values, left]).astype(np.int32)
        return Groups(starts, values, np.concatenate([counted.rows, rest[left]]), self.labels, self.lifts)


def condition(criterion: Criterion, counts: Counts) -> Callable[[Pieces], NDArray[np.bool_]]:
    """Return what tells which pieces of a table meet a criterion about each class on its own.

    A criterion that compares with the whole table needs all of it, so the rest of the table stands beside the pieces.
    """
    columns = {name: SensitiveValues.of(counts, name) for name in criterion.sensitive}
    total = counts.total

    def met(pieces: Pieces) -> NDArray[np.bool_]:
        rest = total - int(pieces.sizes.sum())
        sizes = np.append(pieces.sizes, rest) if rest else pieces.sizes
        groups = {name: column.groups(pieces) for name, column in columns.items()}
        return criterion.met(Partition(sizes, groups))[: len(pieces)]

    return met


def criteria(parts: Sequence[Criterion]) -> Criterion:
    """Return all of several criteria as one.

    >>> from incrowd.criteria.k_anonymity import KAnonymity
    >>> criteria([KAnonymity(5)])
    KAnonymity(k=5)
    """
    first, *others = parts
    for part in others:
        first &= part
    return first


Mask = NDArray[np.bool_]
Met = Callable[[Pieces], Mask]
"""Tells which pieces may stand alone."""


@dataclass(frozen=True, eq=False)
class TupleGrid:
    """Tuples laid out along axes: the place of each on every axis, and how many rows it stands for."""

    axes: tuple[Axis, ...]
    places: NDArray[np.integer]
    rows: Whole

    @classmethod
    def of(cls, axes: Sequence[Axis], codes: Sequence[NDArray[np.integer]], rows: Whole) -> TupleGrid:
        """Lay out tuples whose codes are given column by column."""
        small = np.int16 if max(map(len, axes)) < 2**15 else np.int32
        places = [axis.place[column].astype(small) for axis, column in zip(axes, codes, strict=True)]
        return cls(tuple(axes), np.stack(places), rows)


def partition_tuples(grid: TupleGrid, met: Met, k: int, *, relaxed: bool = False) -> Pieces:
    """Split a table into pieces that may stand alone, each of at least k rows, until none of the cuts tried is allowed.

    Each piece is cut along its widest axis, measured by its own values and as a share of the width of the whole table;
    equally wide axes are tried in the order of the columns.  If a part of the cut may not stand alone, the next widest
    axis is tried, and a piece that cannot be cut along any is done.  Only tuples and how often they occur decide, so
    the order of the rows does not matter.  If the table itself may not stand alone, nothing is cut.

    Source: LeFevre, DeWitt & Ramakrishnan 2006, the greedy algorithm, worked off depth by depth: what becomes of one
    piece does not hang on another, so the result is that of the recursion.
    """
    done, active = [NONE], Pieces(np.arange(len(grid.rows)), grid.rows, np.zeros(min(1, len(grid.rows)), np.intp))
    whole = None
    while len(active):
        large = active.sizes >= 2 * k
        done.append(active.only(~large))
        active = active.only(large)
        if not len(active):
            break
        frame = _Frame.of(grid, active)
        whole = frame.widths.max(axis=1, keepdims=True) if whole is None else whole
        left, active = _cut(frame, met, np.argsort(-frame.widths / np.where(whole > 0, whole, 1), 0, "stable"), relaxed)
        done.append(left)
    return concatenate(done)


@dataclass(frozen=True, eq=False)
class _Frame:
    """Pieces with the place of their tuples on every axis, the ends of each piece and its widths."""

    grid: TupleGrid
    pieces: Pieces
    places: NDArray[np.integer]
    low: NDArray[np.integer]
    high: NDArray[np.integer]
    widths: Widths

    @classmethod
    def of(cls, grid: TupleGrid, pieces: Pieces) -> _Frame:
        places = grid.places[:, pieces.tuples]
        low = np.minimum.reduceat(places, pieces.starts, axis=1)
        high = np.maximum.reduceat(places, pieces.starts, axis=1)
        widths = [axis.width(*ends) for axis, *ends in zip(grid.axes, low, high, strict=True)]
        return cls(grid, pieces, places, low, high, np.stack(widths))

    def cut(self, column: int, which: Mask, relaxed: bool) -> Split:
        """Split some of the pieces along one axis."""
        axis, pieces = self.grid.axes[column], self.pieces.only(which)
        places = self.places[column] if which.all() else self.places[column][np.repeat(which, self.pieces.lengths)]
        low, high = (ends[column][which].astype(np.int64) for ends in (self.low, self.high))
        if not axis.line:
            return branches(axis, pieces, places, low, high)
        return halves(pieces, places, low, high) if relaxed else median(pieces, places, low, high)


def _cut(frame: _Frame, met: Met, ranks: NDArray[np.intp], relaxed: bool) -> tuple[Pieces, Pieces]:
    """Return the pieces that could not be cut, and the parts of the others."""
    still, parts = np.ones(len(frame.pieces), np.bool_), [NONE]
    for columns in ranks:
        for column in range(len(ranks)):
            which = still & (columns == column) & (frame.widths[column] > 0)
            if not which.any():
                continue
            cut, source = frame.cut(column, which, relaxed).parts()
            first = np.flatnonzero(np.append(True, source[1:] != source[:-1]))
            allowed = np.logical_and.reduceat(met(cut), first)
            parts.append(cut.only(allowed[source]))
            still[np.flatnonzero(which)[allowed]] = False
    return frame.pieces.only(still), concatenate(parts)
