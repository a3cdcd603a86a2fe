"""Likeness: criteria on how much more, or less, frequent a value may be in a class than in the whole table.

Each is a set of bounds on single shares, p ≤ u or p ≥ v, and the shares of a union lie between those of its classes:
unions of classes that meet them meet them.  Values named as harmless are not bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.claims.claim import Claim
from incrowd.core.rounding import Number, exact
from incrowd.core.terms import Theorem
from incrowd.criteria.criterion import SLACK, Mask, Monotone
from incrowd.criteria.demand import ColumnClaim, ColumnDemand, Form
from incrowd.criteria.groups import Groups, PerGroup
from incrowd.criteria.measure import TOLERANCE, Bound, Meaning
from incrowd.criteria.partition import Partition, harmful
from incrowd.criteria.recount import SLACK as SLOW_SLACK
from incrowd.criteria.recount import Recount, WrittenTable, decided, shares
from incrowd.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True)
class LikenessClaim(ColumnClaim):
    """No sensitive value is much more frequent in a class than among all rows."""

    kind = "β-likeness"
    sentence = "No sensitive value is more than 1 + β times as frequent in a class as among all rows."

    beta: Fraction


@dataclass(frozen=True, kw_only=True)
class EnhancedLikenessClaim(LikenessClaim):
    """The same, with less for values that are frequent everywhere."""

    kind = "enhanced β-likeness"
    sentence = (
        "No sensitive value is more than 1 + β times as frequent in a class as among all rows, and values that are "
        "frequent everywhere are held to less."
    )


@dataclass(frozen=True)
class BasicLikeness(ColumnDemand):
    """No value is more than 1 + β times as frequent in a class as in the whole table.

    Source: Cao & Karras 2012, Definition 2 (basic β-likeness): (p − q)/q ≤ β wherever p > q.
    """

    option: ClassVar[str] = "beta"
    parameter: ClassVar[str] = "beta"
    keys: ClassVar[tuple[str, ...]] = ("beta",)
    claimed: ClassVar[type[Claim]] = LikenessClaim
    theorem: ClassVar[Theorem] = Theorem(
        "likeness-counted",
        "Cao & Karras 2012, Definition 2, counted: no value is more than 1 + β times as frequent "
        "in a class as in all rows",
    )

    meaning: ClassVar[Meaning] = Meaning(
        "β-likeness",
        "by what factor beyond 1 a sensitive value is more frequent among such rows than in the whole table, at most",
        Bound.AT_MOST,
    )

    column: str
    beta: Number
    harmless: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if exact(self.beta, "beta") <= 0:
            raise InvalidParameter("beta must be above 0: it is the relative gain in frequency that is allowed.")

    monotone = Monotone.UNIONS

    def retained(self, partition: Partition, among: Mask) -> Mask:
        groups = partition.groups(self.column)
        gains = groups.shares() / groups.overall[groups.values] - 1.0
        allowed = np.where(harmful(groups, self.harmless), self._allowed(groups), math.inf)
        return np.asarray(among & none(groups, gains > allowed[groups.values] + SLACK))

    def measured(self, groups: Groups) -> PerGroup:
        return greatest(groups, self._gains(groups))

    def claim(self, form: Form) -> LikenessClaim:
        return LikenessClaim(beta=exact(self.beta), **self.compared(form))

    def recount(self, table: WrittenTable) -> Recount:
        gains, holds, broken = [0.0], True, False
        for here, everywhere, low, high in shares(table.classes(self.column), self.harmless, table.left_out):
            gains.append(here / everywhere - 1)
            holds &= here <= self._most(low) + SLOW_SLACK
            broken |= here > self._most(high) + SLOW_SLACK
        largest = f"{max(gains):.6g}, β is {exact(self.beta)}"
        text = f"the share of a value grows in a class by a factor of 1 + {largest}"
        return decided(text, holds=holds, broken=broken)

    def _gains(self, groups: Groups) -> PerGroup:
        """Return for each cell by how much its value is more frequent there than in the whole table."""
        counted = harmful(groups, self.harmless)[groups.values]
        return np.where(counted, groups.shares() / groups.overall[groups.values] - 1.0, 0.0)

    def _allowed(self, groups: Groups) -> PerGroup:
        return np.full(len(groups.labels), float(exact(self.beta, "beta")))

    def _most(self, share: float) -> float:
        """Return the greatest share that a value may have in a class, from its share in all rows."""
        return share * (1 + float(exact(self.beta)))


class EnhancedLikeness(BasicLikeness):
    """No value is more than 1 + min(β, −ln q) times as frequent in a class as in the whole table, where it has share q.

    Source: Cao & Karras 2012, Definition 3 (enhanced β-likeness), which bounds values that are frequent everywhere too.
    """

    option: ClassVar[str] = "enhanced_beta"
    keys: ClassVar[tuple[str, ...]] = ("enhanced beta",)
    claimed: ClassVar[type[Claim]] = EnhancedLikenessClaim
    theorem: ClassVar[Theorem] = Theorem(
        "enhanced-likeness-counted",
        "Cao & Karras 2012, Definition 3, counted: no value of share q in all rows is more than 1"
        " + min(β, −ln q) times as frequent in a class",
    )

    meaning: ClassVar[Meaning] = Meaning(
        "enhanced β-likeness",
        "by what factor beyond 1 a sensitive value is more frequent among such rows, at most; without limit where that "
        "is above −ln of the value's share in the whole table",
        Bound.AT_MOST,
    )

    def measured(self, groups: Groups) -> PerGroup:
        gains = self._gains(groups)
        beyond = gains > -np.log(groups.overall[groups.values]) + TOLERANCE
        return greatest(groups, np.where(beyond, np.inf, gains))

    def claim(self, form: Form) -> EnhancedLikenessClaim:
        return EnhancedLikenessClaim(beta=exact(self.beta), **self.compared(form))

    def _allowed(self, groups: Groups) -> PerGroup:
        return np.minimum(super()._allowed(groups), -np.log(groups.overall))

    def _most(self, share: float) -> float:
        return share * (1 + min(float(exact(self.beta)), -math.log(share))) if share else 0.0


def greatest(groups: Groups, cells: PerGroup) -> PerGroup:
    """Return the greatest number of a cell in each group."""
    return np.maximum.reduceat(cells, groups.starts) if len(groups.starts) else np.zeros(0)


def none(groups: Groups, cells: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which groups have no such cell."""
    return np.asarray(groups.total(cells.astype(np.int64)) == 0)
