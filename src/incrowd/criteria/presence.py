"""Presence: a criterion on how sure one may be that a person of the population is in the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from incrowd.core.claims.claim import Claim
from incrowd.core.rounding import Number, exact
from incrowd.core.terms import Theorem
from incrowd.criteria.criterion import Mask, Monotone
from incrowd.criteria.demand import HOMOGENEITY, PEOPLE, Form, TableDemand
from incrowd.criteria.k_map import ELSEWHERE
from incrowd.criteria.measure import Bound, Meaning, Measured, measured
from incrowd.criteria.partition import Partition
from incrowd.criteria.recount import Recount, WrittenTable
from incrowd.errors import InvalidParameter


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
    population that the table has no row of betrays all its people as absent, which no suppression undoes: then nothing
    may be released.  A suppressed class is outside the criterion, as in ARX; with `least` above 0 a reader who knows
    how classes were suppressed could still conclude from it, so suppress nothing there.

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
    """The name of the file that holds the population."""

    def __post_init__(self) -> None:
        if not 0 <= exact(self.least, "the least presence") <= exact(self.most, "the most presence") <= 1:
            raise InvalidParameter("presence lies between 0 and 1, and the least is not above the most.")

    @property
    def monotone(self) -> Monotone:
        """Unions."""
        return Monotone.UNIONS

    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes hold neither too many nor too few of their people."""
        least, most = exact(self.least, "the least presence"), exact(self.most, "the most presence")
        people = partition.people()
        if least > 0 and partition.outside:
            return np.zeros_like(among)
        few = partition.sizes * float(least.denominator) < people * float(least.numerator)
        many = partition.sizes * float(most.denominator) > people * float(most.numerator)
        return np.asarray(among & ~few & ~many)

    def measures(self, partition: Partition) -> Iterator[Measured]:
        """Return the least and the greatest share; whoever is in no class is known to be absent."""
        sizes, people = partition.sizes, partition.people()
        shares = np.divide(sizes, people, out=np.full(len(sizes), np.inf), where=people > 0)
        least = measured(self.least_meaning, shares, sizes, exact(self.least))
        outside = partition.outside and exact(self.least)
        yield replace(least, found=0.0, short=partition.rows) if outside else least
        yield measured(self.meaning, shares, sizes, exact(self.most))

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """Both bounds, and the population."""
        return str(exact(self.least)), str(exact(self.most)), self.population

    def claim(self, form: Form) -> PresenceClaim:
        """Claim it against the population."""
        return PresenceClaim(
            least=exact(self.least),
            most=exact(self.most),
            population=self.population,
            theorem=(self.theorem,),
            **form.basis(PEOPLE, (HOMOGENEITY,)),
        )

    def recount(self, table: WrittenTable) -> Recount:
        """Leave open what only the population shows."""
        del table
        return ELSEWHERE
