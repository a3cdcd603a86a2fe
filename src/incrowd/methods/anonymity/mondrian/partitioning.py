"""Partitioning: all pieces of one depth are cut at once, until no piece can be cut any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.keys import Codes
from incrowd.criteria.criterion import Criterion
from incrowd.criteria.groups import Groups
from incrowd.criteria.partition import Partition, lifts
from incrowd.methods.anonymity.mondrian.axes import Axis, Widths
from incrowd.methods.anonymity.mondrian.pieces import (
    NONE,
    Pieces,
    Split,
    Whole,
    branches,
    concatenate,
    halves,
    median,
    tally,
)


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
            found, source = frame.cut(column, which, relaxed).parts()
            first = np.flatnonzero(np.append(True, source[1:] != source[:-1]))
            allowed = np.logical_and.reduceat(met(found), first)
            parts.append(found.only(allowed[source]))
            still[np.flatnonzero(which)[allowed]] = False
    return frame.pieces.only(still), concatenate(parts)
