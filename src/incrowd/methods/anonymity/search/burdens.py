"""Burdens: what nodes that were judged say about all finer nodes, answered without looking at each of them."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from incrowd.methods.anonymity.search.lattice import Lattice, Node


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
