"""Shown: rows by what they show, and parts of them that show less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Keys, Layout

MISSING = 0
"""The code of a cell that shows nothing, because nothing was recorded or because it was left out."""


@dataclass(frozen=True, eq=False)
class Shown:
    """Tuples column by column, as codes from 1 on or MISSING, and how many rows show each.

    >>> both = Shown(np.array([[1, 1], [2, 0]], np.int32), np.array([3, 1]))
    >>> ids, rows = both.alike(np.array([True, False]))
    >>> ids.tolist(), rows.tolist()
    ([0, 0], [4])
    """

    codes: NDArray[np.int32]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total(self) -> int:
        """How many rows there are."""
        return int(self.rows.sum())

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each column has."""
        return tuple(int(column.max(initial=0)) + 1 for column in self.codes)

    def keys(self, columns: NDArray[np.bool_], sizes: tuple[int, ...] | None = None) -> Keys:
        """Return a number for each tuple that is the same where some columns are; `sizes` fit other tuples too."""
        named, used = self.sizes if sizes is None else sizes, np.flatnonzero(columns)
        if not len(used):
            return np.zeros(len(self), np.int64)
        return Layout(tuple(named[place] for place in used)).pack([self.codes[place] for place in used])

    def alike(
        self, columns: NDArray[np.bool_], sizes: tuple[int, ...] | None = None
    ) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Return the number of each tuple's class over some columns, and how many rows each class has."""
        _, ids = np.unique(self.keys(columns, sizes), return_inverse=True)
        return ids, np.bincount(ids, self.rows).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Parts:
    """So many rows of a tuple, by its place, leave out the cells of a pattern; every row of every tuple is in one part.

    `blank` has a row for each part.
    """

    tuples: NDArray[np.intp]
    rows: NDArray[np.int64]
    blank: NDArray[np.bool_]

    def ordered(self) -> Parts:
        """Return the same parts in the order of their tuples."""
        order = np.argsort(self.tuples, kind="stable")
        return Parts(self.tuples[order], self.rows[order], self.blank[order])

    def price(self, shown: Shown, weights: NDArray[np.float64]) -> float:
        """Return what the cells cost that are left out; cells that were missing anyway cost nothing."""
        newly = self.blank & (shown.codes[:, self.tuples] != MISSING).T
        return float(((newly @ weights) * self.rows).sum())


def overlaps(
    first: NDArray[np.int64], second: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
    """Return how two ways to cut the same rows into stretches overlap: places in both, and the rows in common.

    >>> [each.tolist() for each in overlaps(np.array([3, 1]), np.array([2, 2]))]
    [[0, 0, 1], [0, 1, 1], [2, 1, 1]]
    """
    ends: tuple[NDArray[Any], NDArray[Any]] = (np.cumsum(first), np.cumsum(second))
    cuts = np.union1d(*ends)
    cuts = cuts[cuts > 0]
    rows = np.diff(cuts, prepend=0).astype(np.int64)
    return np.searchsorted(ends[0], cuts), np.searchsorted(ends[1], cuts), rows
