"""Closeness: criteria on how far a sensitive column in a class may be from the same column in the whole table.

The three differ in how far apart two values are.  Shares of a union are a mean of the shares of its classes, and the
earth mover's distance to a fixed distribution is convex, so a union of close classes is close; a class and one that is
too far may be too far together.  A class with nothing but harmless values passes; then no
conclusion for unions holds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from incrowd.core.claims.claim import Claim, proved
from incrowd.core.rounding import Number, exact
from incrowd.core.terms import Condition, Theorem
from incrowd.criteria.criterion import SLACK, Mask, Monotone, Rows
from incrowd.criteria.demand import ALL_ROWS, COUNTED, ColumnClaim, ColumnDemand, Form
from incrowd.criteria.distances import (
    Lacking,
    equal,
    hierarchical,
    lacking,
    lacking_in_order,
    largest_close,
    largest_close_of_all,
    levels_of,
    ordered,
)
from incrowd.criteria.groups import Groups, Histograms, PerGroup
from incrowd.criteria.measure import Bound, Meaning
from incrowd.criteria.partition import Partition, harmful
from incrowd.criteria.recount import Recount, WrittenTable
from incrowd.criteria.slow_distances import recount_closeness
from incrowd.errors import InvalidParameter

DISTANT = proved(
    Condition(
        "distances-measured",
        "each class was measured when it was made; how far its many values are apart is not told here",
    )
)


@dataclass(frozen=True, kw_only=True)
class ClosenessClaim(ColumnClaim):
    """Each class is much like the whole table in a sensitive column."""

    kind = "t-closeness"
    sentence = "The sensitive column of each class differs from that of the whole table by at most t."

    t: Fraction
    distance: str


@dataclass(frozen=True)
class Closeness(ColumnDemand):
    """t-closeness; each distance between values is a class of its own."""

    option: ClassVar[str] = "t"
    parameter: ClassVar[str] = "t"
    keys: ClassVar[tuple[str, ...]] = ("t",)
    options: ClassVar[tuple[str, ...]] = ("distance",)
    claimed: ClassVar[type[Claim]] = ClosenessClaim
    theorem: ClassVar[Theorem] = Theorem(
        "t-closeness-counted",
        "Li, Li & Venkatasubramanian 2007, counted: no class is further than t from the whole table",
    )
    general: ClassVar[bool] = True
    distance: ClassVar[str]
    """Its name in policies and steps."""

    column: str
    t: Number
    harmless: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not 0 <= exact(self.t, "t") <= 1:
            raise InvalidParameter("t must lie between 0 (every class is like the whole table) and 1.")

    @property
    def monotone(self) -> Monotone:
        return Monotone.NEVER if self.harmless else Monotone.UNIONS

    def retained(self, partition: Partition, among: Mask) -> Mask:
        groups = self._values(partition).some(among)
        close = self._distance(groups) <= self._most + SLACK
        if isinstance(groups, Groups) and self.harmless:
            close |= groups.total(harmful(groups, self.harmless)[groups.values].astype(np.int64)) == 0
        retained = np.zeros(len(among), np.bool_)
        retained[among] = close
        return retained

    @property
    def bounding(self) -> bool:
        return not self.harmless

    def releasable(self, partition: Partition, rows: Rows, met: Mask) -> Rows:
        """Return an upper bound of the rows of each class that lie in close classes within it.

        The union of close classes is close, so the bound is the size of the largest close part of a class.
        """
        far = ~met & (rows > 0)
        if self.harmless or not far.any():
            return rows
        groups, bounds = self._values(partition).some(far), rows.copy()
        bounds[far] = np.minimum(rows[far], self._largest(groups, self._most + 2 * SLACK))
        return bounds

    def measured(self, groups: Groups) -> PerGroup:
        return self._distance(groups)

    def claim(self, form: Form) -> ClosenessClaim:
        condition = ALL_ROWS if form.left_out else DISTANT if self.column in form.untold else COUNTED
        return ClosenessClaim(t=exact(self.t), distance=self.distance, **self.stated(form, condition))

    def recount(self, table: WrittenTable) -> Recount:
        return recount_closeness(self.distance, table, self.column, exact(self.t), self.harmless)

    def _values(self, partition: Partition) -> Groups | Histograms:
        """Return the values of the column in each class, as histograms where they exist and apply."""
        histograms = None if self.harmless or self.distance == "ordered" else partition.histograms.get(self.column)
        return partition.groups(self.column) if histograms is None else histograms

    def _largest(self, groups: Groups | Histograms, t: float) -> Rows:
        if isinstance(groups, Histograms):
            lifts = groups.lifts if self.distance == "hierarchical" else ()
            largest = largest_close_of_all(groups, lifts, t)
            if largest is not None:
                return largest
        return largest_close(groups.sizes, self._lacking(groups), t)

    @cached_property
    def _most(self) -> float:
        return float(exact(self.t, "t"))

    @abstractmethod
    def _lacking(self, groups: Any) -> Lacking: ...

    @abstractmethod
    def _distance(self, groups: Any) -> PerGroup: ...


class EqualCloseness(Closeness):
    """t-closeness where any two values are equally far apart.

    Source: Li, Li & Venkatasubramanian 2007, Definition 2 and the equal distance.

    >>> import pyarrow as pa
    >>> sick = Groups(np.array([0, 1]), np.array([0, 1]), np.array([4, 4]), pa.array(["flu", "gout"]))
    >>> EqualCloseness("sick", "0.4").met(Partition(np.array([4, 4]), {"sick": sick})).tolist()
    [False, False]
    """

    distance: ClassVar[str] = "equal"
    meaning: ClassVar[Meaning] = Meaning(
        "t-closeness",
        "how far the sensitive column among rows that share their quasi-identifiers is from the whole table, at most; "
        "any two values are equally far apart",
        Bound.AT_MOST,
    )

    def _distance(self, groups: Groups | Histograms) -> PerGroup:
        return equal(groups)

    def _lacking(self, groups: Groups | Histograms) -> Lacking:
        return lacking([groups])


class OrderedCloseness(Closeness):
    """t-closeness where values are as far apart as their places in order: for numbers and dates.

    Source: Li, Li & Venkatasubramanian 2007, the ordered distance.
    """

    distance: ClassVar[str] = "ordered"
    meaning: ClassVar[Meaning] = Meaning(
        "t-closeness, ordered",
        "how far it is from the whole table, at most; neighboring numbers, days or categories are close",
        Bound.AT_MOST,
    )

    def _distance(self, groups: Groups) -> PerGroup:
        return ordered(groups)

    def _lacking(self, groups: Groups) -> Lacking:
        return lacking_in_order(groups)


class HierarchicalCloseness(Closeness):
    """t-closeness where values are as far apart as the lowest label they share is high in the column's hierarchy.

    Source: Li, Li & Venkatasubramanian 2007, the hierarchical distance.
    """

    distance: ClassVar[str] = "hierarchical"
    meaning: ClassVar[Meaning] = Meaning(
        "t-closeness, hierarchical",
        "how far it is from the whole table, at most; values under one label are close",
        Bound.AT_MOST,
    )

    def _distance(self, groups: Groups | Histograms) -> PerGroup:
        return hierarchical(groups)

    def _lacking(self, groups: Groups | Histograms) -> Lacking:
        return lacking(levels_of(groups))


CLOSENESS: Mapping[str, type[Closeness]] = {
    criterion.distance: criterion for criterion in (EqualCloseness, OrderedCloseness, HierarchicalCloseness)
}
"""By the name of the distance."""
