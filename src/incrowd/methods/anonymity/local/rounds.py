"""Rounds: levels for some rows of a table, what they lose, and whether the classes they make meet the demands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.rounding import Number
from incrowd.criteria.criterion import All, Criterion
from incrowd.criteria.groups import class_starts
from incrowd.criteria.partition import Partition
from incrowd.methods.anonymity.local.beside import Beside
from incrowd.methods.anonymity.search.lattice import EVERYTHING, Lattice, Limits, Node
from incrowd.methods.anonymity.search.optimal import Patience, optimal
from incrowd.methods.anonymity.search.rollup import Rolled, Roller
from incrowd.methods.anonymity.search.task import Task
from incrowd.quality.additive import Loss
from incrowd.quality.quality import shares_of_weights

Chosen = NDArray[np.bool_]
"""Which of the table's tuples."""


@dataclass(frozen=True, eq=False)
class Round:
    """The levels of one round, by rung, and the tuples that are released at them."""

    node: Node
    chosen: Chosen


@dataclass(frozen=True, eq=False)
class Ground:
    """A table as it was counted, its tuples of quasi-identifiers, and what every class must meet.

    `owners` tells for each counted cell which of the tuples it belongs to, `released` the columns in their order.
    """

    released: tuple[str, ...]
    cells: Counts
    owners: NDArray[np.intp]
    lattice: Lattice
    criteria: tuple[Criterion, ...]
    limits: Limits
    weights: Mapping[str, Fraction]

    @classmethod
    def of(
        cls,
        counts: Counts,
        quasi: tuple[str, ...],
        criteria: tuple[Criterion, ...],
        limits: Limits = EVERYTHING,
        weights: Mapping[str, Fraction] = MappingProxyType({}),
    ) -> Ground:
        """Lay out counts at their finest; columns weigh in the loss as `weights` say."""
        sensitive = All(criteria).sensitive
        cells = counts.marginal([*quasi, *(name for name in counts.names if name not in quasi)])
        owners = np.zeros(len(cells), np.intp)
        owners[class_starts(cells, len(quasi))[1:]] = 1
        lattice = Lattice.of(cells, quasi, sensitive, limits)
        return cls(counts.names, cells, np.cumsum(owners), lattice, criteria, limits, weights)

    @property
    def rows(self) -> NDArray[np.int64]:
        """How many rows each tuple has."""
        return self.lattice.base.sizes

    @cached_property
    def parts(self) -> NDArray[np.float64]:
        """The part of each column in the loss."""
        return shares_of_weights(self.weights, self.lattice.ladders)

    @cached_property
    def whole(self) -> Partition:
        """The table at its finest, as criteria see it."""
        base = self.lattice.base
        found = Rolled(self.lattice, base, base, np.arange(len(base), dtype=np.int32)).partition()
        return Partition(found.sizes, {name: found.groups(name) for name in self.lattice.sensitive})

    def search(self, rest: Chosen, limit: Fraction, factor: Number, patience: Patience) -> Round | None:
        """Return the levels with the least loss at which at most a share of some tuples' rows is not released.

        `factor` weighs what is lost by the released rows against what is lost by the others, as in `Loss`.
        """
        part = rest[self.owners]
        some = replace(self.cells, keys=self.cells.keys[part], counts=self.cells.counts[part])
        criteria = tuple(Beside(each, self.whole) if each.sensitive else each for each in self.criteria)
        lattice = Lattice.of(some, self.lattice.names, All(criteria).sensitive, self.limits)
        task = Task(All(criteria), Loss(factor, self.weights), limit)
        best = optimal(lattice, task, patience).best
        if best is None:
            return None
        rolled = Roller(lattice)(best.node)
        met = task.criterion.met(rolled.partition())
        chosen = rest.copy()
        chosen[rest] = met[rolled.ids]
        return Round(best.node, chosen) if chosen.any() else None

    def prices(self, node: Node) -> NDArray[np.float64]:
        """Return what a row of each tuple loses at a node: the mean over the columns, by their weights."""
        found = np.zeros(len(self.rows))
        for part, ladder, rung, codes in zip(
            self.parts, self.lattice.ladders, node, self.lattice.base.codes, strict=True
        ):
            found += part * ladder.losses[rung][codes]
        return found

    def loss(self, rounds: tuple[Round, ...]) -> float:
        """Return what is lost in all: the mean over all rows, where one that is in no round has lost everything."""
        lost = np.full(len(self.rows), float(self.parts.sum()))
        for each in rounds:
            lost[each.chosen] = self.prices(each.node)[each.chosen]
        return float((lost * self.rows).sum()) / max(1, int(self.rows.sum()))

    def holds(self, classes: NDArray[np.int32], outside: Chosen) -> bool:
        """Return whether every class meets the criteria, given each tuple's class; what is outside may not."""
        _, first, numbers = np.unique(classes, return_index=True, return_inverse=True)
        base, ids = self.lattice.base, numbers.astype(np.int32)
        rolled = Rolled(self.lattice, base, base.merged(ids, first.astype(np.int32)), ids)
        met = All(self.criteria).met(rolled.partition())
        return bool(met[ids[~outside]].all())
