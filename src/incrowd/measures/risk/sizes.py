"""Sizes: how many rows share each tuple, and what attackers gain where few do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.criteria.groups import class_starts

DEFINITIONS: Mapping[str, str] = MappingProxyType(
    {
        "prosecutor": "knows that the person is in the table: right with 1 over the rows of the table that look alike",
        "journalist": "does not know that: right with 1 over the people in the population who look alike",
        "marketer": "links everybody: the share of rows linked to the right person, on average",
    }
)


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


@dataclass(frozen=True)
class SizeRisk:
    """How often one attacker is right: about the worst-off row, on average, and the share of rows above a threshold.

    Of no rows, nothing is known: all three are 0.
    """

    highest: float
    average: float
    above: float


def risk(rows: NDArray[np.int64], crowd: NDArray[np.int64], threshold: float) -> SizeRisk:
    """Return the risk of rows in classes of so many, each hidden in a crowd of so many.

    For the prosecutor the crowd is the class itself, for the journalist and the marketer the people of the population
    who look alike.  What the marketer gets is the average.

    >>> classes = np.array([1, 4, 5])
    >>> risk(classes, classes, 0.2)
    SizeRisk(highest=1.0, average=0.3, above=0.5)
    >>> risk(classes, np.array([8, 32, 40]), 0.2)
    SizeRisk(highest=0.125, average=0.0375, above=0.0)
    """
    total = int(rows.sum())
    if not total:
        return SizeRisk(0.0, 0.0, 0.0)
    each = 1.0 / crowd
    return SizeRisk(float(each.max()), float((rows * each).sum() / total), float(rows[each > threshold].sum() / total))
