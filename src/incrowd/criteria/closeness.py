"""Closeness: criteria on how far a sensitive column in a class may be from the same column in the whole table.

The three differ in how far apart two values are.  Shares of a union are a mean of the shares of its classes, and the
earth mover's distance to a fixed distribution is convex, so a union of close classes is close; a class and one that is
too far may be too far together.  A class of nothing but harmless values passes, and then nothing is concluded.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from incrowd.core.rounding import Number, exact
from incrowd.criteria.criterion import SLACK, Criterion, Mask, Monotone, Rows
from incrowd.criteria.distances import (
    Lacking,
    equal,
    hierarchical,
    lacking,
    lacking_in_order,
    largest_close,
    lifted,
    ordered,
)
from incrowd.criteria.groups import Each, Groups
from incrowd.criteria.partition import Partition, harmful
from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class _Closeness(Criterion):
    column: str
    t: Number
    harmless: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not 0 <= exact(self.t, "t") <= 1:
            raise InvalidParameter("t lies between 0 (every class is like the whole table) and 1.")

    @property
    def monotone(self) -> Monotone:
        """Unions, as long as every value counts."""
        return Monotone.NEVER if self.harmless else Monotone.UNIONS

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes are close enough to the whole table."""
        groups = partition.groups(self.column)
        close = self._distance(groups) <= float(exact(self.t, "t")) + SLACK
        if self.harmless:
            close |= groups.total(harmful(groups, self.harmless)[groups.values].astype(np.int64)) == 0
        return np.asarray(among & close)

    @property
    def bounding(self) -> bool:
        """As long as every value counts."""
        return not self.harmless

    def releasable(self, partition: Partition, rows: Rows) -> Rows:
        """Return how many rows of each class can at most lie in classes within it that are close enough.

        The union of such classes is close enough too, so what counts is how large a part of a class can be.
        """
        if self.harmless:
            return rows
        groups, t = partition.groups(self.column), float(exact(self.t, "t"))
        return np.minimum(rows, largest_close(partition.sizes, self._lacking(groups), t + 2 * SLACK))

    @abstractmethod
    def _lacking(self, groups: Groups) -> Lacking: ...

    @abstractmethod
    def _distance(self, groups: Groups) -> Each: ...


class EqualCloseness(_Closeness):
    """t-closeness where any two values are equally far apart.

    Source: Li, Li & Venkatasubramanian 2007, Definition 2 and the equal distance.

    >>> import pyarrow as pa
    >>> sick = Groups(np.array([0, 1]), np.array([0, 1]), np.array([4, 4]), pa.array(["flu", "gout"]))
    >>> EqualCloseness("sick", "0.4").met(Partition(np.array([4, 4]), {"sick": sick})).tolist()
    [False, False]
    """

    def _distance(self, groups: Groups) -> Each:
        return equal(groups)

    def _lacking(self, groups: Groups) -> Lacking:
        return lacking([groups])


class OrderedCloseness(_Closeness):
    """t-closeness where values are as far apart as their places in order: for numbers and dates.

    Source: Li, Li & Venkatasubramanian 2007, the ordered distance.
    """

    def _distance(self, groups: Groups) -> Each:
        return ordered(groups)

    def _lacking(self, groups: Groups) -> Lacking:
        return lacking_in_order(groups)


class HierarchicalCloseness(_Closeness):
    """t-closeness where values are as far apart as the lowest label they share is high in the column's hierarchy.

    Source: Li, Li & Venkatasubramanian 2007, the hierarchical distance.
    """

    def _distance(self, groups: Groups) -> Each:
        return hierarchical(groups)

    def _lacking(self, groups: Groups) -> Lacking:
        return lacking(lifted(groups))
