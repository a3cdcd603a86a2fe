"""Groups: classes of rows that agree on some columns, with the values of another column in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.keys import Codes
from incrowd.errors import InvalidParameter

_CHUNK = 2**20  # keys unpacked at a time: 8 MB a column

PerGroup = NDArray[np.float64]
"""One number for each group."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The cells (group, value) that have rows, in order: where each group starts, the value of each cell and its rows.

    Values are numbered 0, 1, … in the order of the declared classes, or of the values; only those that occur have a
    number.  A missing value is a value of its own, the last one.  `lifts` hold for each level between the value and `*`
    the class of each value, where a distance needs them.  `everywhere` is the number of rows of the whole table with
    each value, where some of its groups are missing here.

    >>> sick = Groups(np.array([0, 2]), np.array([0, 1, 1]), np.array([3, 1, 4]), pa.array(["flu", "gout"]))
    >>> sick.sizes.tolist(), sick.totals.tolist()
    ([4, 4], [3, 5])
    """

    starts: NDArray[np.intp]
    values: Codes
    counts: NDArray[np.int64]
    labels: pa.Array
    lifts: tuple[Codes, ...] = ()
    everywhere: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, counts: Counts, columns: Sequence[str], sensitive: str) -> Groups:
        """Return the groups over `columns`, with the values of `sensitive` in each."""
        if sensitive in columns:
            raise InvalidParameter(
                f"{sensitive!r} cannot be both a quasi-identifier and the sensitive column of one check: name it once."
            )
        names = (*columns, sensitive)
        cells = counts if counts.names == names else counts.marginal(names)
        values = _last_codes(cells)
        met = np.unique(values)
        labels = cells.classes[-1].labels().take(pa.array(met))
        return cls(
            class_starts(cells, len(columns)), np.searchsorted(met, values).astype(np.int32), cells.counts, labels
        )

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many rows each group holds."""
        return self.total(self.counts)

    @cached_property
    def lengths(self) -> NDArray[np.intp]:
        """How many cells each group has."""
        return np.diff(self.starts, append=len(self.counts))

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """How many rows of the whole table have each value."""
        if self.everywhere is not None:
            return self.everywhere
        return np.asarray(np.bincount(self.values, self.counts, len(self.labels)).astype(np.int64))

    @cached_property
    def overall(self) -> PerGroup:
        """The share of each value in the whole table."""
        return np.asarray(self.totals / max(1, int(self.totals.sum())))

    def some(self, chosen: NDArray[np.bool_]) -> Groups:
        """Return some of the groups, still compared with the whole table.

        >>> sick = Groups(np.array([0, 2]), np.array([0, 1, 1]), np.array([3, 1, 4]), pa.array(["flu", "gout"]))
        >>> some = sick.some(np.array([False, True]))
        >>> some.counts.tolist(), some.totals.tolist()
        ([4], [3, 5])
        """
        if chosen.all():
            return self
        cells, lengths = np.repeat(chosen, self.lengths), self.lengths[chosen]
        starts = np.cumsum(lengths) - lengths
        return Groups(starts, self.values[cells], self.counts[cells], self.labels, self.lifts, self.totals)

    def total(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over each group of an integer of each cell."""
        return np.add.reduceat(cells, self.starts) if len(self.starts) else np.zeros(0, np.int64)

    def mean(self, cells: PerGroup) -> PerGroup:
        """Return the sum over each group of a float of each cell."""
        return np.add.reduceat(cells, self.starts) if len(self.starts) else np.zeros(0)

    def placed(self, order: NDArray[np.intp]) -> Groups:
        """Return the same groups with values numbered by their places in another order; levels above are dropped.

        >>> sick = Groups(np.array([0]), np.array([0, 1]), np.array([3, 1]), pa.array(["flu", "gout"]))
        >>> sick.placed(np.array([1, 0])).counts.tolist()
        [1, 3]
        """
        values = order[self.values.astype(np.intp)]
        lengths = self.lengths
        sequence = np.lexsort((values, np.repeat(np.arange(len(lengths)), lengths)))
        back = np.argsort(order)
        labels, whole = self.labels.take(pa.array(back)), None if self.everywhere is None else self.everywhere[back]
        return Groups(self.starts, values[sequence].astype(np.int32), self.counts[sequence], labels, (), whole)

    def shares(self) -> PerGroup:
        """Return for each cell its share of its group."""
        return self.counts / np.repeat(self.sizes, self.lengths)


@dataclass(frozen=True, eq=False)
class Histograms:
    """Groups with the rows of every value, a line for each group: faster where values are few.

    >>> sick = Histograms(np.array([[3.0, 1.0], [0.0, 4.0]]), np.array([3, 5]))
    >>> sick.sizes.tolist(), sick.some(np.array([False, True])).overall.tolist()
    ([4, 4], [0.375, 0.625])
    """

    rows: NDArray[np.float64]
    totals: NDArray[np.int64]
    lifts: tuple[Codes, ...] = ()
    levels: int = 1
    """How often each row is counted: once by its value, and once by each label above it in the same line."""

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many rows each group holds."""
        return np.rint(self.mean(self.rows)).astype(np.int64)

    @cached_property
    def overall(self) -> PerGroup:
        """The share of each value in the whole table."""
        return np.asarray(self.totals * self.levels / max(1, int(self.totals.sum())))

    def some(self, chosen: NDArray[np.bool_]) -> Histograms:
        """Return some of the groups, still compared with the whole table."""
        return Histograms(self.rows[chosen], self.totals, self.lifts, self.levels)

    def with_labels(self) -> Histograms:
        """Return the same with the labels of all levels above after the values.

        >>> sick = Histograms(np.array([[3.0, 1.0]]), np.array([3, 5]), (np.array([0, 0], np.int32),))
        >>> sick.with_labels().rows.tolist()
        [[3.0, 1.0, 4.0]]
        """
        indicators = [lift[:, np.newaxis] == np.arange(int(lift.max(initial=0)) + 1) for lift in self.lifts]
        onto = np.hstack([np.eye(len(self.totals)), *indicators])
        return Histograms(self.rows @ onto, (self.totals @ onto).astype(np.int64), (), 1 + len(indicators))

    def mean(self, cells: NDArray[np.float64]) -> PerGroup:
        """Return for each group the sum of a number that each value has, mean over the levels."""
        return np.asarray(cells @ np.full(len(self.totals), 1.0 / self.levels))


def _last_codes(counts: Counts) -> Codes:
    parts = [counts.layout.unpack(counts.keys[at : at + _CHUNK])[-1] for at in range(0, len(counts), _CHUNK)]
    return np.concatenate([np.zeros(0, np.int32), *parts])


def class_starts(counts: Counts, columns: int) -> NDArray[np.intp]:
    """Return where each class over the first `columns` columns starts among the cells, which are in order.

    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.recoding import Recoding
    >>> from incrowd.core.schema import Column
    >>> yes = Categories(("no", "yes"))
    >>> both = tuple(Recoding(Column(name, hierarchy=Flat(yes)), 0).classes for name in ("ill", "old"))
    >>> class_starts(Counts(both, np.array([0, 1, 4]), np.array([3, 2, 1])), 1).tolist()
    [0, 2]
    """
    starts = []
    for start in range(0, len(counts), _CHUNK):
        codes = counts.layout.unpack(counts.keys[max(0, start - 1) : start + _CHUNK])[:columns]
        changes = np.logical_or.reduce([column[1:] != column[:-1] for column in codes])
        starts.append(np.flatnonzero(changes if start else np.append(True, changes)) + start)
    return np.concatenate([np.zeros(0, np.intp), *starts])


def distinct(groups: Groups) -> NDArray[np.int64]:
    """Return how many different values each group holds; the table is distinct l-diverse for the least of them.

    Source: Machanavajjhala, Gehrke, Kifer & Venkitasubramaniam 2006, the l-diversity principle in its simplest reading.

    >>> import pyarrow as pa
    >>> sick = Groups(np.array([0, 2]), np.array([0, 1, 1]), np.array([3, 1, 4]), pa.array(["flu", "gout"]))
    >>> distinct(sick).tolist()
    [2, 1]
    """
    return groups.total(np.ones(len(groups.counts), np.int64))


def entropy(groups: Groups) -> PerGroup:
    """Return e to the entropy of each group: the number of equally frequent values with the same entropy.

    The table is entropy l-diverse for the least of them.  It is never above the number of distinct values.

    Source: Machanavajjhala, Gehrke, Kifer & Venkitasubramaniam 2006, Definition 4.1: −Σ p ln p ≥ ln l.

    >>> import pyarrow as pa
    >>> sick = Groups(np.array([0, 2]), np.array([0, 1, 1]), np.array([2, 2, 4]), pa.array(["flu", "gout"]))
    >>> entropy(sick).round(9).tolist()
    [2.0, 1.0]
    """
    shares = groups.shares()
    return np.asarray(np.exp(-groups.mean(shares * np.log(shares))))


def frequent(groups: Groups, harmful: NDArray[np.bool_], others: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each group how often its most frequent harmful value occurs, and the sum of its `others` next values.

    >>> import pyarrow as pa
    >>> sick = Groups(np.array([0]), np.array([0, 1, 2]), np.array([3, 1, 4]), pa.array(["flu", "gout", "healthy"]))
    >>> [found.tolist() for found in frequent(sick, np.array([True, True, False]), 1)]
    [[3], [4]]
    """
    lengths = groups.lengths
    numbers = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((-groups.counts, numbers))
    rows, places = groups.counts[order], np.arange(len(order)) - np.repeat(groups.starts, lengths)
    hurting = np.where(harmful[groups.values[order]], rows, 0)
    most = np.maximum.reduceat(hurting, groups.starts) if len(lengths) else np.zeros(0, np.int64)
    chosen = (hurting > 0) & (hurting == most[numbers])
    first = np.full(len(lengths), len(order), np.int64)
    np.minimum.at(first, numbers[chosen], places[chosen])
    # One place further down where the chosen value is itself among the most frequent.
    reach = others + (first < others)
    counted = np.where((places < reach[numbers]) & (places != first[numbers]), rows, 0)
    return most, groups.total(counted)


def grassberger(numbers: NDArray[np.int64]) -> PerGroup:
    """Return Grassberger's substitute for the logarithm of a count, which makes entropies of small samples less biased.

    It is ψ(m + 1/2) + ln 2 for the counts 2m and 2m + 1, with ψ the digamma function: −γ − ln 2 + 2 Σ 1/(2j − 1) over
    j ≤ m.  Beyond 100 the asymptotic series is used, whose next term is below 1e-15 there.

    Source: Grassberger 2003, equations 27 to 30.

    >>> grassberger(np.array([1, 2, 3])).round(6).tolist()
    [-1.270363, 0.729637, 0.729637]
    """
    halves = np.asarray(numbers) // 2
    sums = np.concatenate(([0.0], np.cumsum(2.0 / (2.0 * np.arange(1, 51) - 1.0))))
    small = sums[np.minimum(halves, 50)] - np.euler_gamma - np.log(2.0)
    inverse = 1.0 / np.maximum(halves, 1).astype(np.float64) ** 2
    large = np.log(2.0 * np.maximum(halves, 1)) + inverse * (1 / 24 - inverse * (7 / 960 - inverse * 31 / 8064))
    return np.asarray(np.where(halves <= 50, small, large))
