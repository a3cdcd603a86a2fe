"""Every private method of graphs: its examples, released for real and replayed with an edge or a node less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from pathlib import Path

from incrowd.core.graph import Graph
from incrowd.core.loss import Syntactic, walk
from incrowd.core.unit import Kind
from incrowd.workflows.policy.policy import Policy, load_policy
from tests.graphs import EXAMPLES, graph_policy, karate, random_graph, with_clubs, without_edge, without_node
from tests.replay.golden import Parts
from tests.replay.replaying import Recording, Replay, part_of_guarantee
from tests.replay.tables import published
from tests.replay.transcript import Chance

ANSWERS = frozenset({"edge-response"})
"""Methods that randomize each pair of nodes by coins of its own; `test_answers.py` has their laws."""
_FEW = 12


@cache
def policy(name: str) -> Policy:
    """Return a policy of the examples; no file is read."""
    unit, release = EXAMPLES[name]
    return load_policy(graph_policy(Path("nowhere"), release, unit))


def private(name: str) -> bool:
    """Whether the guarantee of an example is more than a property of the output."""
    return not any(isinstance(part, Syntactic) for part in walk(policy(name).plan.guarantee.loss))


REPLAYED = [name for name in EXAMPLES if private(name) and EXAMPLES[name][1]["method"] not in ANSWERS]


def graphs() -> Iterator[Graph]:
    """Graphs in which one edge or node matters: a club, a star, a star without its center's edges, few edges, all."""
    yield karate()
    yield random_graph(20, 50, 1)
    yield with_clubs(Graph.of(9, [(0, node) for node in range(1, 9)]))
    yield with_clubs(Graph.of(11, [(0, 1), *((a, b) for a in range(2) for b in range(2, 11))]))
    yield with_clubs(Graph.of(6, [(a, b) for a in range(6) for b in range(a)]))
    yield with_clubs(Graph.of(4, [(0, 1)]))


def neighbors(graph: Graph, kind: Kind) -> Iterator[Graph]:
    """Return the graphs without one edge, or without one node and all its edges; the first ones touch the hubs."""
    return islice(without_edge(graph) if kind.of_edges else without_node(graph), _FEW)


def layered(graph: Graph) -> Graph:
    """Return a graph whose edges are all of one kind, as a reader gives it."""
    return replace(graph, layers=(graph.ends,))


def parts(name: str) -> Parts:
    """Return the largest part of its guarantee that an example lost."""
    plan, unit = policy(name).plan, policy(name).schema.unit
    results: list[Replay] = []
    for graph in graphs():
        recording = Recording.of(plan, layered(graph), Chance(0), partial(published, unit=unit))
        results.extend(recording.replay(layered(neighbor)) for neighbor in neighbors(graph, unit.kind))
    return {"edge removed" if unit.kind.of_edges else "node removed": part_of_guarantee(plan, results)}
