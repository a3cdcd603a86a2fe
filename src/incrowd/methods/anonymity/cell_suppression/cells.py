"""Cells: rows by what they show, parts of them that show less, and the cheapest patterns of cells to leave out."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Keys, Layout

MISSING = 0
"""The code of a cell that shows nothing, because nothing was recorded or because it was left out."""


@dataclass(frozen=True, eq=False)
class VisibleTuples:
    """Tuples column by column, as codes from 1 on or MISSING, and how many rows show each.

    >>> both = VisibleTuples(np.array([[1, 1], [2, 0]], np.int32), np.array([3, 1]))
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

    def price(self, tuples: VisibleTuples, weights: NDArray[np.float64]) -> float:
        """Return what the cells cost that are left out; cells that were missing anyway cost nothing."""
        newly = self.blank & (tuples.codes[:, self.tuples] != MISSING).T
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


Blank = NDArray[np.bool_]
"""For each column whether its cell is left out."""

MOST = 2**12
"""So many patterns are tried; with more than 12 columns these are the cheapest, and then whole columns one by one."""


@dataclass(frozen=True, eq=False)
class Patterns:
    """Patterns in the order of their prices, the price of each, and where each stretch of equal prices starts.

    >>> found = Patterns.of([1, 1])
    >>> found.blank.astype(int).tolist(), found.prices.tolist(), found.starts
    ([[0, 0], [1, 0], [0, 1], [1, 1]], [0.0, 1.0, 1.0, 2.0], (0, 1, 3))
    """

    blank: Blank
    prices: NDArray[np.float64]

    @classmethod
    def of(cls, weights: Sequence[float], most: int = MOST) -> Patterns:
        """Return the patterns over columns whose cells have these prices."""
        subsets = list(islice(_cheapest(weights), most))
        blank = np.zeros((len(subsets), len(weights)), np.bool_)
        for place, columns in enumerate(subsets):
            blank[place, list(columns)] = True
        if len(subsets) < 2 ** len(weights):
            order = np.argsort(weights, kind="stable")
            chain = np.zeros((len(weights), len(weights)), np.bool_)
            for place in range(len(weights)):
                chain[place, order[: place + 1]] = True
            blank = np.unique(np.concatenate([blank, chain]), axis=0)
        prices = blank.astype(np.float64) @ np.asarray(weights, np.float64)
        order = np.lexsort((*(~blank.T[::-1]), blank.sum(axis=1), prices.round(9)))
        return cls(blank[order], prices[order])

    def __len__(self) -> int:
        return len(self.prices)

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each stretch of patterns of one price starts."""
        rises = np.flatnonzero(np.diff(self.prices.round(9))) + 1
        return (0, *(int(place) for place in rises))

    def within(self, pattern: int) -> Blank:
        """Return which patterns leave out nothing but what this one leaves out."""
        return np.asarray(~(self.blank & ~self.blank[pattern]).any(axis=1))


def _cheapest(weights: Sequence[float]) -> Iterator[tuple[int, ...]]:
    """Yield sets of columns from the cheapest on, each once.

    A set whose last column, in the order of weights, is at place p has two heirs: with the column at p + 1 added, and
    with it in the place of the last.  Both cost at least as much, and every set but the empty one and the first column
    alone has one parent.
    """
    order = sorted(range(len(weights)), key=lambda column: weights[column])
    yield ()
    queue: list[tuple[float, tuple[int, ...]]] = [(weights[order[0]], (0,))] if order else []
    while queue:
        price, places = heapq.heappop(queue)
        yield tuple(order[place] for place in places)
        last = places[-1]
        if last + 1 < len(order):
            more = weights[order[last + 1]]
            heapq.heappush(queue, (price + more, (*places, last + 1)))
            heapq.heappush(queue, (price + more - weights[order[last]], (*places[:-1], last + 1)))
