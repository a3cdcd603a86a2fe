"""Equivalence classes: rows that agree on some columns, the risks of small ones, and what classes disclose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.keys import Layout, grouped
from incrowd.criteria.distances import equal
from incrowd.criteria.groups import Groups, class_starts
from incrowd.errors import InvalidParameter
from incrowd.measures.coded import Coded
from incrowd.measures.score import Score

DEFINITIONS: Mapping[str, str] = MappingProxyType(
    {
        "prosecutor": "knows that the person is in the table: right with probability 1 over the size of the class",
        "journalist": "does not know that: right with probability 1 over the size of the class in the population",
        "marketer": "links everybody: the share of rows linked to the right person, on average",
    }
)


@dataclass(frozen=True, eq=False)
class Sizes:
    """The number of rows in each equivalence class over some columns; no class is empty.

    >>> ages = Sizes(np.array([5, 1, 1, 3]))
    >>> ages.rows, ages.classes, ages.smallest, ages.average
    (10, 4, 1, 2.5)
    >>> ages.unique, ages.below(5)
    (2, 5)
    """

    counts: NDArray[np.int64]

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
        return int(self.counts.sum())

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.counts)

    @property
    def smallest(self) -> int | None:
        """The k for which the table is k-anonymous over these columns; None if there are no rows.

        Source: Samarati & Sweeney 1998: each tuple occurs at least k times.
        """
        return int(self.counts.min()) if len(self.counts) else None

    @property
    def average(self) -> float | None:
        """Rows per class; LeFevre, DeWitt & Ramakrishnan 2006 divide it by k and call it the normalized average."""
        return self.rows / self.classes if self.classes else None

    @property
    def unique(self) -> int:
        """How many rows are unique."""
        return int(np.count_nonzero(self.counts == 1))

    def below(self, k: int) -> int:
        """Return how many rows are in classes of fewer than k."""
        return int(self.counts[self.counts < k].sum())

    def discernibility(self, suppressed: int = 0) -> int:
        """Return how many ordered pairs of rows are in one class; a suppressed row is paired with every row.

        Source: Bayardo & Agrawal 2005, the discernibility metric: the sum of squared class sizes, and for each
        suppressed row the size of the whole table.

        >>> Sizes(np.array([2, 3])).discernibility(suppressed=1)
        19
        """
        sizes, times = np.unique(self.counts, return_counts=True)
        pairs = sum(int(size) ** 2 * int(number) for size, number in zip(sizes, times, strict=True))
        return pairs + suppressed * (self.rows + suppressed)


@dataclass(frozen=True)
class SizeRisk:
    """How often one attacker is right: about the row at the highest risk, on average, and the share above a threshold.

    Without rows all three are 0.
    """

    highest: float
    average: float
    above: float


def risk(rows: NDArray[np.int64], crowd: NDArray[np.int64], threshold: float) -> SizeRisk:
    """Return the risk of rows in classes of `rows` rows, each in a crowd of `crowd` people.

    For the prosecutor the crowd is the class itself; for the journalist and the marketer it is the class in the
    population.  The marketer's success rate is the average.

    >>> classes = np.array([1, 4, 5])
    >>> risk(classes, classes, 0.2)
    SizeRisk(highest=1.0, average=0.3, above=0.5)
    >>> risk(classes, np.array([8, 32, 40]), 0.2)
    SizeRisk(highest=0.125, average=0.0375, above=0.0)
    """
    total = int(rows.sum())
    if not total:
        return SizeRisk(0.0, 0.0, 0.0)
    chances = 1.0 / crowd
    return SizeRisk(
        float(chances.max()), float((rows * chances).sum() / total), float(rows[chances > threshold].sum() / total)
    )


@dataclass(frozen=True)
class SetOfColumns:
    """Some columns, and how well they distinguish rows; all three numbers grow with every added column.

    *Distinction* is the number of different tuples over the number of rows; *separation* is the share of pairs of rows
    that differ in some of the columns; *unique* is the share of unique rows.

    Source: Motwani & Xu 2007 for distinction and separation; ARX shows the same two.
    """

    columns: tuple[str, ...]
    distinction: float
    separation: float
    unique: float


def ranking(counts: Counts, largest: int = 3) -> tuple[SetOfColumns, ...]:
    """Return all sets of at most `largest` columns, those with the most unique rows first.

    >>> from incrowd.core.cells import Cells
    >>> from incrowd.core.schema import Column, Schema
    >>> from incrowd.engines.local.engine import LOCAL
    >>> from incrowd.engines.readers.sources import open_source
    >>> import pyarrow as pa
    >>> rows = open_source(pa.table({"sex": ["F", "F", "M"], "zip": ["1", "2", "2"]}))
    >>> found = ranking(LOCAL.count(rows, Cells.of(Schema((Column("sex"), Column("zip"))), {})))
    >>> [(each.columns, round(each.unique, 2), round(each.separation, 2)) for each in found]
    [(('sex', 'zip'), 1.0, 1.0), (('sex',), 0.33, 0.67), (('zip',), 0.33, 0.67)]
    """
    if largest < 1:
        raise InvalidParameter("a set of columns needs at least one column.")
    return tuple(
        sorted(_sets(counts, largest), key=lambda columns: (-columns.unique, -columns.separation, len(columns.columns)))
    )


def _sets(counts: Counts, largest: int) -> Iterator[SetOfColumns]:
    rows, codes, among = max(1, counts.total), counts.codes(), counts.layout.sizes
    for size in range(1, min(largest, len(counts.names)) + 1):
        for places in combinations(range(len(counts.names)), size):
            keys = Layout(tuple(among[place] for place in places)).pack([codes[place] for place in places])
            sizes = Sizes(grouped(keys, counts.counts)[1])
            same = sizes.discernibility() - sizes.rows  # ordered pairs of different rows that agree
            columns = tuple(counts.names[place] for place in places)
            yield SetOfColumns(
                columns, sizes.classes / rows, 1.0 - same / max(1, rows * (rows - 1)), sizes.unique / rows
            )


@dataclass(frozen=True)
class Homogeneity:
    """What equivalence classes disclose about a sensitive column: l, t, and the share of rows disclosed.

    l is the fewest different values in a class, t the largest distance of a class from the whole table (half the sum of
    |p − q|), *homogeneous* the share of rows in classes with one value: an attacker who knows that a person is there
    knows the value.

    Source: Machanavajjhala et al. 2006; Li, Li & Venkatasubramanian 2007.
    """

    column: str
    l: int  # noqa: E741 - the letter of the paper
    t: float
    homogeneous: float


def homogeneity(table: Coded, quasi: tuple[int, ...], sensitive: int) -> Homogeneity | None:
    """Return l, t and the share of rows in classes with one sensitive value; None without rows.

    >>> rows = np.array([[0, 0, 1, 1], [0, 1, 1, 1]])
    >>> homogeneity(Coded(("sex", "ill"), rows, np.ones(4), (2, 2), (None, None)), (0,), 1)
    Homogeneity(column='ill', l=1, t=0.25, homogeneous=0.5)
    """
    groups = groups_of(table, quasi, sensitive)
    if not len(groups.counts):
        return None
    alike = groups.sizes[groups.lengths == 1].sum() / groups.sizes.sum()
    return Homogeneity(table.names[sensitive], int(groups.lengths.min()), float(equal(groups).max()), float(alike))


def groups_of(table: Coded, quasi: tuple[int, ...], sensitive: int) -> Groups:
    """Return the classes of a table over some columns, with the values of another column in each."""
    layout = Layout((*(table.sizes[place] for place in quasi), table.sizes[sensitive]))
    keys = layout.pack([table.codes[place] for place in (*quasi, sensitive)])
    keys, counts = grouped(keys, np.rint(table.weights).astype(np.int64))
    keys, counts = keys[counts > 0], counts[counts > 0]
    codes = layout.unpack(keys)
    met, values = np.unique(codes[-1], return_inverse=True)
    new: NDArray[np.bool_] = np.zeros(len(keys), np.bool_)
    new[:1] = True
    for column in codes[:-1]:
        new[1:] |= column[1:] != column[:-1]
    return Groups(np.flatnonzero(new), values.astype(np.int32), counts, pa.nulls(len(met)))


_FOUND = "share of households with a member whom a prosecutor finds: 1 − ∏ (1 − 1 / size of the class), on average"


def household_risk(households: NDArray[np.integer], sizes: NDArray[np.int64], rows: NDArray[np.int64]) -> Score:
    """Return how often some member of a household is found, each alone in a class with probability 1.

    Tuples have a household, the size of their class and a number of rows.

    Source: Hundepool et al. 2012, section 3.3.9; as sdcMicro computes it.

    >>> household_risk(np.array([0, 0, 1]), np.array([2, 2, 4]), np.array([1, 1, 1])).value
    0.5
    """
    with np.errstate(divide="ignore"):
        missed = rows * np.log1p(-1 / sizes)
    _, places = np.unique(households, return_inverse=True)
    return Score("household risk", float(np.mean(-np.expm1(np.bincount(places, missed)))), _FOUND)
