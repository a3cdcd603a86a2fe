"""Frontier: the nodes of a lattice that are left to look at, with the number that no score among them is below."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.anonymity.search.lattice import Judgment, Lattice, Node


@dataclass
class Burdens:
    """Nodes with what every finer node must pay on top of its own steps, and which of them weigh enough to prune.

    A search asks with a threshold that never rises, so a node whose burden once is above it stays above it.  Those
    nodes have a number each; for every column and rung one integer holds, bit by bit, which of them are on this rung or
    above, and the bits common to all columns of a node are the nodes coarser than it.

    >>> known = Burdens([3, 3])
    >>> known.add((1, 2), 0.5)
    >>> known.lower(0.6); known.covers((1, 1))
    False
    >>> known.lower(0.4); known.covers((1, 1)), known.covers((2, 0))
    (True, False)
    """

    rungs: list[int]
    threshold: float = float("inf")
    heavy: list[list[int]] = field(init=False)
    light: list[tuple[float, Node]] = field(default_factory=list)
    numbers: int = 0

    def __post_init__(self) -> None:
        self.heavy = [[0] * rungs for rungs in self.rungs]

    @classmethod
    def over(cls, lattice: Lattice) -> Burdens:
        """Return a book with nothing in it yet."""
        return cls([len(ladder) for ladder in lattice.ladders])

    def add(self, node: Node, burden: float) -> None:
        """Remember a node's burden."""
        if burden > self.threshold or burden == float("inf"):
            self._number(node)
        elif burden > 0:
            heapq.heappush(self.light, (-burden, node))

    def lower(self, threshold: float) -> None:
        """Let every burden above the threshold prune from now on."""
        self.threshold = min(self.threshold, threshold)
        while self.light and -self.light[0][0] > self.threshold:
            self._number(heapq.heappop(self.light)[1])

    def covers(self, node: Node) -> bool:
        """Return whether some node that prunes is at least as coarse as this one."""
        common = -1
        for column, rung in zip(self.heavy, node, strict=True):
            common &= column[rung]
            if not common:
                return False
        return True

    def _number(self, node: Node) -> None:
        if self.covers(node):
            return
        bit = 1 << self.numbers
        self.numbers += 1
        for column, rung in zip(self.heavy, node, strict=True):
            for lower in range(rung + 1):
                column[lower] |= bit


Visit = Callable[[Node], None]
"""Judges a node, or finds one above it that prunes it, and tells what it learned."""


@dataclass(frozen=True, eq=False)
class BoundTable:
    """A bound for each node, first the sum of its steps; what one node teaches about others raises theirs at once.

    A node that was judged, or cannot meet the task, has an infinite bound: nothing is left to learn there.

    >>> bounds = BoundTable.over([[0.0, 0.5], [0.0, 0.25, 0.5]])
    >>> bounds.learn((1, 1), Judgment(None, 0.75, float("inf")))
    >>> bounds.step(1.0, print)
    (0, 2)
    """

    columns: tuple[NDArray[np.float64], ...]
    steps: NDArray[np.float64]
    bounds: NDArray[np.float64]

    def __len__(self) -> int:
        return 0  # nothing piles up

    @classmethod
    def over(cls, steps: Sequence[Sequence[float]]) -> BoundTable:
        """Return the table of a lattice whose columns pay so much at each rung."""
        columns = tuple(np.array(column, np.float64) for column in steps)
        total = reduce(np.add.outer, columns)
        return cls(columns, total, total.copy())

    def least(self) -> float:
        """Return what no node that is left is below; infinity if none is left."""
        return float(self.bounds.min())

    def step(self, beaten: float, visit: Visit) -> None:
        """Visit the node with the least bound, the first in order."""
        del beaten
        visit(tuple(int(rung) for rung in np.unravel_index(self.bounds.argmin(), self.bounds.shape)))

    def summit(self, node: Node, beaten: float) -> Node:
        """Return a node at or above one from which no step up leads to a bound that could be the best's.

        Each step goes to the least bound above.  Judged nodes have an infinite one: the summit is new if the node is.

        >>> bounds = BoundTable.over([[0.0, 0.5], [0.0, 0.25, 0.5]])
        >>> bounds.summit((0, 0), 0.6)
        (0, 2)
        >>> bounds.learn((1, 2), Judgment(None, 0.0, 0.0))
        >>> bounds.summit((1, 0), math.inf)
        (1, 1)
        """
        while True:
            above = [
                (*node[:column], rung + 1, *node[column + 1 :])
                for column, rung in enumerate(node)
                if rung + 1 < self.bounds.shape[column]
            ]
            best = min(above, key=self.bounds.__getitem__, default=node)
            if best == node or self.bounds[best] > beaten or self.bounds[best] == math.inf:
                return node
            node = best

    def learn(self, node: Node, judged: Judgment) -> None:
        """Raise the bounds of finer nodes by its burden, and those of coarser ones to what they lose at least."""
        if judged.burden == math.inf:
            self.bounds[tuple(slice(rung + 1) for rung in node)] = np.inf
        elif judged.surcharges:
            below = self.bounds[tuple(slice(rung + 1) for rung in node)]
            paid = [
                column[: rung + 1] + more
                for column, rung, more in zip(self.columns, node, judged.surcharges, strict=True)
            ]
            np.maximum(below, reduce(np.add.outer, paid), out=below)
        if judged.least > self.steps[node]:
            above = self.bounds[tuple(slice(rung, None) for rung in node)]
            np.maximum(above, judged.least, out=above)
        self.bounds[node] = np.inf


@dataclass
class BoundQueue:
    """Nodes in the order of their bounds, each with its height and the column from which on it may still rise.

    Each node but the finest has one parent: its last column that is not on the lowest rung goes one rung down.  So
    every node is reached once, and a bound of a parent is one for its children.

    >>> queue = BoundQueue.over([[0.0, 0.5], [0.0, 0.25, 0.5]])
    >>> queue.step(1.0, print)
    (0, 0)
    >>> queue.least(), len(queue)
    (0.25, 2)
    """

    steps: Sequence[Sequence[float]]
    burdens: Burdens
    queue: list[tuple[float, int, Node, int]]
    leasts: dict[Node, float] = field(default_factory=dict)

    @classmethod
    def over(cls, steps: Sequence[Sequence[float]]) -> BoundQueue:
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

    def learn(self, node: Node, judged: Judgment) -> None:
        """Remember what finer nodes must pay, and what those that follow this one lose at least."""
        self.burdens.add(node, judged.burden)
        self.leasts[node] = judged.least

    def _paid(self, node: Node) -> float:
        return sum([column[rung] for column, rung in zip(self.steps, node, strict=True)])
