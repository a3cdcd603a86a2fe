"""k-map: at least k people of the population look like each released row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from incrowd.core.claims.claim import Claim
from incrowd.core.terms import Exposure, Theorem
from incrowd.criteria.criterion import Mask, Monotone
from incrowd.criteria.demand import HOMOGENEITY, PEOPLE, Form, TableDemand
from incrowd.criteria.measure import Bound, Meaning, Measured, measured
from incrowd.criteria.recount import Recount, WrittenTable
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.criteria.partition import Partition

INSIDERS = Exposure(
    "insiders",
    "insiders: somebody who knows who is in the table sees its classes, which may be as small as k-anonymity says",
)
ELSEWHERE = Recount("it compares with a population, which is not here: the file alone does not show it", holds=None)


@dataclass(frozen=True, kw_only=True)
class KMapClaim(Claim):
    """Each published row has company in the population."""

    kind = "k-map"
    sentence = "At least k people of the population look like each published row."
    rank: ClassVar[int] = 41

    k: int
    population: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class KMap(TableDemand):
    """At least k people of the population look like each released row.  People only join when classes merge: upward.

    Source: Sweeney 2001 (doctoral thesis), the model k-map; El Emam & Dankar 2008.

    >>> from incrowd.criteria.partition import Partition
    >>> KMap(3).met(Partition(np.array([1, 1]), population=np.array([9, 2]))).tolist()
    [True, False]
    """

    keys: ClassVar[tuple[str, ...]] = ("k-map", "population")
    claimed: ClassVar[type[Claim]] = KMapClaim
    theorem: ClassVar[Theorem] = Theorem(
        "k-map-counted", "Sweeney 2001, counted: at least k people of the population look like each released row"
    )

    meaning: ClassVar[Meaning] = Meaning(
        "k-map", "the fewest people of the population who share the quasi-identifiers of a row", Bound.AT_LEAST
    )

    k: int
    population: str = ""
    """The name of the file that holds the population."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InvalidParameter("k is at least 1: with 1, every class passes.")

    @property
    def monotone(self) -> Monotone:
        """Upward."""
        return Monotone.UPWARD

    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes hold at least k people of the population."""
        return np.asarray(among & (partition.people() >= self.k))

    def measures(self, partition: Partition) -> Iterator[Measured]:
        """Return the fewest people behind a class."""
        yield measured(self.meaning, partition.people(), partition.sizes, self.k)

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """The k, and the population."""
        return self.k, self.population

    def claim(self, form: Form) -> KMapClaim:
        """Claim it against the population, which whoever knows who is in the table does not need."""
        basis = form.basis(PEOPLE, (HOMOGENEITY, INSIDERS))
        return KMapClaim(k=self.k, population=self.population, theorem=(self.theorem,), **basis)

    def recount(self, table: WrittenTable) -> Recount:
        """Leave open what only the population shows."""
        del table
        return ELSEWHERE
