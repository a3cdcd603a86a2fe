"""Board: every node of a lattice that is small enough, with the number that its score cannot be below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.anonymity.search.lattice import Node
from incrowd.methods.anonymity.search.task import Judged

Visit = Callable[[Node], None]
"""Judges a node, or finds one above it that prunes it, and tells what it learned."""


@dataclass(frozen=True, eq=False)
class Board:
    """A bound for each node, first the sum of its steps; what one node teaches about others raises theirs at once.

    A node that was judged, or cannot meet the task, has an infinite bound: nothing is left to learn there.

    >>> board = Board.over([[0.0, 0.5], [0.0, 0.25, 0.5]])
    >>> board.learn((1, 1), Judged(None, 0.75, float("inf")))
    >>> board.step(1.0, print)
    (0, 2)
    """

    steps: NDArray[np.float64]
    bounds: NDArray[np.float64]

    def __len__(self) -> int:
        return 0  # nothing piles up

    @classmethod
    def over(cls, steps: Sequence[Sequence[float]]) -> Board:
        """Return the board of a lattice whose columns pay so much at each rung."""
        total = reduce(np.add.outer, [np.array(column, np.float64) for column in steps])
        return cls(total, total.copy())

    def least(self) -> float:
        """Return what no node that is left is below; infinity if none is left."""
        return float(self.bounds.min())

    def step(self, beaten: float, visit: Visit) -> None:
        """Visit the node with the least bound, the first in order."""
        del beaten
        visit(tuple(int(rung) for rung in np.unravel_index(self.bounds.argmin(), self.bounds.shape)))

    def learn(self, node: Node, judged: Judged) -> None:
        """Raise the bounds of finer nodes by its burden, and those of coarser ones to what they lose at least."""
        finer = tuple(slice(rung + 1) for rung in node)
        if judged.burden > 0:
            below = self.bounds[finer]
            np.maximum(below, self.steps[finer] + judged.burden, out=below)
        if judged.least > self.steps[node]:
            above = self.bounds[tuple(slice(rung, None) for rung in node)]
            np.maximum(above, judged.least, out=above)
        self.bounds[node] = np.inf
