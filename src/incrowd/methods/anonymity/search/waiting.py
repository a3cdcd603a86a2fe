"""Waiting: the nodes of a lattice too large to write down, in a queue that grows from the finest node."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from incrowd.methods.anonymity.search.board import Visit
from incrowd.methods.anonymity.search.burdens import Burdens
from incrowd.methods.anonymity.search.lattice import Node
from incrowd.methods.anonymity.search.task import Judged


@dataclass
class Waiting:
    """Nodes in the order of their bounds, each with its height and the column from which on it may still rise.

    Each node but the finest has one parent: its last column that is not on the lowest rung goes one rung down.  So
    every node is reached once, and a bound of a parent is one for its children.

    >>> waiting = Waiting.over([[0.0, 0.5], [0.0, 0.25, 0.5]])
    >>> waiting.step(1.0, print)
    (0, 0)
    >>> waiting.least(), len(waiting)
    (0.25, 2)
    """

    steps: Sequence[Sequence[float]]
    burdens: Burdens
    queue: list[tuple[float, int, Node, int]]
    leasts: dict[Node, float] = field(default_factory=dict)

    @classmethod
    def over(cls, steps: Sequence[Sequence[float]]) -> Waiting:
        """Return the queue with the finest node alone."""
        bottom = (0,) * len(steps)
        bound = sum(column[0] for column in steps)
        return cls(steps, Burdens([len(column) for column in steps]), [(bound, 0, bottom, 0)])

    def __len__(self) -> int:
        return len(self.queue)

    def least(self) -> float:
        """Return what no node that waits, or follows one that does, is below; infinity if none is left."""
        return self.queue[0][0] if self.queue else math.inf

    def step(self, beaten: float, visit: Visit) -> None:
        """Visit the first node unless a coarser one prunes it, and let those that follow it wait."""
        bound, height, node, last = heapq.heappop(self.queue)
        top = [len(column) - 1 for column in self.steps]
        self.burdens.lower(beaten - bound)
        if not self.burdens.covers(node):
            visit(node)
        elif self.burdens.covers((*node[:last], *top[last:])):
            return  # all that can be reached from here is pruned with it
        bound = max(bound, self.leasts.get(node, bound))
        for column in range(last, len(node)):
            if node[column] < top[column]:
                child = (*node[:column], node[column] + 1, *node[column + 1 :])
                heapq.heappush(self.queue, (max(bound, self._paid(child)), height + 1, child, column))

    def learn(self, node: Node, judged: Judged) -> None:
        """Remember what finer nodes must pay, and what those that follow this one lose at least."""
        self.burdens.add(node, judged.burden)
        self.leasts[node] = judged.least

    def _paid(self, node: Node) -> float:
        return sum([column[rung] for column, rung in zip(self.steps, node, strict=True)])
