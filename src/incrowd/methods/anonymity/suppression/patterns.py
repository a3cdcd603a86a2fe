"""Patterns: which cells of a row are left out, the cheapest patterns first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

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
        found = list(islice(_cheapest(weights), most))
        blank = np.zeros((len(found), len(weights)), np.bool_)
        for place, columns in enumerate(found):
            blank[place, list(columns)] = True
        if len(found) < 2 ** len(weights):
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
