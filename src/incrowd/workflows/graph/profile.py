"""Profile of a graph: its size, and how many of its nodes are unique by what an attacker may know; internal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from incrowd.core.graph import Graph
from incrowd.core.steps.around import ConsentGate
from incrowd.engines.settings import engine_of
from incrowd.measures.graphs import uniqueness
from incrowd.measures.score import Score
from incrowd.methods.graphs.shared.matrices import triangles
from incrowd.workflows.consent.snapshot import admit, admitted_by
from incrowd.workflows.graph.reading import (
    GraphRows,
    UnknownNodes,
    dropping_unknown,
    open_graph,
    read_graph,
    unknown_nodes,
)
from incrowd.workflows.policy.ledger import record_look
from incrowd.workflows.policy.policy import Policy, PolicyLike, load_policy


@dataclass(frozen=True)
class GraphProfile:
    """The size of a graph, and how many of its nodes are unique."""

    nodes: int
    edges: int
    largest_degree: int
    triangles: int
    scores: tuple[Score, ...]
    unknown: UnknownNodes

    @property
    def verdict(self) -> str:
        """All of it in one sentence."""
        alone = {score.name: score.value for score in self.scores}
        if not alone["unique, 2 hops"]:
            return "No node is unique by its degree, or by the degrees of its neighbors."
        shares = [100 * alone[f"unique, {hops}"] for hops in ("1 hop", "2 hops")]
        return (
            f"{shares[0]:.1f} % of the nodes are unique by their degree, and {shares[1]:.1f} % by the degrees of their "
            "neighbors: removing names does not hide them."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        sizes = {"nodes": self.nodes, "edges": self.edges, "largest degree": self.largest_degree}
        rest: dict[str, Any] = {"edges to unknown nodes": self.unknown.edges, "triangles": self.triangles}
        rest |= {"scores": [score.to_json() for score in self.scores]}
        return {**sizes, **rest, "verdict": self.verdict}


def graph_of(policy: Policy, gate: ConsentGate | None = None) -> Graph:
    """Read the graph of a policy as a release would; with the gate of a release, as that one did."""
    with opened(policy, gate) as rows:
        return read_graph(policy, rows)


@contextmanager
def opened(policy: Policy, gate: ConsentGate | None = None) -> Iterator[GraphRows]:
    """Open the nodes and edges of people who take part."""
    admission = admit(policy) if gate is None else admitted_by(policy, gate)
    with engine_of(policy.engine) as engine:
        yield open_graph(policy, engine).admitting(admission, policy)


def profile_graph(policy: PolicyLike) -> GraphProfile:
    """Count unique nodes of a graph; the ledger records the data access.

    Edges to nodes that are not listed are counted, also where a release would refuse them: their holder corrects them.
    """
    read = load_policy(policy)
    with opened(read) as rows:
        unknown = unknown_nodes(read, rows)
        graph = read_graph(dropping_unknown(read), rows)
    record_look(read, "profile")
    most = int(np.max(graph.degrees, initial=0))
    return GraphProfile(graph.size, len(graph.ends), most, triangles(graph), uniqueness(graph), unknown)
