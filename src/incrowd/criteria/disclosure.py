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
from incrowd.criteria.criterion import SLACK, Mask, Monotone
from incrowd.criteria.demand import ColumnClaim, ColumnDemand, Form
from incrowd.criteria.groups import Each, Groups
from incrowd.criteria.likeness import greatest, none, overall
from incrowd.criteria.measure import Bound, Meaning
from incrowd.criteria.partition import Partition, harmful
from incrowd.criteria.recount import SLACK as SLOW_SLACK
from incrowd.criteria.recount import Recount, Written, decided, shares, whole
from incrowd.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True)
class DisclosureClaim(ColumnClaim):
    """Sensitive values are about as frequent in every class as among all rows."""

    kind = "δ-disclosure privacy"
    sentence = "Each sensitive value is about as frequent in every class as among all rows."

    disclosure: Fraction


@dataclass(frozen=True)
class DeltaDisclosure(ColumnDemand):
    """The share of every value in a class, over its share in the whole table, has a binary logarithm below δ in size.

    A value that occurs in the table and not in the class has an infinite one: it fails, as the definition says.  With
    `absent` set to false such values are passed over, as ARX does, and then nothing is concluded for unions.

    Source: Brickell & Shmatikov 2008, Definition 1 (δ-disclosure privacy).
    """

    option: ClassVar[str] = "disclosure"
    keys: ClassVar[tuple[str, ...]] = ("disclosure",)
    claimed: ClassVar[type[Claim]] = DisclosureClaim
    theorem: ClassVar[str] = (
        "Brickell & Shmatikov 2008, Definition 1, counted: the share of every value in a class, over its share in all "
        "rows, has a binary logarithm below δ in size"
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
    absent: bool = True

    def __post_init__(self) -> None:
        if exact(self.delta, "delta") <= 0:
            raise InvalidParameter("delta is above 0: the largest logarithm that is allowed.")

    @property
    def monotone(self) -> Monotone:
        """Unions, if absent values count."""
        return Monotone.UNIONS if self.absent else Monotone.NEVER

    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes show every value about as often as the whole table does."""
        groups = partition.groups(self.column)
        hurting = harmful(groups, self.harmless)
        logs = np.abs(np.log2(groups.shares() / overall(groups)[groups.values]))
        far = (logs >= float(exact(self.delta, "delta")) - SLACK) & hurting[groups.values]
        fine = none(groups, far)
        if self.absent:
            fine &= groups.total(hurting[groups.values].astype(np.int64)) == np.count_nonzero(hurting)
        return np.asarray(among & fine)

    @property
    def bound(self) -> Fraction:
        """The δ."""
        return exact(self.delta)

    def measured(self, groups: Groups) -> Each:
        """Return the largest logarithm of a harmful value in each class, without limit where one is lacking."""
        hurting = harmful(groups, self.harmless)
        counted = hurting[groups.values]
        logs = np.abs(np.log2(groups.shares() / overall(groups)[groups.values]))
        lacking = groups.total(counted.astype(np.int64)) < np.count_nonzero(hurting)
        return np.where(lacking, np.inf, greatest(groups, np.where(counted, logs, 0.0)))

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """The δ."""
        return (str(exact(self.delta)),)

    def claim(self, form: Form) -> DisclosureClaim:
        """Claim it of the column, against all rows."""
        return DisclosureClaim(disclosure=exact(self.delta), **self.compared(form))

    def recount(self, table: Written) -> Recount:
        """Find the largest |log₂ p/q| in the file; a value that a class lacks breaks the bound.

        Rows left out may have values that the file lacks, so then nothing is shown to hold.
        """
        classes, delta = table.classes(self.column), float(exact(self.delta))
        named = [value for value in whole(classes) if value not in self.harmless]
        broken = any(not values[value] for values in classes.values() for value in named)
        logs = [math.inf if broken else 0.0]
        for here, everywhere, low, high in shares(classes, self.harmless, table.left_out):
            logs.append(abs(math.log2(here / everywhere)))
            broken |= here >= high * 2**delta * (1 + SLOW_SLACK) or here <= low * 2**-delta * (1 - SLOW_SLACK)
        text = f"the largest logarithm of a ratio of shares is {max(logs):.6g}, δ is {exact(self.delta)}"
        return decided(text, holds=not table.left_out, broken=broken)
