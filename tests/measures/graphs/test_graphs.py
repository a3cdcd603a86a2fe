"""Measures of graphs beside slow ones: classes, paths, clustering, communities and spectrum."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from incrowd.core.graph import Graph
from incrowd.measures.graphs import (
    GraphShape,
    colors,
    communities,
    mean_path,
    modularity,
    sizes_of,
    spectrum,
    uniqueness,
)
from tests.graphs import dense, karate, random_graph


def slow_colors(graph: Graph, hops: int) -> list[object]:
    matrix = dense(graph)
    found: list[object] = [0] * graph.size
    for _ in range(hops):
        found = [
            (found[node], tuple(sorted(repr(found[other]) for other in np.flatnonzero(matrix[node]))))
            for node in range(graph.size)
        ]
    return found


@pytest.mark.parametrize("hops", [0, 1, 2, 3])
def test_nodes_look_the_same_within_some_hops_where_their_trees_do(hops: int) -> None:
    for graph in (karate(), random_graph(30, 40, 1), Graph.of(5, [])):
        slow, fast = slow_colors(graph, hops), colors(graph, hops).tolist()
        for a, b in itertools.combinations(range(graph.size), 2):
            assert (slow[a] == slow[b]) == (fast[a] == fast[b])
        times = Counter(map(repr, slow))
        assert sizes_of(colors(graph, hops)).tolist() == [times[repr(each)] for each in slow]


def test_six_members_of_the_karate_club_are_alone_with_their_degree() -> None:
    found = {score.name: score.value for score in uniqueness(karate())}
    assert found["unique, 1 hop"] == 6 / 34
    assert found["smallest class, 2 hops"] == 1


def test_the_shape_of_the_karate_club() -> None:
    shape = GraphShape.of(karate())
    assert shape.clustering == pytest.approx(0.2556818, abs=1e-6)
    assert spectrum(karate()) == pytest.approx(np.sort(np.linalg.eigvalsh(dense(karate())))[::-1][:5])
    assert modularity(karate(), communities(karate())) > 0.35
    assert {score.name: score.value for score in shape.beside(shape)}["degrees apart"] == 0


def test_paths_are_those_of_a_slow_search() -> None:
    graph = Graph.of(5, [(0, 1), (1, 2), (2, 3)])
    lengths = [1, 2, 3, 1, 1, 2, 2, 1, 1, 3, 2, 1]
    assert mean_path(graph) == pytest.approx(np.mean(lengths))
    assert mean_path(Graph.of(3, [])) == 0.0
    assert spectrum(Graph.of(2, [(0, 1)])).tolist() == pytest.approx([1, -1])
