"""Presence: a criterion on how sure one may be that a person of the population is in the table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from incrowd.core.rounding import Number, exact
from incrowd.criteria.criterion import Criterion, Mask, Monotone
from incrowd.criteria.partition import Partition
from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class DeltaPresence(Criterion):
    """The share of a class of the population that is in the table lies between `least` and `most`.

    The share of a union is a mean of the shares of its classes: unions.  If `least` is above 0, a class of the
    population that the table has no row of betrays all its people as absent, which no suppression undoes: then nothing
    may be released.  A suppressed class is outside the criterion, as in ARX; with `least` above 0 a reader who knows
    how classes were suppressed could still conclude from it, so suppress nothing there.

    Source: Nergiz, Atzori & Clifton 2007, Definition 2 (δ-presence).

    >>> DeltaPresence(0, "0.5").met(Partition(np.array([1, 2]), population=np.array([4, 2]))).tolist()
    [True, False]
    """

    least: Number
    most: Number

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
