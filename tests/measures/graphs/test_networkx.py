"""Measures beside networkx, and the graphs that it brings along beside what was published of them."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from incrowd.core.graph import Graph, keys_of
from incrowd.measures.graphs import GraphShape, colors, communities, modularity, sizes_of, uniqueness
from incrowd.methods.graphs.degree_anonymity.realization import anonymized
from incrowd.methods.graphs.degree_anonymity.sequence import graphical
from incrowd.methods.graphs.shared.matrices import triangles
from tests.graphs import random_graph

BUNDLED = {
    "karate": (nx.karate_club_graph, 34, 78),  # Zachary 1977: members and friendships
    "southern women": (nx.davis_southern_women_graph, 18 + 14, 89),  # Davis, Gardner & Gardner 1941
    "florentine families": (nx.florentine_families_graph, 15, 20),  # Padgett & Ansell 1993: marriages
    "les miserables": (nx.les_miserables_graph, 77, 254),  # Knuth 1993: characters in one chapter
}
"""Nodes and edges as published: of the women, who came to which of 14 events."""

TABLE = {
    "karate": (45, 0.2557, 2.408, 0.1765, 0.6765, 3),
    "southern women": (0, 0.0, 2.306, 0.0938, 0.875, 3),
    "florentine families": (3, 0.1915, 2.486, 0.0667, 0.8667, 2),
    "les miserables": (467, 0.4989, 2.641, 0.0779, 0.5455, 24),
}
"""Triangles, clustering, mean path, alone by degree, alone by the degrees of neighbors, edges changed for k = 2."""


def ours(graph: Any) -> Graph:
    places = {node: place for place, node in enumerate(graph)}
    return Graph.of(len(places), [(places[a], places[b]) for a, b in graph.edges])


def theirs(graph: Graph) -> Any:
    found = nx.empty_graph(graph.size)
    found.add_edges_from(graph.ends.tolist())
    return found


@pytest.mark.parametrize("name", BUNDLED)
def test_the_graphs_of_networkx_have_the_figures_of_the_handbook(name: str) -> None:
    make, nodes, edges = BUNDLED[name]
    graph = ours(make())
    assert (graph.size, len(graph.ends)) == (nodes, edges)
    shape, alone = GraphShape.of(graph), {score.name: score.value for score in uniqueness(graph)}
    changed = np.setxor1d(keys_of(anonymized(graph, np.zeros(nodes, np.int64), 2), nodes), keys_of(graph.ends, nodes))
    found = (shape.clustering, shape.path, alone["unique, 1 hop"], alone["unique, 2 hops"])
    count, *shares, fewest = TABLE[name]
    assert triangles(graph) == count
    assert found == pytest.approx(shares, abs=6e-4)
    assert len(changed) == fewest


@pytest.mark.parametrize("seed", range(4))
def test_measures_are_those_of_networkx_on_random_graphs(seed: int) -> None:
    graph = random_graph(40, 40 + 40 * seed, seed)
    other = theirs(graph)
    shape = GraphShape.of(graph)
    assert triangles(graph) == sum(nx.triangles(other).values()) // 3
    assert shape.clustering == pytest.approx(nx.transitivity(other))
    lengths = [d for _, near in nx.all_pairs_shortest_path_length(other) for d in near.values() if d]
    assert shape.path == pytest.approx(np.mean(lengths))
    assert shape.spectrum == pytest.approx(np.sort(nx.adjacency_spectrum(other).real)[::-1][:5], abs=1e-6)
    groups = communities(graph)
    parts = [set(np.flatnonzero(groups == each).tolist()) for each in np.unique(groups)]
    assert modularity(graph, groups) == pytest.approx(nx.community.modularity(other, parts))
    nx.set_node_attributes(other, "x", "same")
    hashes = nx.weisfeiler_lehman_subgraph_hashes(other, node_attr="same", iterations=3)
    for hops in (1, 2, 3):
        seen = [tuple(hashes[node][:hops]) for node in range(40)]
        assert sizes_of(colors(graph, hops)).tolist() == [seen.count(each) for each in seen]


def test_degrees_of_a_graph_are_told_from_others_as_networkx_does() -> None:
    chance = np.random.default_rng(1)
    for _ in range(300):
        degrees = chance.integers(0, 7, 7)
        assert graphical(degrees) == nx.is_graphical(degrees.tolist())
