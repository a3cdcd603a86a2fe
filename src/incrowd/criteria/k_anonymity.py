"""k-anonymity: every equivalence class has at least k rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from incrowd.core.claims.privacy import Anonymity
from incrowd.core.terms import Theorem
from incrowd.criteria.criterion import Mask, Monotone, Rows
from incrowd.criteria.demand import COUNTED, HOMOGENEITY, Form, TableDemand
from incrowd.criteria.measure import Bound, Meaning, Measured, measured
from incrowd.criteria.partition import Partition
from incrowd.criteria.recount import Recount, WrittenTable, at_least
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim

RELEASED = Meaning(
    "k-anonymity, all released columns", "the fewest rows that share everything that is released", Bound.AT_LEAST
)
SUBSETS = Meaning(
    "k-anonymity of subsets",
    "the fewest rows that share their values in some of their quasi-identifiers, so many at a time",
    Bound.AT_LEAST,
)


@dataclass(frozen=True)
class KAnonymity(TableDemand):
    """Every equivalence class has at least k rows.  Classes only grow when they merge: upward.

    Source: Samarati & Sweeney 1998; Samarati 2001; Sweeney 2002.

    >>> KAnonymity(3).met(Partition(np.array([5, 2]))).tolist()
    [True, False]
    """

    keys: ClassVar[tuple[str, ...]] = ("k",)
    claimed: ClassVar[type[Claim]] = Anonymity
    theorem: ClassVar[Theorem] = Theorem(
        "samarati-1998-counted",
        "Samarati & Sweeney 1998, counted: every combination of the quasi-identifiers occurs at least k times",
    )

    meaning: ClassVar[Meaning] = Meaning(
        "k-anonymity", "the fewest rows that share their quasi-identifiers", Bound.AT_LEAST
    )

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InvalidParameter("k must be at least 1; with 1, every class passes.")

    monotone = Monotone.UPWARD

    def retained(self, partition: Partition, among: Mask) -> Mask:
        return np.asarray(among & (partition.sizes >= self.k))

    def releasable(self, partition: Partition, rows: Rows, met: Mask) -> Rows:
        del partition, met
        return np.where(rows >= self.k, rows, 0)

    def measures(self, partition: Partition) -> Iterator[Measured]:
        yield measured(self.meaning, partition.sizes, partition.sizes, self.k)

    @property
    def parameters(self) -> tuple[int | str, ...]:
        return (self.k,)

    def claim(self, form: Form) -> Anonymity:
        people = math.ceil(self.k / form.unit.max_rows) if form.unit.max_rows > 1 else None
        return Anonymity(k=self.k, people=people, theorem=(self.theorem,), **form.basis(COUNTED, (HOMOGENEITY,)))

    def recount(self, table: WrittenTable) -> Recount:
        return at_least(table.smallest(), self.k, "the smallest class has {} rows, k is {}")
