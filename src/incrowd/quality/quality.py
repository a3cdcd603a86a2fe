"""Quality: models of the information loss by recoding and suppression; less is better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.rounding import Number, exact
from incrowd.errors import InvalidParameter
from incrowd.quality.ladder import Ladder
from incrowd.quality.tuples import Tuples

Rungs = Sequence[int]
"""A node of the lattice: one rung of each column's ladder."""

Mask = NDArray[np.bool_]
"""Which classes are released; the rows of the others are suppressed."""

Rows = NDArray[np.int64]
"""A number of rows for each class."""

Surcharges = tuple[NDArray[np.float64], ...]
"""What suppression adds, for each column and rung."""


class Measure(ABC):
    """A quality model with a table to judge: scores for the nodes of its lattice.

    Three facts make pruning sound.  (1) `steps`, one number for each column and rung, never fall as a column rises, and
    their sum over the columns of a node is at most its score.  (2) `least` of a node is at most its own score and at
    most `least` of every coarser node.  (3) `surcharges` of a node are numbers of at least 0, one for
    each column and rung up to the node's, that never grow with the rung; a finer node that suppresses at least so many
    rows of each class has a score of at least the sum of its own steps plus the surcharges at its rungs.
    """

    steps: tuple[NDArray[np.float64], ...]

    @abstractmethod
    def score(self, rungs: Rungs, tuples: Tuples, retained: Mask) -> float:
        """Return the information loss at a node, from its classes and which of them are released."""

    def least(self, rungs: Rungs, tuples: Tuples) -> float:
        """Return a lower bound of the loss at this node and at every coarser one, with any suppression."""
        del tuples
        return sum(float(column[rung]) for column, rung in zip(self.steps, rungs, strict=True))

    def surcharges(self, rungs: Rungs, tuples: Tuples, lost: Rows) -> Surcharges:
        """Return lower bounds of what suppression adds at every finer node that loses `lost` rows of each class."""
        del tuples, lost
        return tuple(np.zeros(rung + 1) for rung in rungs)


@dataclass(frozen=True, eq=False)
class MergingMeasure(Measure):
    """A measure that never falls when classes merge or are suppressed: its score without suppression is `least`."""

    steps: tuple[NDArray[np.float64], ...]

    def least(self, rungs: Rungs, tuples: Tuples) -> float:
        return self.score(rungs, tuples, np.ones(len(tuples), np.bool_))


class Quality(ABC):
    """A quality model: parameters only, no data."""

    @abstractmethod
    def over(self, ladders: Sequence[Ladder], tuples: Tuples) -> Measure:
        """Return the model for one table, given by its columns' ladders and its classes at the lowest rungs."""


@dataclass(frozen=True)
class Factors:
    """The weights of generalization and suppression, from one factor between 0 and 1.

    One half treats both alike, 0 makes suppression free, 1 makes generalization free: the weight of generalization is 1
    up to one half and then falls to 0, that of suppression rises to 1 at one half and stays there.  This is the factor
    that ARX calls the generalization/suppression factor.

    >>> Factors.of("0.25"), Factors.of(1)
    (Factors(generalized=1.0, suppressed=0.5), Factors(generalized=0.0, suppressed=1.0))
    """

    generalized: float
    suppressed: float

    @classmethod
    def of(cls, factor: Number) -> Factors:
        """Return the two weights of a factor."""
        value = exact(factor, "the factor between generalization and suppression")
        if not 0 <= value <= 1:
            raise InvalidParameter(
                "the factor between generalization and suppression must lie between 0 (suppression is free) and 1 "
                "(generalization is free)."
            )
        return cls(float(min(Fraction(1), 2 - 2 * value)), float(min(Fraction(1), 2 * value)))


def shares_of_weights(weights: Mapping[str, Number], ladders: Sequence[Ladder]) -> NDArray[np.float64]:
    """Return the part of each column in the mean over the columns: its weight over the sum of all.

    A column without a weight has weight 1, so without weights this is the arithmetic mean.  The parts add up to 1: a
    row that loses everything in every column loses 1, with any weights.
    """
    names = [ladder.name for ladder in ladders]
    unknown = [name for name in weights if name not in names]
    if unknown:
        raise InvalidParameter(f"{unknown[0]!r} has a weight, but only {', '.join(names)} are generalized.")
    numbers = np.array([float(exact(weights.get(name, 1), f"the weight of {name!r}")) for name in names])
    if (numbers < 0).any() or not numbers.any():
        raise InvalidParameter("weights must be at least 0, and one of them above 0.")
    return np.asarray(numbers / numbers.sum())


def counted_by_code(ladders: Sequence[Ladder], tuples: Tuples) -> list[NDArray[np.float64]]:
    """Return for each column how many rows have each code at the lowest rung."""
    columns = zip(ladders, tuples.codes, strict=True)
    return [np.bincount(codes, tuples.sizes, len(ladder.rises[0])).astype(np.float64) for ladder, codes in columns]


@dataclass(frozen=True)
class Discernibility(Quality):
    """Discernibility: how many ordered pairs of rows are in one class; a suppressed row is paired with every row.

    Classes only merge on the way up, and (m + n)² ≥ m² + n², so the sum of squares is a bound for all coarser nodes; a
    suppressed class of n rows costs n times the table, at least n².

    Source: Bayardo & Agrawal 2005, the discernibility metric.
    """

    def over(self, ladders: Sequence[Ladder], tuples: Tuples) -> Measure:
        return _Pairs(_nothing(ladders), tuples.rows)


@dataclass(frozen=True)
class AverageSize(Quality):
    """Average class size: rows per class; all suppressed rows together are one class.

    The number of classes falls on the way up, and suppression replaces at least one class by one.

    Source: LeFevre, DeWitt & Ramakrishnan 2006, the average equivalence class size, here not divided by k.
    """

    def over(self, ladders: Sequence[Ladder], tuples: Tuples) -> Measure:
        return _Average(_nothing(ladders), tuples.rows)


@dataclass(frozen=True, eq=False)
class _Pairs(MergingMeasure):
    rows: int

    def score(self, rungs: Rungs, tuples: Tuples, retained: Mask) -> float:
        del rungs
        sizes = tuples.sizes[retained].astype(np.float64)
        return float((sizes * sizes).sum()) + float(tuples.sizes[~retained].sum()) * self.rows


@dataclass(frozen=True, eq=False)
class _Average(MergingMeasure):
    rows: int

    def score(self, rungs: Rungs, tuples: Tuples, retained: Mask) -> float:
        del rungs, tuples
        classes = int(np.count_nonzero(retained)) + (not retained.all())
        return self.rows / max(1, classes)


def _nothing(ladders: Sequence[Ladder]) -> tuple[NDArray[np.float64], ...]:
    return tuple(np.zeros(len(ladder)) for ladder in ladders)
