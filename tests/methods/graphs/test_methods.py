"""Methods of graphs: switches keep degrees, blocks get their counts, groups their sizes, and noise its coins."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.graph import Graph, keys_of, simple
from incrowd.core.unit import Kind
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.block_model import block_counts, edges_from
from incrowd.methods.graphs.degree_anonymity.method import DegreeAnonymous
from incrowd.methods.graphs.degree_distribution import DegreeDistribution
from incrowd.methods.graphs.shared import degrees as projection
from incrowd.methods.graphs.shared.matrices import subset, triangles
from incrowd.methods.graphs.shared.outputs import PublishedGraph
from incrowd.methods.graphs.subgraph_count import SubgraphCount
from incrowd.methods.graphs.super_nodes import groups_of
from incrowd.methods.graphs.switching import switched
from tests.coins import ScriptedCoins, SeededCoins, law_of
from tests.graphs import karate, random_graph, schema, slow_triangles, with_clubs


def test_a_graph_is_simple() -> None:
    for pairs in ([(0, 0)], [(1, 0)], [(0, 1), (0, 1)], [(0, 3)], [(-1, 1)]):
        with pytest.raises(InvalidParameter):
            Graph(karate().ids[:3], np.array(pairs), karate().columns[:3])


def test_triangles_are_those_of_a_slow_count() -> None:
    for seed in range(5):
        graph = random_graph(25, 80, seed)
        assert triangles(graph) == slow_triangles(graph)
    assert triangles(Graph.of(3, [])) == 0


@pytest.mark.parametrize("share", [Fraction(1, 20), Fraction(1, 2), Fraction(1)])
def test_switches_keep_every_degree_and_change_the_share_that_was_asked_for(share: Fraction) -> None:
    graph = random_graph(300, 1500, 6)
    ends = switched(graph, share, SeededCoins(1))
    after = graph.with_ends(ends)
    assert after.degrees.tolist() == graph.degrees.tolist()
    moved = ~np.isin(keys_of(graph.ends, 300), keys_of(ends, 300))
    assert share / 2 < Fraction(int(moved.sum()), len(graph.ends)) <= share + Fraction(1, 100)


def test_two_edges_are_switched_in_both_ways_as_often() -> None:
    graph = Graph.of(4, [(0, 1), (2, 3)])
    script = {"below": [1, 2]}
    results = {
        tuple(map(tuple, switched(graph, Fraction(1), ScriptedCoins(**script, bernoulli=[turn])).tolist()))
        for turn in (0, 1)
    }
    assert results == {((0, 3), (1, 2)), ((0, 2), (1, 3))}


def test_nodes_get_new_numbers_by_coins_and_labels_follow() -> None:
    graph = with_clubs(Graph.of(3, [(0, 1)]), "aab")
    found = PublishedGraph.of(graph, {"club": graph.columns["club"].combine_chunks()}, ScriptedCoins(below=[7, 9, 1]))
    assert found.nodes["club"].to_pylist() == ["b", "a", "a"]
    assert found.ends.tolist() == [[1, 2]]
    assert found.origin is not None
    assert found.origin.tolist() == [2, 0, 1]


def test_every_set_of_places_is_as_likely() -> None:
    for size, number in ((4, 2), (5, 1), (4, 3)):
        law = law_of(lambda coins, s=size, n=number: tuple(subset(s, n, coins).tolist()), rounds=3)  # type: ignore[misc]
        chances = list(law.values())
        assert max(chances) == pytest.approx(min(chances))


def test_a_graph_drawn_from_blocks_has_the_counts_as_far_as_there_is_room() -> None:
    blocks = np.array([0, 0, 0, 1, 1, 1, 1], np.int32)
    wanted = np.array([99, 5, -4])
    ends = edges_from(wanted, blocks, 2, SeededCoins(2))
    assert block_counts(Graph.of(7, ends), blocks, 2).tolist() == [3, 5, 0]


def test_groups_have_at_least_k_nodes_of_one_class() -> None:
    graph = random_graph(101, 300, 4)
    classes = np.arange(101) % 3
    groups = groups_of(graph, classes, 7)
    sizes = np.bincount(groups)
    assert sizes.min() >= 7
    assert sizes.max() < 14
    assert all(len(set(classes[groups == group].tolist())) == 1 for group in range(len(sizes)))


def test_a_large_graph_gets_degrees_that_are_not_rare() -> None:
    graph = random_graph(3000, 20_000, 7)
    plan = DegreeAnonymous(k=10, columns=("club",)).plan(schema())
    found = plan.draw(graph, SeededCoins(3))
    rows = zip(found.graph.degrees.tolist(), found.nodes["club"].to_pylist(), strict=True)
    assert np.unique(np.array([f"{d} {c}" for d, c in rows]), return_counts=True)[1].min() >= 10


def test_counts_get_the_noise_of_their_coins() -> None:
    edges = SubgraphCount(count="edges", epsilon=Fraction(1)).plan(schema())
    assert edges.draw(karate(), ScriptedCoins(laplace=[-3])).table["number"].to_pylist() == [75]
    nodes = DegreeDistribution(epsilon=Fraction(1), bound=2).plan(schema(Kind.NODE))
    noisy = nodes.draw(Graph.of(3, [(0, 1)]), ScriptedCoins(laplace=[1, -2, 0])).table["count"].to_pylist()
    assert noisy == [2, 0, 0]


@pytest.mark.parametrize("mixing", [True, False], ids=["hashes", "ids alone"])
def test_which_edges_are_kept_hangs_on_ids_and_not_on_the_order_of_nodes(
    mixing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not mixing:  # every edge has the same hash, so that ids decide
        monkeypatch.setattr(projection, "_hashes", lambda graph: np.zeros(len(graph.ends), np.uint64))
    graph = random_graph(30, 120, 8)
    order = np.random.default_rng(1).permutation(30)
    moved = Graph(graph.ids.take(pa.array(order)), simple(np.argsort(order)[graph.ends], 30), graph.columns)
    kept = [
        {frozenset((each.ids[a].as_py(), each.ids[b].as_py())) for a, b in projection.projected(each, 3).tolist()}
        for each in (graph, moved)
    ]
    assert kept[0] == kept[1]
