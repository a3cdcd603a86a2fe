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
from incrowd.core.terms import Theorem
from incrowd.criteria.criterion import Mask, Monotone
from incrowd.criteria.demand import COUNTED, HOMOGENEITY, Form, TableDemand
from incrowd.criteria.measure import Bound, Meaning, Measured
from incrowd.criteria.partition import Partition
from incrowd.criteria.recount import Recount, WrittenTable, at_most
from incrowd.errors import InvalidParameter

_ROUNDED = 1e-9
"""Relative slack of the first guess, which is in floats; whole numbers decide."""


@dataclass(frozen=True, kw_only=True)
class AverageRiskClaim(Claim):
    """Rows are hard to find, on average."""

    kind = "average risk"
    sentence = (
        "A person who is looked up is re-identified with at most this probability, on average over the published rows."
    )
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
    theorem: ClassVar[Theorem] = Theorem("average-risk-counted", "El Emam 2013, counted: classes over rows")

    meaning: ClassVar[Meaning] = Meaning(
        "average risk",
        "the mean over rows of one over the number of rows that share their quasi-identifiers",
        Bound.AT_MOST,
    )

    limit: Number

    def __post_init__(self) -> None:
        if not 0 < exact(self.limit, "the average risk") <= 1:
            raise InvalidParameter("the average risk must be above 0 and at most 1.")

    monotone = Monotone.UNIONS

    whole = True

    def retained(self, partition: Partition, among: Mask) -> Mask:
        """Return the classes that remain after suppressing the fewest, from the smallest on.

        This suppresses the fewest rows: without j classes the risk is (classes − j) over (rows − their rows), which is
        least for the j smallest, and they have the fewest rows of any j classes.  Ties are broken by order.
        """
        places = np.flatnonzero(among)
        places = places[np.argsort(partition.sizes[places], kind="stable")]
        retained = among.copy()
        retained[places[: _fewest(partition.sizes[places], exact(self.limit, "the average risk"))]] = False
        return retained

    def measures(self, partition: Partition) -> Iterator[Measured]:
        value = len(partition) / partition.rows if len(partition) else None
        short = int(partition.sizes[~self.met(partition)].sum())
        yield Measured(self.meaning, float(exact(self.limit)), value, short)

    @property
    def parameters(self) -> tuple[int | str, ...]:
        return (str(exact(self.limit)),)

    def claim(self, form: Form) -> AverageRiskClaim:
        basis = form.basis(COUNTED, (HOMOGENEITY,))
        return AverageRiskClaim(limit=exact(self.limit), theorem=(self.theorem,), **basis)

    def recount(self, table: WrittenTable) -> Recount:
        sizes = table.sizes()
        value = Fraction(len(sizes), sum(sizes)) if sizes else None
        return at_most(value, exact(self.limit), "the average risk is {}, its limit is {}")


def _fewest(sizes: NDArray[np.int64], limit: Fraction) -> int:
    """Return how many of the smallest classes to suppress so that the rest is at most `limit` times its rows.

    >>> _fewest(np.array([1, 1, 1, 7]), Fraction(1, 4))
    2
    """
    classes = len(sizes) - np.arange(len(sizes) + 1)
    rows = int(sizes.sum()) - np.concatenate(([0], np.cumsum(sizes)))
    number = int(np.argmax(classes <= rows * float(limit) * (1 + _ROUNDED)))  # no class is left in the end: that passes
    while int(classes[number]) * limit.denominator > int(rows[number]) * limit.numerator:
        number += 1
    return number
