"""Graphs for tests: the karate club, all graphs on a few nodes, random ones, and policies and files to go with them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.domain import Categories
from incrowd.core.graph import Graph
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.unit import Kind, Unit

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "theorems" / "vectors_graphs.json").read_text(encoding="utf-8")
)
FACTION = "aaaaaaaaabaaaabbaababaabbbbbbbbbbb"[:34]


def schema(kind: Kind = Kind.EDGE) -> Schema:
    """Nodes with an id and a club of two."""
    club = Column("club", Role.QUASI, hierarchy=Flat(Categories(("a", "b"))))
    return Schema((Column("id", Role.IDENTIFIER), club), Unit(kind))


def with_clubs(graph: Graph, clubs: str = "") -> Graph:
    """Return a graph whose nodes belong to clubs, in turn if nothing is said."""
    told = list(clubs) or ["ab"[place % 2] for place in range(graph.size)]
    return Graph(graph.ids, graph.ends, pa.table({"id": graph.ids, "club": told}))


def karate() -> Graph:
    """Zachary's karate club, with its factions of 17."""
    halves = VECTORS["R_karate"]
    graph = Graph.of(halves["nodes"], halves["edge_list"])
    return with_clubs(graph, "".join("a" if node in OFFICER else "b" for node in range(34)))


OFFICER = frozenset({0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21})


def all_graphs(size: int) -> Iterator[Graph]:
    """Every graph on so many nodes, which have names."""
    pairs = list(itertools.combinations(range(size), 2))
    for chosen in itertools.product((0, 1), repeat=len(pairs)):
        yield with_clubs(Graph.of(size, [pair for pair, taken in zip(pairs, chosen, strict=True) if taken]))


def without_edge(graph: Graph) -> Iterator[Graph]:
    """Every neighbor with one edge less."""
    for place in range(len(graph.ends)):
        yield graph.with_ends(np.delete(graph.ends, place, axis=0))


def without_node(graph: Graph) -> Iterator[Graph]:
    """Every neighbor with one node less; all others keep their ids."""
    for node in range(graph.size):
        kept = np.delete(np.arange(graph.size), node)
        ends = graph.ends[(graph.ends != node).all(axis=1)]
        moved = ends - (ends > node)
        yield Graph(graph.ids.take(pa.array(kept)), moved, graph.columns.take(pa.array(kept)))


def random_graph(size: int, edges: int, seed: int) -> Graph:
    """So many nodes with hubs, and about so many edges: ends are drawn by weights that fall like a power."""
    chance = np.random.default_rng(seed)
    weights = (np.arange(size) + 10.0) ** -0.6
    pairs = chance.choice(size, (edges, 2), p=weights / weights.sum())
    return with_clubs(Graph.of(size, pairs[pairs[:, 0] != pairs[:, 1]]))


def dense(graph: Graph) -> NDArray[np.int64]:
    """The adjacency matrix, written out."""
    matrix = np.zeros((graph.size, graph.size), np.int64)
    for a, b in graph.ends.tolist():
        matrix[a, b] = matrix[b, a] = 1
    return matrix


def slow_triangles(graph: Graph) -> int:
    """Triples of nodes that are all connected, one after the other."""
    matrix = dense(graph)
    triples = itertools.combinations(range(graph.size), 3)
    return sum(int(matrix[a, b] * matrix[b, c] * matrix[a, c]) for a, b, c in triples)


def graph_files(folder: Path, graph: Graph) -> None:
    """Write nodes.csv and edges.csv."""
    ids, clubs = graph.ids.to_pylist(), graph.columns["club"].to_pylist()
    rows = [f"{name},{club}" for name, club in zip(ids, clubs, strict=True)]
    (folder / "nodes.csv").write_text("\n".join(["id,club", *rows]) + "\n", encoding="utf-8")
    edges = [f"{ids[a]},{ids[b]}" for a, b in graph.ends.tolist()]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n", encoding="utf-8")


def graph_policy(folder: Path, release: dict[str, Any], unit: str = "edge", **edges: Any) -> dict[str, Any]:
    """A policy of the graph whose files lie in a folder."""
    return {
        "incrowd": 1,
        "dataset": {"name": "club", "unit": {"kind": unit}},
        "nodes": {
            "source": str(folder / "nodes.csv"),
            "id": "id",
            "columns": {"club": {"categories": ["a", "b"], "role": "quasi"}},
        },
        "edges": {"source": str(folder / "edges.csv"), **edges},
        "release": release,
        "budget": {"epsilon": 20, "unbounded": "public since 1977"},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }


def example_graph(name: str) -> Graph:
    """The graph of an example: the karate club, or a smaller one where a proof that nothing is nearer takes long."""
    return random_graph(20, 50, 1) if name == "degrees and labels" else karate()


EXAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "degrees": ("edge", {"method": "degree-anonymity", "k": 2}),
    "degrees and labels": ("edge", {"method": "degree-anonymity", "k": 2, "columns": ["club"]}),
    "switched": ("node", {"method": "switching", "share": "1/10"}),
    "added and deleted": ("edge", {"method": "add-delete", "share": "1/10", "columns": ["club"]}),
    "answers": ("edge", {"method": "edge-response", "epsilon": 1, "columns": ["club"]}),
    "groups": ("edge", {"method": "super-nodes", "k": 5, "columns": ["club"]}),
    "edge distribution": ("edge", {"method": "degree-distribution", "epsilon": 1}),
    "node distribution": ("node", {"method": "degree-distribution", "epsilon": 1, "bound": 5}),
    "edges": ("edge", {"method": "subgraph-count", "count": "edges", "epsilon": 1}),
    "edges of nodes": ("node", {"method": "subgraph-count", "count": "edges", "epsilon": 1, "bound": 5}),
    "stars": ("edge", {"method": "subgraph-count", "count": "stars", "leaves": 2, "bound": 10, "epsilon": 1}),
    "triangles": ("edge", {"method": "subgraph-count", "count": "triangles", "epsilon": 1}),
    "clustering": ("edge", {"method": "clustering", "epsilon": 1}),
    "kinds": ("edge of one kind", {"method": "edge-kinds", "count": "degrees", "epsilon": 1}),
    "blocks": ("edge of one kind", {"method": "block-model", "column": "club", "epsilon": 1}),
    "sequence": ("edge", {"method": "degree-sequence", "epsilon": 1}),
}
"""For every method of graphs: policies that use it in different ways."""
