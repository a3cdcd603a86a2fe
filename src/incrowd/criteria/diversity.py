"""Diversity: criteria on how many values of a sensitive column a class has, and how evenly.

Values listed as harmless ("healthy") are not a disclosure: a class without others meets every criterion here, and in
other classes they count as further values that a person could have, as in the original paper.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.claims.claim import Claim
from incrowd.core.rounding import Number, exact
from incrowd.core.terms import Theorem
from incrowd.criteria.criterion import SLACK, Mask, Monotone
from incrowd.criteria.demand import ColumnClaim, ColumnDemand, Form
from incrowd.criteria.groups import Groups, PerGroup, distinct, entropy, frequent, grassberger
from incrowd.criteria.measure import Bound, Meaning
from incrowd.criteria.partition import Partition, harmful
from incrowd.criteria.recount import NONE, Label, Recount, WrittenTable, at_least, at_most, hurting
from incrowd.errors import InvalidParameter


class Estimator(StrEnum):
    """How entropy is estimated: by the shares themselves, or corrected for small classes (Grassberger 2003)."""

    SHANNON = "shannon"
    GRASSBERGER = "grassberger"


@dataclass(frozen=True, kw_only=True)
class DistinctDiversityClaim(ColumnClaim):
    """Each class shows several sensitive values."""

    kind = "distinct l-diversity"
    sentence = "Each equivalence class has at least l values of the sensitive column."

    l: int  # noqa: E741 - the letter of the paper


@dataclass(frozen=True, kw_only=True)
class EntropyDiversityClaim(ColumnClaim):
    """The sensitive values of each class are well mixed."""

    kind = "entropy l-diversity"
    sentence = "The sensitive values of each class are at least as mixed as l equally common ones."

    l: Fraction  # noqa: E741 - the letter of the paper


@dataclass(frozen=True, kw_only=True)
class RecursiveDiversityClaim(ColumnClaim):
    """No sensitive value dominates a class, even if some others are ruled out."""

    kind = "recursive (c,l)-diversity"
    sentence = (
        "In each class the most frequent sensitive value is rarer than c times all but the l − 1 most frequent ones."
    )

    c: Fraction
    l: int  # noqa: E741 - the letter of the paper


@dataclass(frozen=True)
class DistinctDiversity(ColumnDemand):
    """At least l different values.  A larger class has no fewer: upward; with harmless values only unions preserve it.

    Source: Machanavajjhala, Gehrke, Kifer & Venkitasubramaniam 2006, the l-diversity principle in its simplest reading.
    """

    option: ClassVar[str] = "l"
    keys: ClassVar[tuple[str, ...]] = ("l",)
    claimed: ClassVar[type[Claim]] = DistinctDiversityClaim
    theorem: ClassVar[Theorem] = Theorem(
        "l-diversity-counted",
        "Machanavajjhala et al. 2006, counted: every class shows at least l values of the sensitive column",
    )
    general: ClassVar[bool] = True
    meaning: ClassVar[Meaning] = Meaning(
        "distinct l-diversity",
        "the fewest different sensitive values among rows that share their quasi-identifiers",
        Bound.AT_LEAST,
    )

    column: str
    l: int  # noqa: E741 - the letter of the paper
    harmless: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.l < 1:
            raise InvalidParameter("l must be at least 1; with 1, every class passes.")

    @property
    def monotone(self) -> Monotone:
        return Monotone.UNIONS if self.harmless else Monotone.UPWARD

    def retained(self, partition: Partition, among: Mask) -> Mask:
        groups = partition.groups(self.column)
        return np.asarray(among & ((distinct(groups) >= self.l) | _spared(groups, self.harmless)))

    @property
    def bound(self) -> int:
        return self.l

    def measured(self, groups: Groups) -> NDArray[np.int64]:
        return distinct(groups)

    @property
    def parameters(self) -> tuple[int | str, ...]:
        return (self.l,)

    def claim(self, form: Form) -> DistinctDiversityClaim:
        return DistinctDiversityClaim(l=self.l, **self.stated(form))

    def recount(self, table: WrittenTable) -> Recount:
        fewest = min((len(values) for values in hurting(table.classes(self.column), self.harmless)), default=None)
        return at_least(fewest, self.l, "the least diverse class shows {} values, l is {}")


@dataclass(frozen=True)
class EntropyDiversity(ColumnDemand):
    """The entropy of the values is at least ln l, and at least l values differ.

    With Shannon's entropy a union of classes that meet it meets it, because entropy is concave and the union's shares
    are a mean of theirs.  With Grassberger's estimator, or with harmless values, no conclusion for unions holds.

    Source: Machanavajjhala et al. 2006, Definition 4.1; Stammler, Katzenbeisser & Hamacher 2016 for the estimator.
    """

    option: ClassVar[str] = "entropy_l"
    parameter: ClassVar[str] = "l"
    keys: ClassVar[tuple[str, ...]] = ("entropy l",)
    claimed: ClassVar[type[Claim]] = EntropyDiversityClaim
    theorem: ClassVar[Theorem] = Theorem(
        "entropy-diversity-counted",
        "Machanavajjhala et al. 2006, Definition 4.1, counted: the entropy of every class is at least ln l",
    )
    general: ClassVar[bool] = True
    meaning: ClassVar[Meaning] = Meaning(
        "entropy l-diversity", "the same, where rare values count less: e to the least entropy", Bound.AT_LEAST
    )

    column: str
    l: Number  # noqa: E741 - the letter of the paper
    estimator: Estimator = Estimator.SHANNON
    harmless: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if exact(self.l, "l") < 1:
            raise InvalidParameter("l must be at least 1; with 1, every class passes.")

    @property
    def monotone(self) -> Monotone:
        plain = self.estimator is Estimator.SHANNON and not self.harmless
        return Monotone.UNIONS if plain else Monotone.NEVER

    def retained(self, partition: Partition, among: Mask) -> Mask:
        groups, least = partition.groups(self.column), float(exact(self.l, "l"))
        logs = np.log if self.estimator is Estimator.SHANNON else grassberger
        entropies = logs(groups.sizes) - groups.mean(groups.counts * logs(groups.counts)) / groups.sizes
        diverse = (entropies >= math.log(least) - SLACK) & (distinct(groups) >= least)
        return np.asarray(among & (diverse | _spared(groups, self.harmless)))

    def measured(self, groups: Groups) -> PerGroup:
        return entropy(groups)

    def claim(self, form: Form) -> EntropyDiversityClaim:
        return EntropyDiversityClaim(l=exact(self.l), **self.stated(form))

    def recount(self, table: WrittenTable) -> Recount:
        entropies = [_entropy(values) for values in hurting(table.classes(self.column), self.harmless)]
        least = round(math.exp(min(entropies)), 12) if entropies else None
        return at_least(least, exact(self.l), "e to the least entropy is {}, l is {}")


@dataclass(frozen=True)
class RecursiveDiversity(ColumnDemand):
    """The most frequent harmful value is rarer than c times what is left without it and the l − 2 most frequent others.

    Without harmless values that is r₁ < c·(r_l + … + r_m).  For a union of two classes: the count of any value is the
    sum of its counts, and the l − 1 most frequent together are at most the sum over both classes, so what is left is at
    least the sum; both inequalities add up.  Unions.

    Source: Machanavajjhala et al. 2006, Definitions 4.2 and 4.3 (recursive and positive disclosure-recursive).
    """

    option: ClassVar[str] = "recursive"
    keys: ClassVar[tuple[str, ...]] = ("c", "recursive l")
    claimed: ClassVar[type[Claim]] = RecursiveDiversityClaim
    theorem: ClassVar[Theorem] = Theorem(
        "recursive-diversity-counted",
        "Machanavajjhala et al. 2006, Definition 4.2, counted: the most frequent value of every "
        "class is rarer than c times all but the l − 1 most frequent",
    )
    meaning: ClassVar[Meaning] = Meaning(
        "recursive (c,l)-diversity",
        "how often the most frequent sensitive value occurs among such rows, over what is left without it and the "
        "l − 2 most frequent others, at most; c must be above it",
        Bound.BELOW,
    )

    column: str
    c: Number
    l: int  # noqa: E741 - the letter of the paper
    harmless: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.l < 2:
            raise InvalidParameter("l must be at least 2 in recursive diversity.")
        if exact(self.c, "c") <= 0:
            raise InvalidParameter("c must be above 0 in recursive diversity.")

    monotone = Monotone.UNIONS

    def retained(self, partition: Partition, among: Mask) -> Mask:
        groups = partition.groups(self.column)
        most, others = frequent(groups, harmful(groups, self.harmless), self.l - 2)
        c = exact(self.c, "c")
        left = groups.sizes - most - others
        return np.asarray(among & ((most * float(c.denominator) < left * float(c.numerator)) | (most == 0)))

    @property
    def bound(self) -> Fraction:
        return exact(self.c)

    def measured(self, groups: Groups) -> PerGroup:
        most, others = frequent(groups, harmful(groups, self.harmless), self.l - 2)
        left = groups.sizes - most - others
        return np.asarray(np.divide(most, left, out=np.where(most > 0, np.inf, 0.0), where=left > 0))

    @property
    def parameters(self) -> tuple[int | str, ...]:
        return str(exact(self.c)), self.l

    def claim(self, form: Form) -> RecursiveDiversityClaim:
        return RecursiveDiversityClaim(c=exact(self.c), l=self.l, **self.stated(form))

    def recount(self, table: WrittenTable) -> Recount:
        highest = max(
            (_ratio(values, self.l, self.harmless) for values in hurting(table.classes(self.column), self.harmless)),
            default=None,
        )
        words = "the most frequent value of a class is at most {} times the rest, c is {}"
        text = at_most(highest, exact(self.c), words).text
        return Recount(text, highest is None or highest < float(exact(self.c)) * (1 - 1e-12))


def _spared(groups: Groups, harmless: frozenset[str]) -> NDArray[np.bool_] | np.bool_:
    """Return which classes show nothing but harmless values."""
    if not harmless:
        return np.bool_(False)
    return np.asarray(groups.total(harmful(groups, harmless)[groups.values].astype(np.int64)) == 0)


def _entropy(values: Counter[Label]) -> float:
    """Return the entropy of a class, written out.

    >>> round(_entropy(Counter(flu=2, gout=2)), 9) == round(math.log(2), 9)
    True
    """
    return -math.fsum(n / values.total() * math.log(n / values.total()) for n in values.values())


def _ratio(values: Counter[Label], l: int, harmless: frozenset[str] = NONE) -> float:  # noqa: E741
    """Return the most frequent harmful value over what is left without it and the l − 2 most frequent others.

    >>> _ratio(Counter(flu=3, gout=2, cold=1), 3)
    3.0
    """
    worst = max((value for value in values if value not in harmless), key=lambda value: values[value])
    others = sorted((n for value, n in values.items() if value != worst), reverse=True)
    left = sum(others[max(0, l - 2) :])
    return values[worst] / left if left else math.inf
