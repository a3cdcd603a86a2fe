"""Sizes: quality models that look at nothing but how many rows each class holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.quality.ladder import Ladder
from incrowd.quality.quality import Kept, Measure, Quality, Rungs
from incrowd.quality.tuples import Tuples


@dataclass(frozen=True)
class Discernibility(Quality):
    """Discernibility: how many ordered pairs of rows cannot be told apart; a suppressed row is paired with every row.

    Classes only merge on the way up, and (m + n)² ≥ m² + n², so the sum of squares is a bound for all coarser nodes; a
    suppressed class of n rows costs n times the table, at least n².

    Source: Bayardo & Agrawal 2005, the discernibility metric.
    """

    def over(self, ladders: Sequence[Ladder], tuples: Tuples) -> Measure:
        """Return the discernibility of one table's generalizations."""
        return _Pairs(_nothing(ladders), tuples.rows)


@dataclass(frozen=True)
class AverageSize(Quality):
    """Average class size: rows per class; all suppressed rows together are one class.

    The number of classes falls on the way up, and suppression replaces at least one class by one.

    Source: LeFevre, DeWitt & Ramakrishnan 2006, the average equivalence class size, here not divided by k.
    """

    def over(self, ladders: Sequence[Ladder], tuples: Tuples) -> Measure:
        """Return the average class size of one table's generalizations."""
        return _Average(_nothing(ladders), tuples.rows)


@dataclass(frozen=True, eq=False)
class _Pairs(Measure):
    steps: tuple[NDArray[np.float64], ...]
    rows: int

    def score(self, rungs: Rungs, tuples: Tuples, kept: Kept) -> float:
        del rungs
        sizes = tuples.sizes[kept].astype(np.float64)
        return float((sizes * sizes).sum()) + float(tuples.sizes[~kept].sum()) * self.rows

    def least(self, rungs: Rungs, tuples: Tuples) -> float:
        return self.score(rungs, tuples, np.ones(len(tuples), np.bool_))


@dataclass(frozen=True, eq=False)
class _Average(Measure):
    steps: tuple[NDArray[np.float64], ...]
    rows: int

    def score(self, rungs: Rungs, tuples: Tuples, kept: Kept) -> float:
        del rungs, tuples
        classes = int(np.count_nonzero(kept)) + (not kept.all())
        return self.rows / max(1, classes)

    def least(self, rungs: Rungs, tuples: Tuples) -> float:
        return self.score(rungs, tuples, np.ones(len(tuples), np.bool_))


def _nothing(ladders: Sequence[Ladder]) -> tuple[NDArray[np.float64], ...]:
    return tuple(np.zeros(len(ladder)) for ladder in ladders)
