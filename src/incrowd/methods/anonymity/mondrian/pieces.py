"""Pieces: parts of a table at one depth, side by side in a few arrays, so that all of them are worked on at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

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


def together(several: Sequence[Pieces]) -> Pieces:
    """Return the pieces of several, in order.

    >>> len(together([NONE, Pieces(np.array([2, 0, 1]), np.array([5, 1, 1]), np.array([0, 1]))]))
    2
    """
    ends = np.cumsum([0, *(len(pieces.tuples) for pieces in several)])
    return Pieces(
        np.concatenate([NONE.tuples, *(pieces.tuples for pieces in several)]),
        np.concatenate([NONE.rows, *(pieces.rows for pieces in several)]),
        np.concatenate([NONE.starts, *(each.starts + end for each, end in zip(several, ends[:-1], strict=True))]),
    )


@dataclass(frozen=True, eq=False)
class Tally:
    """How many rows of each piece have each value, for values that occur, in order, piece after piece."""

    starts: NDArray[np.intp]
    values: NDArray[np.int64]
    rows: Whole

    @cached_property
    def number(self) -> NDArray[np.intp]:
        """For each value the number of its piece."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.values)))


def tally(pieces: Pieces, values: NDArray[np.integer], low: Whole, high: Whole) -> Tally:
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
    return Tally(starts, found - np.repeat(offsets, np.diff(starts, append=len(found))), rows)
