"""Partitioning: all pieces of one depth are cut at once, until no piece can be cut any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.anonymity.mondrian.axes import Axis, Widths
from incrowd.methods.anonymity.mondrian.cuts import Cut, branches, halves, median
from incrowd.methods.anonymity.mondrian.pieces import NONE, Pieces, Whole, together

Mask = NDArray[np.bool_]
Met = Callable[[Pieces], Mask]
"""Tells which pieces may stand alone."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Tuples laid out along axes: the place of each on every axis, and how many rows it stands for."""

    axes: tuple[Axis, ...]
    places: NDArray[np.integer]
    rows: Whole

    @classmethod
    def of(cls, axes: Sequence[Axis], codes: Sequence[NDArray[np.integer]], rows: Whole) -> Grid:
        """Lay out tuples whose codes are given column by column."""
        small = np.int16 if max(map(len, axes)) < 2**15 else np.int32
        places = [axis.place[column].astype(small) for axis, column in zip(axes, codes, strict=True)]
        return cls(tuple(axes), np.stack(places), rows)


def partitioned(grid: Grid, met: Met, k: int, *, relaxed: bool = False) -> Pieces:
    """Cut a table into pieces that may stand alone, each of at least k rows, until none of the cuts tried is allowed.

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
    return together(done)


@dataclass(frozen=True, eq=False)
class _Frame:
    """Pieces with the place of their tuples on every axis, the ends of each piece and its widths."""

    grid: Grid
    pieces: Pieces
    places: NDArray[np.integer]
    low: NDArray[np.integer]
    high: NDArray[np.integer]
    widths: Widths

    @classmethod
    def of(cls, grid: Grid, pieces: Pieces) -> _Frame:
        places = grid.places[:, pieces.tuples]
        low = np.minimum.reduceat(places, pieces.starts, axis=1)
        high = np.maximum.reduceat(places, pieces.starts, axis=1)
        widths = [axis.width(*ends) for axis, *ends in zip(grid.axes, low, high, strict=True)]
        return cls(grid, pieces, places, low, high, np.stack(widths))

    def cut(self, column: int, which: Mask, relaxed: bool) -> Cut:
        """Cut some of the pieces along one axis."""
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
    return frame.pieces.only(still), together(parts)
