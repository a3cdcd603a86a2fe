"""Attacks on graphs: most nodes of a switched graph are found, and no more than by luck where a guarantee holds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from incrowd.attacks.finding import AttackVerdict
from incrowd.attacks.graphs import GRAPH_ATTACKS, GraphTrial, graph_attack_of, largest_shared
from incrowd.core.graph import Graph, GraphSchema, Relations
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.block_model import BlockModel
from incrowd.methods.graphs.clustering import Clustering
from incrowd.methods.graphs.degree_distribution import DegreeDistribution
from incrowd.methods.graphs.degree_sequence import DegreeSequence
from incrowd.methods.graphs.subgraph_count import SubgraphCount
from incrowd.methods.graphs.super_nodes import SuperNodes
from incrowd.methods.graphs.switching import Switching
from incrowd.workflows.graph.published import HeldRelease
from tests.coins import SeededCoins
from tests.graphs import dense, karate, random_graph, schema

SIZE = 2000


@pytest.fixture(scope="module")
def known() -> Graph:
    return random_graph(SIZE, 20_000, 1)


def trial_of(graph: Graph, method: Any) -> GraphTrial:
    output = method.plan(schema()).release(graph, SeededCoins(4))
    held = HeldRelease(None, output, getattr(output, "origin", None))  # type: ignore[arg-type]
    return held.trial(graph)


def test_characteristic_vectors_find_most_nodes_of_a_graph_with_5_percent_of_its_edges_switched(known: Graph) -> None:
    """Seeded coins and dice, so that nothing is left to chance."""
    found = graph_attack_of("characteristic-vectors")(trial_of(known, Switching(share=Fraction(1, 20))))
    assert found.success.estimate > 0.5
    assert found.reference.estimate < 0.01
    assert found.verdict is AttackVerdict.LEAK


@pytest.mark.parametrize(
    "method",
    [
        SuperNodes(k=10),
        DegreeDistribution(epsilon=Fraction(1)),
        BlockModel(column="club", epsilon=Fraction(1)),
        DegreeSequence(epsilon=Fraction(1)),
    ],
    ids=lambda method: method.name,
)
def test_characteristic_vectors_find_no_more_than_by_luck_where_a_guarantee_holds(known: Graph, method: Any) -> None:
    found = graph_attack_of("characteristic-vectors")(trial_of(known, method))
    assert found.verdict is AttackVerdict.NOT_FOUND
    assert found.success.estimate < 0.01


def test_numbers_alone_can_not_be_laid_on_a_graph() -> None:
    for method in (Clustering(epsilon=Fraction(1)), SubgraphCount(count="edges", epsilon=Fraction(1))):
        with pytest.raises(InvalidParameter, match="only numbers"):
            trial_of(karate(), method)


@pytest.mark.parametrize("name", list(GRAPH_ATTACKS))
def test_the_graph_itself_is_found_out_and_one_of_other_people_is_not(name: str) -> None:
    graph = random_graph(400, 4000, 2)
    same = GraphTrial(graph, graph, np.arange(400), np.zeros(400, np.int64), withheld=graph.ends)
    found = graph_attack_of(name)(same)
    assert found.success.low > found.reference.high
    other = random_graph(400, 4000, 3)
    nowhere = np.random.default_rng(0).permutation(400)
    apart = GraphTrial(graph, other, nowhere, np.zeros(400, np.int64), withheld=graph.ends)
    assert graph_attack_of(name)(apart).verdict is AttackVerdict.NOT_FOUND


def test_names_are_exchanged_within_crowds_only() -> None:
    crowd = np.repeat(np.arange(10), 4)
    trial = GraphTrial(random_graph(40, 200, 1), random_graph(40, 200, 2), np.arange(40), crowd)
    assert (crowd[trial.exchanged()] == crowd).all()
    assert sorted(trial.exchanged().tolist()) == list(range(40))
    assert (trial.exchanged() != trial.truth).any()


def test_the_sparse_part_of_vectors_holds_the_largest_numbers_of_common_neighbors() -> None:
    shared = np.sort(dense(karate()) @ dense(karate()), axis=1)[:, ::-1]
    assert (largest_shared(karate())[:, 1:35] == shared).all()


def test_a_trial_needs_everybody_and_seed_and_grow_a_graph_that_is_not_too_large() -> None:
    graph = random_graph(20, 40, 1)
    with pytest.raises(InvalidParameter):
        GraphTrial(graph, graph, np.arange(3), np.zeros(20, np.int64))
    huge = Graph.of(5001, [(0, 1)])
    with pytest.raises(InvalidParameter, match="at most 5,000"):
        graph_attack_of("seed-and-grow")(GraphTrial(huge, huge, np.arange(5001), np.zeros(5001, np.int64)))


def two_kinds(together: float) -> tuple[Graph, NDArray[np.int64]]:
    """Return colleagues of 40 teams, and friends: so many of them colleagues, the others anybody."""
    chance, teams = np.random.default_rng(9), np.repeat(np.arange(40), 10)
    pairs = np.stack(np.triu_indices(400, 1), axis=1)
    team = teams[pairs[:, 0]] == teams[pairs[:, 1]]
    colleagues = pairs[team & (chance.random(len(pairs)) < 0.7)]
    likely = np.where(team, 0.35 * together, 0.004 * (1 - together) + 0.0005)
    return Graph.of(400, colleagues), pairs[chance.random(len(pairs)) < likely]


def kinds_trial(together: float, by_kind: bool = True) -> GraphTrial:
    graph, friends = two_kinds(together)
    layered = replace(graph, layers=(graph.ends,), columns=pa.table({"id": graph.ids, "club": ["a"] * 400}))
    plain = schema()
    declared = GraphSchema(plain.columns, plain.unit, Relations(("colleague",)))
    output = SuperNodes(k=10, by_kind=by_kind).plan(declared).release(layered, SeededCoins(4))
    held = HeldRelease(None, output, getattr(output, "origin", None))  # type: ignore[arg-type]
    return replace(held.trial(layered), withheld=friends)


def test_kinds_that_stay_give_a_withheld_kind_away_where_they_go_together() -> None:
    """Seeded, so that nothing is left to chance."""
    finding = graph_attack_of("withheld-kind")(kinds_trial(1.0))
    assert finding.verdict is AttackVerdict.LEAK
    assert finding.success.estimate > 0.75
    assert 0.4 < finding.baseline.estimate < 0.6
    assert 0.4 < finding.reference.estimate < 0.6


def test_a_withheld_kind_that_has_nothing_to_do_with_the_others_is_not_found() -> None:
    chance = np.random.default_rng(11)
    strangers = np.stack(np.triu_indices(400, 1), axis=1)[chance.random(400 * 399 // 2) < 0.01]
    finding = graph_attack_of("withheld-kind")(replace(kinds_trial(1.0), withheld=strangers))
    assert finding.verdict is AttackVerdict.NOT_FOUND


def test_without_a_withheld_kind_there_is_nothing_to_infer() -> None:
    with pytest.raises(InvalidParameter, match="a kind that was withheld"):
        graph_attack_of("withheld-kind")(replace(kinds_trial(1.0), withheld=None))
