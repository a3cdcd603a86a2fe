"""Changes of graphs: the fewest that leave no rare degree, and those made at random, beside exhaustive search."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from incrowd.attacks.graphs import sorted_rows
from incrowd.core.graph import Graph, keys_of
from incrowd.methods.graphs.add_delete import perturbed
from incrowd.methods.graphs.degree_anonymity.realization import anonymized
from incrowd.methods.graphs.degree_anonymity.sequence import fewest
from tests.coins import SeededCoins, law_of
from tests.graphs import VECTORS, karate, random_graph

PAIRS = list(itertools.combinations(range(5), 2))


def changes(before: Graph, ends: NDArray[np.int64]) -> int:
    """How many edges stand in one of both graphs only."""
    return len(np.setxor1d(keys_of(before.ends, before.size), keys_of(ends, before.size)))


def slow_fewest(classes: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """For every graph on five nodes, by its number: how far the nearest one without rare degrees is, among all."""
    bits = np.arange(1 << len(PAIRS))[:, None] >> np.arange(len(PAIRS)) & 1
    degrees = bits @ np.array([[node in pair for node in range(5)] for pair in PAIRS])
    alike = (degrees[:, :, None] == degrees[:, None, :]) & (classes[:, None] == classes)
    good = np.flatnonzero((alike.sum(axis=2) >= k).all(axis=1))
    return np.array([bits[good ^ place].sum(axis=1).min() for place in range(len(bits))])


def one_of_each_shape() -> list[int]:
    """The numbers of one graph for each of the 34 shapes that five nodes can have."""
    orders = [
        [PAIRS.index((min(p[a], p[b]), max(p[a], p[b]))) for a, b in PAIRS] for p in itertools.permutations(range(5))
    ]
    weights = np.array([[1 << place for place in order] for order in orders])
    bits = np.arange(1 << len(PAIRS))[:, None] >> np.arange(len(PAIRS)) & 1
    return [int(place) for place in np.unique((bits @ weights.T).min(axis=1))]


def numbered(place: int) -> Graph:
    return Graph.of(5, [pair for bit, pair in enumerate(PAIRS) if place >> bit & 1])


@pytest.mark.parametrize(("classes", "k"), [([0] * 5, 2), ([0] * 5, 3), ([0, 0, 0, 1, 1], 2)], ids=["2", "3", "labels"])
def test_no_graph_without_rare_degrees_is_nearer_than_the_one_found_on_all_shapes_of_five_nodes(
    classes: list[int], k: int
) -> None:
    """With labels the shapes are taken with the labels in one order."""
    groups, shapes = np.array(classes), one_of_each_shape()
    least = slow_fewest(groups, k)
    assert len(shapes) == 34
    for place in shapes:
        graph = numbered(place)
        ends = anonymized(graph, groups, k)
        labeled = np.stack([groups, graph.with_ends(ends).degrees])
        assert np.unique(labeled, axis=1, return_counts=True)[1].min() >= k
        assert changes(graph, ends) == least[place], place


@pytest.mark.parametrize(("k", "number"), [(2, 3), (5, 14)])
def test_the_fewest_changes_of_the_karate_club(k: int, number: int) -> None:
    ends = anonymized(karate(), np.zeros(34, np.int64), k)
    assert changes(karate(), ends) == number
    assert np.unique(karate().with_ends(ends).degrees, return_counts=True)[1].min() >= k


def test_fewer_changes_than_there_can_be_are_not_found() -> None:
    assert fewest(karate(), np.zeros(34, np.int64), 35, 600) is None


def test_every_edge_is_as_likely_to_go_and_every_other_pair_to_come() -> None:
    graph = Graph.of(4, [(0, 1), (1, 2), (2, 3)])
    law = law_of(lambda coins: tuple(keys_of(perturbed(graph, Fraction(1, 3), coins), 4).tolist()), rounds=4)
    chances = list(law.values())
    assert len(chances) == 9
    assert max(chances) == pytest.approx(min(chances))


def test_as_many_edges_come_as_go_while_there_is_room() -> None:
    graph = random_graph(60, 300, 1)
    ends = perturbed(graph, Fraction(1, 4), SeededCoins(1))
    assert len(ends) == len(graph.ends)
    assert changes(graph, ends) == 2 * -(-len(graph.ends) // 4)
    nearly = Graph.of(4, list(itertools.combinations(range(4), 2))[:-1])
    assert changes(nearly, perturbed(nearly, Fraction(1), SeededCoins(1))) == 2
    assert perturbed(Graph.of(2, [(0, 1)]), Fraction(1), SeededCoins(1)).tolist() == [[0, 1]]
    assert len(perturbed(Graph.of(3, []), Fraction(1), SeededCoins(1))) == 0


@pytest.mark.parametrize("number", [2, 4, 8])
def test_characteristic_vectors_find_as_many_of_the_karate_club_as_in_the_reference(number: int) -> None:
    """100 seeded runs, the same every time, beside a simulation that is good to some percent."""
    own, coins = sorted_rows(karate()), SeededCoins(number)
    found = []
    for _ in range(100):
        shown = sorted_rows(karate().with_ends(perturbed(karate(), Fraction(number, 78), coins)))
        apart = ((own[:, None] - shown) ** 2).sum(axis=2)
        nearest = apart <= apart.min(axis=1, keepdims=True) + 1e-9
        found.append((np.diag(nearest) / nearest.sum(axis=1)).mean())
    assert np.mean(found) == pytest.approx(VECTORS["R_reidentified"][str(number)], abs=0.03)
