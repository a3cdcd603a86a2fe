"""Disclosure: a criterion on how far the share of a value in a class may be from its share in the whole table.

It is a set of bounds on single shares, p < u and p > v, and the shares of a union lie between those of its classes:
unions of classes that meet them meet them.  Values named as harmless are not bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from incrowd.core.claims.claim import Claim
from incrowd.core.rounding import Number, exact
from incrowd.core.terms import Exposure, Theorem
from incrowd.criteria.criterion import SLACK, Mask, Monotone
from incrowd.criteria.demand import ColumnClaim, ColumnDemand, Form
from incrowd.criteria.groups import Groups, PerGroup
from incrowd.criteria.likeness import greatest, none
from incrowd.criteria.measure import Bound, Meaning
from incrowd.criteria.partition import Partition, harmful
from incrowd.criteria.recount import SLACK as SLOW_SLACK
from incrowd.criteria.recount import Recount, WrittenTable, decided, shares, whole
from incrowd.errors import InvalidParameter

ABSENT = Exposure(
    "absent-values", "absent values: that nobody of a class has a value which it does not show is not hidden"
)


@dataclass(frozen=True, kw_only=True)
class DisclosureClaim(ColumnClaim):
    """Sensitive values are about as frequent in every class as among all rows."""

    kind = "δ-disclosure privacy"
    sentence = "Each sensitive value is about as frequent in every class as among all rows."

    disclosure: Fraction


@dataclass(frozen=True, kw_only=True)
class PresentDisclosureClaim(DisclosureClaim):
    """Sensitive values that a class shows are about as frequent there as among all rows."""

    kind = "δ-disclosure privacy of shown values"
    sentence = "Each sensitive value that a class shows is about as frequent there as among all rows."


@dataclass(frozen=True)
class DeltaDisclosure(ColumnDemand):
    """The share of every value in a class, over its share in the whole table, has a binary logarithm below δ in size.

    A value that occurs in the table and not in the class has an infinite one: it fails, as in the definition.

    Source: Brickell & Shmatikov 2008, Definition 1 (δ-disclosure privacy).
    """

    option: ClassVar[str] = "disclosure"
    parameter: ClassVar[str] = "delta"
    keys: ClassVar[tuple[str, ...]] = ("disclosure",)
    claimed: ClassVar[type[Claim]] = DisclosureClaim
    theorem: ClassVar[Theorem] = Theorem(
        "disclosure-counted",
        "Brickell & Shmatikov 2008, Definition 1, counted: the share of every value in a class, "
        "over its share in all rows, has a binary logarithm below δ in size",
    )

    meaning: ClassVar[Meaning] = Meaning(
        "δ-disclosure privacy",
        "how large the binary logarithm of a value's share among such rows over its share in the whole table is, up or "
        "down, at most; without limit where such rows lack a value that the table has; δ must be above it",
        Bound.BELOW,
    )
    everywhere: ClassVar[bool] = True

    column: str
    delta: Number
    harmless: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if exact(self.delta, "delta") <= 0:
            raise InvalidParameter("delta must be above 0: it is the largest logarithm that is allowed.")

    monotone = Monotone.UNIONS

    def retained(self, partition: Partition, among: Mask) -> Mask:
        groups = partition.groups(self.column)
        far = self._logs(groups) >= float(exact(self.delta, "delta")) - SLACK
        return np.asarray(among & none(groups, far) & ~self._lacking(groups))

    def measured(self, groups: Groups) -> PerGroup:
        return np.where(self._lacking(groups), np.inf, greatest(groups, self._logs(groups)))

    def claim(self, form: Form) -> DisclosureClaim:
        return DisclosureClaim(disclosure=exact(self.delta), **self.compared(form))

    def recount(self, table: WrittenTable) -> Recount:
        """Find the largest |log₂ p/q| in the file; a value that a class lacks breaks the bound.

        Suppressed rows may have values that the file lacks, so with suppression the file cannot show that it holds.
        """
        classes = table.classes(self.column)
        named = [value for value in whole(classes) if value not in self.harmless]
        lacking = any(not values[value] for values in classes.values() for value in named)
        worst, broken, _ = self._recounted(table)
        text = _words(math.inf if lacking else worst, exact(self.delta))
        return decided(text, holds=not table.left_out, broken=broken or lacking)

    def _logs(self, groups: Groups) -> PerGroup:
        """Return for each cell the size of the logarithm, nothing for harmless values."""
        counted = harmful(groups, self.harmless)[groups.values]
        return np.where(counted, np.abs(np.log2(groups.shares() / groups.overall[groups.values])), 0.0)

    def _lacking(self, groups: Groups) -> Mask:
        """Return which classes lack a harmful value that the table has."""
        hurting = harmful(groups, self.harmless)
        return np.asarray(groups.total(hurting[groups.values].astype(np.int64)) < np.count_nonzero(hurting))

    def _recounted(self, table: WrittenTable) -> tuple[float, bool, bool]:
        """Return the largest logarithm of values that occur, whether the bound is broken, and whether it holds."""
        worst, broken, holds, ratio = 0.0, False, True, 2 ** float(exact(self.delta))
        for here, everywhere, low, high in shares(table.classes(self.column), self.harmless, table.left_out):
            worst = max(worst, abs(math.log2(here / everywhere)))
            broken |= here >= high * ratio * (1 + SLOW_SLACK) or here <= low / ratio * (1 - SLOW_SLACK)
            holds &= here < low * ratio * (1 + SLOW_SLACK) and here > high / ratio * (1 - SLOW_SLACK)
        return worst, broken, holds


@dataclass(frozen=True)
class PresentDisclosure(DeltaDisclosure):
    """The same for the values that occur in a class: a value that it lacks is skipped.

    A class may then rule out values, which the definition forbids; ARX does so.  A value may be rare in a union and
    frequent enough in one of its classes, so no conclusion for unions holds.

    Source: ARX, δ-disclosure privacy; after Brickell & Shmatikov 2008, Definition 1.
    """

    option: ClassVar[str] = "present_disclosure"
    keys: ClassVar[tuple[str, ...]] = ("present disclosure",)
    claimed: ClassVar[type[Claim]] = PresentDisclosureClaim
    theorem: ClassVar[Theorem] = Theorem(
        "disclosure-of-shown-counted",
        "After Brickell & Shmatikov 2008, Definition 1, counted: the share of every value that a "
        "class shows, over its share in all rows, has a binary logarithm below δ in size",
    )

    meaning: ClassVar[Meaning] = Meaning(
        "δ-disclosure privacy of shown values",
        "the same for the values that such rows show; values that they lack are passed over",
        Bound.BELOW,
    )
    everywhere: ClassVar[bool] = False

    monotone = Monotone.NEVER

    def claim(self, form: Form) -> PresentDisclosureClaim:
        stated = self.compared(form)
        return PresentDisclosureClaim(
            disclosure=exact(self.delta), **{**stated, "not_protected": (ABSENT, *stated["not_protected"])}
        )

    def recount(self, table: WrittenTable) -> Recount:
        worst, broken, holds = self._recounted(table)
        return decided(_words(worst, exact(self.delta)), holds=holds, broken=broken)

    def _lacking(self, groups: Groups) -> Mask:
        return np.zeros(len(groups.starts), np.bool_)


def _words(worst: float, delta: Fraction) -> str:
    return f"the largest logarithm of a ratio of shares is {worst:.6g}, δ is {delta}"
