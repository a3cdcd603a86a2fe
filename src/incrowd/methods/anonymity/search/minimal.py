"""Minimal: every generalization that meets the criterion while no finer one does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.search.frontier import Burdens
from incrowd.methods.anonymity.search.lattice import Lattice, Node
from incrowd.methods.anonymity.search.rollup import RollupCache
from incrowd.methods.anonymity.search.task import Judgment, Point, Task, judge

_MOST = 2**22


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
    roller, failing, found = RollupCache(lattice, task.criterion.whole), Burdens.over(lattice), list[Point]()
    above, known = _Above(lattice), dict[Node, Judgment]()
    for node in sorted(nodes, key=_order):
        if above.covers(node) or failing.covers(node):
            continue
        for probe in _probes(node, lattice.top) if task.prunes else [node]:
            judged = known[probe] if probe in known else judge(task, measure, roller(probe), probe)
            known[probe] = judged
            if judged.burden == float("inf"):
                failing.add(probe, judged.burden)
                break
            if probe == node and judged.point is not None:
                found.append(judged.point)
                above.add(node)
    return tuple(found)


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
