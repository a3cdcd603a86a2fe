"""Task: a table to protect, with what everybody knows of its finest cells and what each cell costs to leave empty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from incrowd.methods.tabulation.protected.attacker import TableAttacker
from incrowd.methods.tabulation.protected.boxes import NEVER, Costs, ProtectionDemand
from incrowd.methods.tabulation.protected.coalitions import Coalition, Owners
from incrowd.methods.tabulation.protected.frame import Flags, TableFrame, Whole


@dataclass(frozen=True, eq=False)
class SuppressionTask:
    """A table to protect, or several in one frame: the true finest cells, and the weight of leaving each cell empty.

    A cell of weight `NEVER` is published whatever happens, one of weight 0 is not published anyway.  `low` and `high`
    are what everybody knows of each finest cell (−1: no upper bound), `floors` the cells of which everybody knows that
    they are 1 at least, where the bounds of finest cells do not say so already.  `owners` says which contributors know
    which cells.
    """

    frame: TableFrame
    truth: Whole
    weights: Costs
    low: Whole
    high: Whole
    owners: Owners
    floors: Flags | None = None

    @cached_property
    def cells(self) -> Whole:
        """The true value of every cell."""
        values: Whole = self.frame.matrix @ self.truth
        return values

    def need(self, demand: ProtectionDemand, amount: int, coalition: Coalition) -> int:
        """Return how far a cell must be able to go for a coalition: not beyond what they know of its finest cells."""
        if not coalition:
            return abs(amount)
        if self.floors is not None:
            return amount if amount > 0 else min(-amount, self._above(demand, coalition))
        start, end = self.frame.matrix.indptr[demand.cell : demand.cell + 2]
        atoms = self.frame.matrix.indices[start:end]
        if amount > 0 and np.any(self.high[atoms] < 0):
            return amount
        mine = self.owners.knows(coalition, self.frame.leaves[atoms])
        ends = self.high if amount > 0 else self.low
        last = int(np.where(mine, self.truth[atoms], ends[atoms]).sum())
        return min(abs(amount), abs(int(self.cells[demand.cell]) - last))

    def _above(self, demand: ProtectionDemand, coalition: Coalition) -> int:
        """Return how far a cell is above what a coalition knows to be in it: own cells, and 1 in each other one."""
        parts = [np.array(part, np.intp) for part in demand.parts]
        room = [np.where(self.owners.knows(coalition, part), 0, self.cells[part] - 1).sum() for part in parts]
        return min([int(self.cells[demand.cell]), *map(int, room)])

    def attacker(self, pattern: Flags, known_cells: tuple[int, ...] = ()) -> TableAttacker:
        """Return who knows everything but the pattern and what is not published anyway, and some cells beside."""
        published = ~pattern & (self.weights > 0)
        published[list(known_cells)] = True
        rows = np.flatnonzero(published)
        floors = None if self.floors is None else self.frame.matrix[np.flatnonzero(self.floors)]
        return TableAttacker(self.frame.matrix[rows], self.cells[rows], self.low, self.high, floors)

    def agrees(self, move: Whole, fixed: Flags) -> bool:
        """Whether changes of the finest cells keep what everybody knows, and leave some cells as they are."""
        after = self.truth + move
        inside = (after >= self.low) & ((self.high < 0) | (after <= self.high))
        above = self.floors is None or bool(np.all((self.frame.matrix @ after)[self.floors] >= 1))
        return bool(inside.all() and above and not np.any((self.frame.matrix @ move)[fixed]))


def task_of(
    frame: TableFrame, leaves: Whole, weights: Costs | None = None, owners: Owners | None = None
) -> SuppressionTask:
    """Return the task of a table by itself: cells weigh their values, and zeros and the total are published.

    So everybody knows that a suppressed cell is 1 at least.
    """
    cells = frame.totals(leaves).ravel()
    costs = cells.astype(np.float64) if weights is None else weights
    fixed = cells == 0
    fixed[0] = True
    size = len(frame.leaves)
    return SuppressionTask(
        frame,
        leaves.ravel(),
        np.where(fixed, NEVER, costs),
        np.minimum(leaves.ravel(), 1),
        np.full(size, -1, np.int64),
        Owners.none(frame.size) if owners is None else owners,
    )
