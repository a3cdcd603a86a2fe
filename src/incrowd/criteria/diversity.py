"""Diversity: criteria on how many values of a sensitive column a class shows, and how evenly.

Values named as harmless ("healthy") are no disclosure: a class that shows nothing else meets every criterion here, and
in other classes they count as one more thing a person could have, as in the original paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from incrowd.core.rounding import Number, exact
from incrowd.criteria.criterion import SLACK, Criterion, Mask, Monotone
from incrowd.criteria.groups import Groups
from incrowd.criteria.partition import Partition, harmful
from incrowd.criteria.variety import distinct, frequent, grassberger
from incrowd.errors import InvalidParameter


class Estimator(StrEnum):
    """How entropy is estimated: by the shares themselves, or corrected for small classes (Grassberger 2003)."""

    SHANNON = "shannon"
    GRASSBERGER = "grassberger"


@dataclass(frozen=True)
class DistinctDiversity(Criterion):
    """At least l different values.  A larger class shows no fewer: upward; with harmless values only unions keep it.

    Source: Machanavajjhala, Gehrke, Kifer & Venkitasubramaniam 2006, the l-diversity principle in its simplest reading.
    """

    column: str
    l: int  # noqa: E741 (the name that everyone knows it by)
    harmless: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.l < 1:
            raise InvalidParameter("l is at least 1: with 1, every class passes.")

    @property
    def monotone(self) -> Monotone:
        """Upward; unions where values are harmless: a class of them alone may be joined by too few others."""
        return Monotone.UNIONS if self.harmless else Monotone.UPWARD

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes show at least l values, or none that hurts."""
        groups = partition.groups(self.column)
        return np.asarray(among & ((distinct(groups) >= self.l) | _spared(groups, self.harmless)))


@dataclass(frozen=True)
class EntropyDiversity(Criterion):
    """The entropy of the values is at least ln l, and at least l values differ.

    With Shannon's entropy a union of classes that meet it meets it, because entropy is concave and the union's shares
    are a mean of theirs.  With Grassberger's estimator, or with harmless values, nothing is concluded.

    Source: Machanavajjhala et al. 2006, Definition 4.1; Stammler, Katzenbeisser & Hamacher 2016 for the estimator.
    """

    column: str
    l: Number  # noqa: E741 (the name that everyone knows it by)
    estimator: Estimator = Estimator.SHANNON
    harmless: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if exact(self.l, "l") < 1:
            raise InvalidParameter("l is at least 1: with 1, every class passes.")

    @property
    def monotone(self) -> Monotone:
        """Unions for Shannon's entropy."""
        plain = self.estimator is Estimator.SHANNON and not self.harmless
        return Monotone.UNIONS if plain else Monotone.NEVER

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes are diverse enough, or show nothing that hurts."""
        groups, least = partition.groups(self.column), float(exact(self.l, "l"))
        logs = np.log if self.estimator is Estimator.SHANNON else grassberger
        entropies = logs(groups.sizes) - groups.mean(groups.counts * logs(groups.counts)) / groups.sizes
        diverse = (entropies >= math.log(least) - SLACK) & (distinct(groups) >= least)
        return np.asarray(among & (diverse | _spared(groups, self.harmless)))


@dataclass(frozen=True)
class RecursiveDiversity(Criterion):
    """The most frequent harmful value is rarer than c times what is left without it and the l − 2 most frequent others.

    Without harmless values that is r₁ < c·(r_l + … + r_m).  For a union of two classes: the count of any value is the
    sum of its counts, and the l − 1 most frequent together are at most the sum over both classes, so what is left is at
    least the sum; both inequalities add up.  Unions.

    Source: Machanavajjhala et al. 2006, Definitions 4.2 and 4.3 (recursive and positive disclosure-recursive).
    """

    column: str
    c: Number
    l: int  # noqa: E741 (the name that everyone knows it by)
    harmless: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.l < 2:
            raise InvalidParameter("l is at least 2 in recursive diversity.")
        if exact(self.c, "c") <= 0:
            raise InvalidParameter("c is above 0 in recursive diversity.")

    @property
    def monotone(self) -> Monotone:
        """Unions."""
        return Monotone.UNIONS

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes are diverse enough, or show nothing that hurts."""
        groups = partition.groups(self.column)
        most, others = frequent(groups, harmful(groups, self.harmless), self.l - 2)
        c = exact(self.c, "c")
        left = groups.sizes - most - others
        return np.asarray(among & ((most * float(c.denominator) < left * float(c.numerator)) | (most == 0)))


def _spared(groups: Groups, harmless: frozenset[str]) -> NDArray[np.bool_] | np.bool_:
    """Return which classes show nothing but harmless values."""
    if not harmless:
        return np.bool_(False)
    return np.asarray(groups.total(harmful(groups, harmless)[groups.values].astype(np.int64)) == 0)
