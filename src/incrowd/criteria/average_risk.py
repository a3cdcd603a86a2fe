"""Average risk: a criterion about all released classes together; the smallest are suppressed until it is met."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.claims.claim import Claim
from incrowd.core.rounding import Number, exact
from incrowd.criteria.criterion import Mask, Monotone, smallest_first
from incrowd.criteria.demand import COUNTED, HOMOGENEITY, Form, TableDemand
from incrowd.criteria.measure import Bound, Meaning, Measured
from incrowd.criteria.partition import Partition
from incrowd.criteria.recount import Recount, Written, at_most
from incrowd.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True)
class AverageRiskClaim(Claim):
    """Rows are hard to find, on average."""

    kind = "average risk"
    sentence = "Whoever is looked up is found with at most this chance, on average over the published rows."
    rank: ClassVar[int] = 42

    limit: Fraction
    columns: tuple[str, ...]


@dataclass(frozen=True)
class AverageRisk(TableDemand):
    """The mean over released rows of one over the size of their class is at most a limit: classes over rows.

    Without suppression the rows stay and classes only merge, so a node that meets it vouches for all coarser ones.

    Source: Truta, Fotouhi & Barth-Jones 2004; El Emam 2013, the average (marketer) risk.

    >>> AverageRisk("1/4").met(Partition(np.array([1, 2, 7]))).tolist()
    [False, True, True]
    """

    keys: ClassVar[tuple[str, ...]] = ("average risk",)
    claimed: ClassVar[type[Claim]] = AverageRiskClaim
    theorem: ClassVar[str] = "El Emam 2013, counted: classes over rows"

    meaning: ClassVar[Meaning] = Meaning(
        "average risk",
        "the mean over rows of one over the number of rows that share their quasi-identifiers",
        Bound.AT_MOST,
    )

    limit: Number

    def __post_init__(self) -> None:
        if not 0 < exact(self.limit, "the average risk") <= 1:
            raise InvalidParameter("an average risk lies above 0 and at most at 1.")

    @property
    def monotone(self) -> Monotone:
        """Unions."""
        return Monotone.UNIONS

    @property
    def whole(self) -> bool:
        """It is about all released classes together."""
        return True

    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return the classes that are left after the fewest sizes, from the smallest on, are suppressed."""
        cuts, classes, rows = _left(partition.sizes[among])
        limit = exact(self.limit, "the average risk")
        passes = classes * float(limit.denominator) <= rows * float(limit.numerator)
        return smallest_first(partition, among, cuts, np.asarray(passes))

    def measures(self, partition: Partition) -> Iterator[Measured]:
        """Return classes over rows, and how many rows are in classes that would have to go."""
        found = len(partition) / partition.rows if len(partition) else None
        short = int(partition.sizes[~self.met(partition)].sum())
        yield Measured(self.meaning, float(exact(self.limit)), found, short)

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """The limit."""
        return (str(exact(self.limit)),)

    def claim(self, form: Form) -> AverageRiskClaim:
        """Claim it of all classes together."""
        grounds = form.grounds(COUNTED, (HOMOGENEITY,))
        return AverageRiskClaim(limit=exact(self.limit), theorem=self.theorem, **grounds)

    def recount(self, table: Written) -> Recount:
        """Hold the mean over rows of one over the size of their class against the limit."""
        sizes = table.sizes()
        found = Fraction(len(sizes), sum(sizes)) if sizes else None
        return at_most(found, exact(self.limit), "the average risk is {}, its limit is {}")


def _left(sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return cuts, from 0 through the sizes that occur, and how many classes and rows are above each."""
    each, times = np.unique(sizes, return_counts=True)
    classes = times.sum() - np.concatenate(([0], np.cumsum(times)))
    rows = (each * times).sum() - np.concatenate(([0], np.cumsum(each * times)))
    return np.concatenate(([0], each)).astype(np.int64), classes.astype(np.int64), rows.astype(np.int64)
