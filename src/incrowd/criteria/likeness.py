"""Likeness: criteria on how much more, or less, frequent a value may be in a class than in the whole table.

Each is a set of bounds on single shares, p ≤ u or p ≥ v, and the shares of a union lie between those of its classes:
unions of classes that meet them meet them.  Values named as harmless are not bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.core.rounding import Number, exact
from incrowd.criteria.criterion import SLACK, Criterion, Mask, Monotone
from incrowd.criteria.groups import Each, Groups
from incrowd.criteria.partition import Partition, harmful
from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class BasicLikeness(Criterion):
    """No value is more than 1 + β times as frequent in a class as in the whole table.

    Source: Cao & Karras 2012, Definition 2 (basic β-likeness): (p − q)/q ≤ β wherever p > q.
    """

    column: str
    beta: Number
    harmless: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if exact(self.beta, "beta") <= 0:
            raise InvalidParameter("beta is above 0: the relative gain in frequency that is allowed.")

    @property
    def monotone(self) -> Monotone:
        """Unions."""
        return Monotone.UNIONS

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes show no value much more often than the whole table does."""
        groups = partition.groups(self.column)
        gains = groups.shares() / _overall(groups)[groups.values] - 1.0
        allowed = np.where(harmful(groups, self.harmless), self._allowed(groups), math.inf)
        return np.asarray(among & _none(groups, gains > allowed[groups.values] + SLACK))

    def _allowed(self, groups: Groups) -> Each:
        return np.full(len(groups.labels), float(exact(self.beta, "beta")))


class EnhancedLikeness(BasicLikeness):
    """No value is more than 1 + min(β, −ln q) times as frequent in a class as in the whole table, where it has share q.

    Source: Cao & Karras 2012, Definition 3 (enhanced β-likeness), which bounds values that are frequent everywhere too.
    """

    def _allowed(self, groups: Groups) -> Each:
        return np.minimum(super()._allowed(groups), -np.log(_overall(groups)))


@dataclass(frozen=True)
class DeltaDisclosure(Criterion):
    """The share of every value in a class, over its share in the whole table, has a binary logarithm below δ in size.

    A value that occurs in the table and not in the class has an infinite one: it fails, as the definition says.  With
    `absent` set to false such values are passed over, as ARX does, and then nothing is concluded for unions.

    Source: Brickell & Shmatikov 2008, Definition 1 (δ-disclosure privacy).
    """

    column: str
    delta: Number
    harmless: frozenset[str] = frozenset()
    absent: bool = True

    def __post_init__(self) -> None:
        if exact(self.delta, "delta") <= 0:
            raise InvalidParameter("delta is above 0: the largest logarithm that is allowed.")

    @property
    def monotone(self) -> Monotone:
        """Unions, if absent values count."""
        return Monotone.UNIONS if self.absent else Monotone.NEVER

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes show every value about as often as the whole table does."""
        groups = partition.groups(self.column)
        hurting = harmful(groups, self.harmless)
        logs = np.abs(np.log2(groups.shares() / _overall(groups)[groups.values]))
        far = (logs >= float(exact(self.delta, "delta")) - SLACK) & hurting[groups.values]
        fine = _none(groups, far)
        if self.absent:
            fine &= groups.total(hurting[groups.values].astype(np.int64)) == np.count_nonzero(hurting)
        return np.asarray(among & fine)


def _overall(groups: Groups) -> Each:
    found: Each = groups.totals / max(1, int(groups.counts.sum()))
    return found


def _none(groups: Groups, cells: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which groups have no such cell."""
    found: NDArray[np.bool_] = groups.total(cells.astype(np.int64)) == 0
    return found
