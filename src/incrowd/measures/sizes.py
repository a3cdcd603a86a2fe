"""Sizes: how many rows share each tuple; what hides a row is how many others look like it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.criteria.groups import class_starts


@dataclass(frozen=True, eq=False)
class Sizes:
    """The number of rows in each class of rows that agree on some columns; no class is empty.

    >>> ages = Sizes(np.array([5, 1, 1, 3]))
    >>> ages.rows, ages.classes, ages.smallest, ages.average
    (10, 4, 1, 2.5)
    >>> ages.unique, ages.below(5)
    (2, 5)
    """

    each: NDArray[np.int64]

    @classmethod
    def of(cls, counts: Counts, columns: Sequence[str]) -> Sizes:
        """Return the sizes of the classes over these columns; over none there is one class of all rows."""
        if not columns:
            return cls(np.array([counts.total], np.int64)[: min(1, counts.total)])
        if counts.names[: len(columns)] != tuple(columns):
            return cls(counts.marginal(columns).counts)
        starts = class_starts(counts, len(columns))
        return cls(np.add.reduceat(counts.counts, starts) if len(starts) else counts.counts)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.each.sum())

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.each)

    @property
    def smallest(self) -> int | None:
        """The k for which the table is k-anonymous over these columns; None if there are no rows.

        Source: Samarati & Sweeney 1998: each tuple occurs at least k times.
        """
        return int(self.each.min()) if len(self.each) else None

    @property
    def average(self) -> float | None:
        """Rows per class; LeFevre, DeWitt & Ramakrishnan 2006 divide it by k and call it the normalized average."""
        return self.rows / self.classes if self.classes else None

    @property
    def unique(self) -> int:
        """How many rows are alone in their class."""
        return int(np.count_nonzero(self.each == 1))

    def below(self, k: int) -> int:
        """Return how many rows are in classes of fewer than k."""
        return int(self.each[self.each < k].sum())

    def discernibility(self, suppressed: int = 0) -> int:
        """Return how many ordered pairs of rows cannot be told apart; a suppressed row is paired with every row.

        Source: Bayardo & Agrawal 2005, the discernibility metric: the sum of squared class sizes, and for each
        suppressed row the size of the whole table.

        >>> Sizes(np.array([2, 3])).discernibility(suppressed=1)
        19
        """
        sizes, times = np.unique(self.each, return_counts=True)
        pairs = sum(int(size) ** 2 * int(number) for size, number in zip(sizes, times, strict=True))
        return pairs + suppressed * (self.rows + suppressed)
