"""Population: criteria that compare with a population, k-map and δ-presence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from incrowd.core.claims.claim import Claim
from incrowd.core.rounding import Number, exact
from incrowd.core.terms import Exposure, Theorem
from incrowd.criteria.criterion import Mask, Monotone
from incrowd.criteria.demand import HOMOGENEITY, PEOPLE, Form, TableDemand
from incrowd.criteria.measure import Bound, Meaning, Measured, measured
from incrowd.criteria.partition import Partition
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
    """The name of the population file."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InvalidParameter("k must be at least 1; with 1, every class passes.")

    monotone = Monotone.UPWARD

    def retained(self, partition: Partition, among: Mask) -> Mask:
        return np.asarray(among & (partition.people() >= self.k))

    def measures(self, partition: Partition) -> Iterator[Measured]:
        yield measured(self.meaning, partition.people(), partition.sizes, self.k)

    @property
    def parameters(self) -> tuple[int | str, ...]:
        return self.k, self.population

    def claim(self, form: Form) -> KMapClaim:
        basis = form.basis(PEOPLE, (HOMOGENEITY, INSIDERS))
        return KMapClaim(k=self.k, population=self.population, theorem=(self.theorem,), **basis)

    def recount(self, table: WrittenTable) -> Recount:
        del table
        return ELSEWHERE


@dataclass(frozen=True, kw_only=True)
class PresenceClaim(Claim):
    """Nobody of the population is known to be in the table, or to be absent."""

    kind = "δ-presence"
    sentence = "Of the people who look like a published row, the share who are in the table is bounded."
    rank: ClassVar[int] = 41

    least: Fraction
    most: Fraction
    population: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class DeltaPresence(TableDemand):
    """The share of a class of the population that is in the table lies between `least` and `most`.

    The share of a union is a mean of the shares of its classes: unions.  If `least` is above 0, a class of the
    population without a row in the table discloses that all its people are absent, which suppression cannot repair:
    then nothing may be released.  A suppressed class is outside the criterion, as in ARX; with `least` above 0 a reader
    who knows how classes were suppressed could still draw conclusions, so suppress nothing there.

    Source: Nergiz, Atzori & Clifton 2007, Definition 2 (δ-presence).

    >>> DeltaPresence(0, "0.5").met(Partition(np.array([1, 2]), population=np.array([4, 2]))).tolist()
    [True, False]
    """

    keys: ClassVar[tuple[str, ...]] = ("least presence", "most presence", "population")
    claimed: ClassVar[type[Claim]] = PresenceClaim
    theorem: ClassVar[Theorem] = Theorem(
        "presence-counted",
        "Nergiz, Atzori & Clifton 2007, Definition 2, counted: the share of the people of each "
        "released class who are in the table lies between two bounds",
    )

    meaning: ClassVar[Meaning] = Meaning(
        "δ-presence, at most",
        "the share of people with the same quasi-identifiers who are in the table, at most",
        Bound.AT_MOST,
    )
    least_meaning: ClassVar[Meaning] = Meaning(
        "δ-presence, at least",
        "the share of people with the same quasi-identifiers who are in the table, at least",
        Bound.AT_LEAST,
    )

    least: Number
    most: Number
    population: str = ""
    """The name of the population file."""

    def __post_init__(self) -> None:
        if not 0 <= exact(self.least, "the least presence") <= exact(self.most, "the most presence") <= 1:
            raise InvalidParameter("presence must lie between 0 and 1, and the least must not exceed the most.")

    monotone = Monotone.UNIONS

    def retained(self, partition: Partition, among: Mask) -> Mask:
        least, most = exact(self.least, "the least presence"), exact(self.most, "the most presence")
        people = partition.people()
        if least > 0 and partition.outside:
            return np.zeros_like(among)
        few = partition.sizes * float(least.denominator) < people * float(least.numerator)
        many = partition.sizes * float(most.denominator) > people * float(most.numerator)
        return np.asarray(among & ~few & ~many)

    def measures(self, partition: Partition) -> Iterator[Measured]:
        sizes, people = partition.sizes, partition.people()
        shares = np.divide(sizes, people, out=np.full(len(sizes), np.inf), where=people > 0)
        least = measured(self.least_meaning, shares, sizes, exact(self.least))
        outside = partition.outside and exact(self.least)
        yield replace(least, value=0.0, short=partition.rows) if outside else least
        yield measured(self.meaning, shares, sizes, exact(self.most))

    @property
    def parameters(self) -> tuple[int | str, ...]:
        return str(exact(self.least)), str(exact(self.most)), self.population

    def claim(self, form: Form) -> PresenceClaim:
        return PresenceClaim(
            least=exact(self.least),
            most=exact(self.most),
            population=self.population,
            theorem=(self.theorem,),
            **form.basis(PEOPLE, (HOMOGENEITY,)),
        )

    def recount(self, table: WrittenTable) -> Recount:
        del table
        return ELSEWHERE
