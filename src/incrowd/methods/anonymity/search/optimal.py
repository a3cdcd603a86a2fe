"""Optimal: the generalization that loses least among all that meet the criterion, or the best known with its gap."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from incrowd.core.quality.quality import Measure
from incrowd.methods.anonymity.search.burdens import Burdens
from incrowd.methods.anonymity.search.lattice import Lattice, Node
from incrowd.methods.anonymity.search.rollup import Roller
from incrowd.methods.anonymity.search.task import Judged, Point, Task, judge

TIE = 1e-12
"""Scores that differ by less, relatively, are equal; of equal ones the lowest node wins, then the first in order."""


_SMALL = 2**16


@dataclass(frozen=True)
class Progress:
    """How far a search is: nodes judged, the best point so far, and what no node can be below."""

    judged: int
    best: Point | None
    bound: float


@dataclass(frozen=True)
class Patience:
    """When a search stops before it is done: after so many seconds, with so many nodes waiting, or when told to.

    `told` is called now and then with the progress; a search stops where it returns true.
    """

    seconds: float = math.inf
    waiting: int = 2**20
    told: Callable[[Progress], bool] | None = None


ENDLESS = Patience()
"""As long as it takes."""


@dataclass(frozen=True)
class Found:
    """The result of a search: the best point, a bound that no node is below, and every point that was judged.

    `complete` says that the best point is optimal: then the bound is its score.  Without a best point and complete, no
    node meets the task.
    """

    names: tuple[str, ...]
    best: Point | None
    bound: float
    complete: bool
    judged: int
    points: tuple[Point, ...]

    @property
    def gap(self) -> float:
        """By how much the best point could at most be beaten."""
        return math.inf if self.best is None else max(0.0, self.best.score - self.bound)

    @property
    def levels(self) -> dict[str, int] | None:
        """The levels of the best point."""
        return None if self.best is None else dict(zip(self.names, self.best.levels, strict=True))


def optimal(lattice: Lattice, task: Task, patience: Patience = ENDLESS) -> Found:
    """Return the generalization that meets the task and loses least; ties go to the lowest height, then to the order.

    Nodes wait in a queue, ordered by a lower bound on their score.  Each node but the finest has one parent: its last
    column that is not on the lowest rung goes one rung down.  So every node can be reached once, and a bound of a
    parent is one for its children.  A node that is taken from the queue is skipped if a coarser node is known to prune
    it; otherwise it is judged, perhaps after coarser nodes that could prune it together with many others.

    Optimal: a node is never judged for one of three reasons.  It is still in the queue, or below one that is, when the
    least bound there exceeds the best score: then so does its own.  Or it was skipped because a coarser node's burden
    shows that it cannot meet the task, or that its score exceeds the best.  Every other node was judged.  If the search
    stops early, the least bound in the queue still holds for all that is left, and the smaller of it and the best score
    is a bound for all nodes.
    """
    return _Search(lattice, task, task.quality.over(lattice.ladders, lattice.base), patience).run()


@dataclass
class _Search:
    lattice: Lattice
    task: Task
    measure: Measure
    patience: Patience
    roller: Roller = field(init=False)
    burdens: Burdens = field(init=False)
    steps: list[list[float]] = field(init=False)
    judged: dict[Node, Judged] = field(default_factory=dict)
    best: Point | None = None

    def __post_init__(self) -> None:
        self.roller = Roller(self.lattice, self.task.criterion.sensitive)
        self.burdens = Burdens.over(self.lattice)
        self.steps = [[float(step) for step in column] for column in self.measure.steps]

    def run(self) -> Found:
        start, top = time.monotonic(), self.lattice.top
        if self.lattice.nodes > _SMALL:
            self._open(start)
        queue: list[tuple[float, int, Node, int]] = [(self._steps(self.lattice.bottom), 0, self.lattice.bottom, 0)]
        taken = 0
        while queue and queue[0][0] <= self._beaten():
            taken += 1
            if self._enough(start, taken, queue):
                return self._found(queue[0][0])
            bound, height, node, last = heapq.heappop(queue)
            self.burdens.lower(self._beaten() - bound)
            if not self.burdens.covers(node):
                self._visit(node, bound)
            elif self.burdens.covers((*node[:last], *top[last:])):
                continue  # all that can be reached from here is pruned with it
            known = self.judged.get(node)
            bound = bound if known is None else max(bound, known.least)
            for column in range(last, len(node)):
                if node[column] < top[column]:
                    child = (*node[:column], node[column] + 1, *node[column + 1 :])
                    heapq.heappush(queue, (max(bound, self._steps(child)), height + 1, child, column))
        return self._found(math.inf)

    def _open(self, start: float) -> None:
        """Walk down from the top while that improves: a good point to begin with, where most nodes are out of reach."""
        self._judge(self.lattice.top)
        improved = self.best is not None
        while improved and time.monotonic() - start <= self.patience.seconds / 2:
            here = self.best
            for column in range(len(self.lattice.ladders)):
                node = self.best.node if self.best is not None else self.lattice.top
                if node[column]:
                    self._judge((*node[:column], node[column] - 1, *node[column + 1 :]))
            improved = self.best != here

    def _visit(self, node: Node, bound: float) -> None:
        """Judge a node, or find a coarser one that prunes it: by halving a chain of nodes above it."""
        chain = self._chain(node) if self.task.prunes else [node]
        low, high = 0, len(chain) - 1
        while low <= high:
            middle = (low + high + 1) // 2
            self._judge(chain[middle])
            self.burdens.lower(self._beaten() - bound)
            if self.burdens.covers(chain[middle]):
                low = middle + 1
            else:
                high = middle - 1

    def _chain(self, node: Node) -> list[Node]:
        """Return nodes from this one upward, each time the cheapest column first, while they could be the best."""
        chain, rungs, beaten = [node], list(node), self._beaten()
        bound, top = self._steps(node), self.lattice.top
        while True:
            rises = [
                (steps[rungs[column] + 1] - steps[rungs[column]], rungs[column] / top[column], column)
                for column, steps in enumerate(self.steps)
                if rungs[column] < top[column]
            ]
            if not rises:
                return chain
            rise, _, column = min(rises)
            bound += rise
            if bound > beaten:
                return chain
            rungs[column] += 1
            chain.append(tuple(rungs))

    def _judge(self, node: Node) -> None:
        if node in self.judged:
            return
        found = judge(self.task, self.measure, self.roller(node), node)
        self.judged[node] = found
        self.burdens.add(node, found.burden)
        point = found.point
        if point is not None and (self.best is None or _better(point, self.best)):
            self.best = point

    def _steps(self, node: Node) -> float:
        return sum([column[rung] for column, rung in zip(self.steps, node, strict=True)])

    def _beaten(self) -> float:
        """Return the bound from which on a node cannot be the best, ties included."""
        return math.inf if self.best is None else self.best.score + TIE * abs(self.best.score)

    def _enough(self, start: float, taken: int, queue: list[tuple[float, int, Node, int]]) -> bool:
        if taken % 64 != 1:
            return False
        if time.monotonic() - start > self.patience.seconds or len(queue) > self.patience.waiting:
            return True
        told = self.patience.told
        return told is not None and told(Progress(len(self.judged), self.best, queue[0][0]))

    def _found(self, bound: float) -> Found:
        best = self.best
        complete = bound == math.inf or (best is not None and bound >= best.score)
        points = tuple(found.point for found in self.judged.values() if found.point is not None)
        least = bound if best is None else min(bound, best.score)
        return Found(self.lattice.names, best, least, complete, len(self.judged), points)


def _better(point: Point, best: Point) -> bool:
    near = TIE * max(abs(point.score), abs(best.score))
    if abs(point.score - best.score) > near:
        return point.score < best.score
    return (sum(point.node), point.node) < (sum(best.node), best.node)
