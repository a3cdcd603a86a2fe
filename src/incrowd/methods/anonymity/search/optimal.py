"""Search: the generalization that loses least among all that meet the criterion, and all that no finer one does."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.search.frontier import BoundQueue, BoundTable, Burdens
from incrowd.methods.anonymity.search.lattice import Judgment, Lattice, Node, Point, Task, judge
from incrowd.methods.anonymity.search.rollup import RollupCache
from incrowd.quality.quality import Measure

TIE = 1e-12
"""Scores that differ by less, relatively, are equal; of equal ones the lowest node wins, then the first in order."""


_SMALL = 2**18
"""A lattice of so many nodes can be written down."""

_OFTEN = 64
_SOON = 0.25
"""After so many nodes, or seconds, a search tells how far it is."""


@dataclass(frozen=True)
class Progress:
    """How far a search is: nodes judged, the best point so far, and what no node can be below."""

    judged: int
    best: Point | None
    bound: float


@dataclass(frozen=True)
class SearchLimits:
    """When a search stops before it is done: after so many seconds, with so many nodes waiting, or when told to.

    `report` is called now and then with the progress; a search stops where it returns true.
    """

    seconds: float = math.inf
    waiting: int = 2**20
    report: Callable[[Progress], bool] | None = None


ENDLESS = SearchLimits()
"""As long as it takes."""


@dataclass(frozen=True)
class SearchResult:
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


def optimal(lattice: Lattice, task: Task, patience: SearchLimits = ENDLESS) -> SearchResult:
    """Return the generalization that meets the task and loses least; ties go to the lowest height, then to the order.

    Every node has a lower bound on its score, and the one with the least is visited next: it is judged, perhaps after
    coarser nodes that could rule it out together with many others.  What a node teaches about finer and coarser ones
    raises their bounds.  A lattice that can be written down has a board with the bounds of all nodes; of a larger one
    only those wait in a queue that follow a node which was visited.

    Optimal: a node is never judged for one of two reasons.  A coarser node's burden shows that it cannot meet the task,
    or that its score exceeds the best.  Or the least bound that is left exceeds the best score: then so does its own.
    Every other node was judged.  If the search stops early, the least bound that is left still holds for all nodes that
    were not judged, and the smaller of it and the best score is a bound for all.
    """
    return _Search(lattice, task, task.quality.over(lattice.ladders, lattice.base), patience).run()


@dataclass
class _Search:
    lattice: Lattice
    task: Task
    measure: Measure
    patience: SearchLimits
    roller: RollupCache = field(init=False)
    front: BoundTable | BoundQueue = field(init=False)
    steps: list[list[float]] = field(init=False)
    climb: list[tuple[int, int]] = field(init=False)
    judged: dict[Node, Judgment] = field(default_factory=dict)
    best: Point | None = None

    def __post_init__(self) -> None:
        self.roller = RollupCache(self.lattice, self.task.criterion.whole)
        self.steps = [[float(step) for step in column] for column in self.measure.steps]
        self.front = BoundTable.over(self.steps) if self.lattice.nodes <= _SMALL else BoundQueue.over(self.steps)
        self.climb = _climb(self.steps, evenly=self.task.share == 0)

    def run(self) -> SearchResult:
        start = reported = time.monotonic()
        if self.lattice.nodes > _SMALL:
            self._open(start)
        taken = 0
        while (bound := self.front.least()) <= self._beaten() and bound < math.inf:
            now = time.monotonic()
            if taken % _OFTEN == 0 or now - reported > _SOON:
                reported = now
                if self._enough(start, bound):
                    return self._result(bound)
            taken += 1
            self.front.step(self._beaten(), self._visit)
        return self._result(math.inf)

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

    def _visit(self, node: Node) -> None:
        """Judge a node, or find a coarser one that prunes it: by halving a chain of nodes above it.

        Where a failing node does not rule out all finer ones, halving finds none that is worth its while.
        """
        if self.task.prunes and not self.task.inherited and isinstance(self.front, BoundTable):
            self._judge(self.front.summit(node, self._beaten()))
            return
        bound = self._steps(node)
        chain = self._chain(node, bound) if self.task.prunes else [node]
        low, high = 0, len(chain) - 1
        while low <= high:
            middle = (low + high + 1) // 2
            burden = self._judge(chain[middle]).burden_of(node)
            if burden == math.inf or bound + burden > self._beaten():
                low = middle + 1
            else:
                high = middle - 1

    def _chain(self, node: Node, bound: float) -> list[Node]:
        """Return nodes from this one upward, each time the cheapest column first, while they could be the best."""
        chain, rungs, beaten = [node], list(node), self._beaten()
        for column, rung in self.climb:
            if rung < rungs[column]:
                continue
            bound += self.steps[column][rung + 1] - self.steps[column][rung]
            if bound > beaten:
                break
            rungs[column] = rung + 1
            chain.append(tuple(rungs))
        return chain

    def _judge(self, node: Node) -> Judgment:
        if node in self.judged:
            return self.judged[node]
        judgment = judge(self.task, self.measure, self.roller(node), node)
        self.judged[node] = judgment
        self.front.learn(node, judgment)
        point = judgment.point
        if point is not None and (self.best is None or _better(point, self.best)):
            self.best = point
        return judgment

    def _steps(self, node: Node) -> float:
        return sum([column[rung] for column, rung in zip(self.steps, node, strict=True)])

    def _beaten(self) -> float:
        """Return the bound from which on a node cannot be the best, ties included."""
        return math.inf if self.best is None else self.best.score + TIE * abs(self.best.score)

    def _enough(self, start: float, bound: float) -> bool:
        if time.monotonic() - start > self.patience.seconds or len(self.front) > self.patience.waiting:
            return True
        report = self.patience.report
        return report is not None and report(Progress(len(self.judged), self.best, bound))

    def _result(self, bound: float) -> SearchResult:
        best = self.best
        complete = bound == math.inf or (best is not None and bound >= best.score)
        points = tuple(judgment.point for judgment in self.judged.values() if judgment.point is not None)
        least = bound if best is None else min(bound, best.score)
        return SearchResult(self.lattice.names, best, least, complete, len(self.judged), points)


def _better(point: Point, best: Point) -> bool:
    near = TIE * max(abs(point.score), abs(best.score))
    if abs(point.score - best.score) > near:
        return point.score < best.score
    return (sum(point.node), point.node) < (sum(best.node), best.node)


def _climb(steps: Sequence[Sequence[float]], evenly: bool) -> list[tuple[int, int]]:
    """Return columns and the rungs they leave, in the order in which a chain rises.

    Cheap rises come first, and dear ones hold back those above them.  Where nothing may be suppressed, one small class
    rules a node out; columns rise evenly then, which leaves the fewest classes of all.
    """
    rises = []
    for column, column_steps in enumerate(steps):
        dearest = 0.0
        for rung, (low, high) in enumerate(itertools.pairwise(column_steps)):
            dearest, share = max(dearest, high - low), rung / (len(column_steps) - 1)
            rises.append(((share, high - low) if evenly else (dearest, share), column, rung))
    return [(column, rung) for _, column, rung in sorted(rises)]


_MOST = 2**22  # nodes of a lattice held in memory


def minimal(lattice: Lattice, task: Task, below: Iterable[Node] | None = None) -> tuple[Point, ...]:
    """Return the minimal nodes in the order of their heights, then of their rungs; or those at or below some nodes.

    Whether a node is minimal hangs on finer nodes alone, so that nothing else is looked at for the latter.
    Nodes are visited from the lowest height up.  A node above a minimal one is not minimal.  A node below one that
    rules out finer nodes does not meet the task; where that can be, nodes halfway up to the top are judged first.  All
    others are judged: one that meets the task is minimal, since every finer node that does would have been found
    before, or lies above one that was.

    Source: Samarati 2001, Definition of a k-minimal generalization; here for every criterion and suppression limit.
    """
    nodes = _below([lattice.top] if below is None else below, lattice)
    if nodes is None:
        raise InvalidParameter(
            f"all minimal generalizations were asked for, but there are {lattice.nodes} to look through, more than "
            f"{_MOST}: limit the levels of some columns, or search for the best one only."
        )
    measure = task.quality.over(lattice.ladders, lattice.base)
    roller, failing, points = RollupCache(lattice, task.criterion.whole), Burdens.over(lattice), list[Point]()
    above, judgments = _Above(lattice), dict[Node, Judgment]()
    for node in sorted(nodes, key=_order):
        if above.covers(node) or failing.covers(node):
            continue
        for probe in _probes(node, lattice.top) if task.prunes else [node]:
            judged = judgments[probe] if probe in judgments else judge(task, measure, roller(probe), probe)
            judgments[probe] = judged
            if judged.burden == float("inf"):
                failing.add(probe, judged.burden)
                break
            if probe == node and judged.point is not None:
                points.append(judged.point)
                above.add(node)
    return tuple(points)


def _below(tops: Iterable[Node], lattice: Lattice) -> set[Node] | None:
    """Return the nodes at or below some, or None if there are too many to look through."""
    listed = list(tops)
    if min(lattice.nodes, sum(math.prod(rung + 1 for rung in top) for top in listed)) > _MOST:
        return None
    return {node for top in listed for node in itertools.product(*(range(rung + 1) for rung in top))}


class _Above:
    """The nodes above some: those below them, seen upside down."""

    def __init__(self, lattice: Lattice) -> None:
        self.top, self.burdens = lattice.top, Burdens.over(lattice)

    def add(self, node: Node) -> None:
        self.burdens.add(self._turned(node), float("inf"))

    def covers(self, node: Node) -> bool:
        return self.burdens.covers(self._turned(node))

    def _turned(self, node: Node) -> Node:
        return tuple(top - rung for top, rung in zip(self.top, node, strict=True))


def _probes(node: Node, top: Node) -> list[Node]:
    """Return nodes from halfway between this one and the top down to this one, each halfway between its neighbors."""
    probes = [tuple((low + high) // 2 for low, high in zip(node, top, strict=True))]
    while probes[-1] != node:
        probes.append(tuple((low + high) // 2 for low, high in zip(node, probes[-1], strict=True)))
    return probes


def _order(node: Node) -> tuple[int, Node]:
    return sum(node), node
