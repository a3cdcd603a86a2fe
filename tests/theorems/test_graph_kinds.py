"""Kinds and directions of edges: what one unit moves, on all graphs of three nodes, as the code reads their rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from incrowd.core.graph import Graph, GraphSchema, Relations
from incrowd.core.unit import Kind, Unit
from incrowd.methods.graphs.degree_distribution import DegreeDistribution
from incrowd.methods.graphs.edge_kinds import EdgeKinds
from incrowd.methods.graphs.shared.steps import DROP, Relate
from incrowd.methods.graphs.subgraph_count import SubgraphCount
from incrowd.workflows.graph.reading import connected
from tests.graphs import schema

SIZE, KINDS = 3, ("friend", "boss")
Row = tuple[int, int, int]


def slots(relations: Relations) -> list[Row]:
    """Every edge that there can be: its two ends and its kind."""
    ends = itertools.permutations(range(SIZE), 2) if relations.directed else itertools.combinations(range(SIZE), 2)
    return [(*pair, kind) for pair in ends for kind in range(max(1, len(relations.kinds)))]


def graph_of(rows: list[Row], relations: Relations) -> Graph:
    """The graph of some rows, by the rules that sources are read with."""
    rules = Relate(relations.directed, relations.kinds, doubles=DROP)
    told = np.array(rows, np.int64).reshape(-1, 3)
    ends, layers = connected(told[:, :2], told[:, 2], rules, SIZE)
    base = Graph.of(SIZE, [])
    return Graph(base.ids, ends, base.columns, layers)


@cache
def all_graphs(relations: Relations) -> dict[tuple[Row, ...], Graph]:
    """Every graph by its rows."""
    all_rows = slots(relations)
    chosen = (
        tuple(row for row, here in zip(all_rows, taken, strict=True) if here)
        for taken in itertools.product((False, True), repeat=len(all_rows))
    )
    return {rows: graph_of(list(rows), relations) for rows in chosen}


def neighbors(rows: list[Row], kind: Kind) -> Iterator[list[Row]]:
    """Every graph with one unit less: one row, or all rows of a pair of nodes."""
    if kind is Kind.RELATION:
        yield from ([row for row in rows if row != gone] for gone in rows)
    else:
        pairs = {frozenset(row[:2]) for row in rows}
        yield from ([row for row in rows if frozenset(row[:2]) != pair] for pair in pairs)


def farthest(method: Any, relations: Relations, kind: Kind) -> int:
    """How far one unit moves all numbers of a method together, on all graphs."""
    told = {"directed": relations.directed} if isinstance(method, EdgeKinds) else {}
    graphs = all_graphs(relations)
    numbers = {rows: np.atleast_1d(method.statistic(graph, **told)) for rows, graph in graphs.items()}
    moves = (
        int(np.abs(own - numbers[tuple(less)]).sum())
        for rows, own in numbers.items()
        for less in neighbors(list(rows), kind)
    )
    return max(moves)


@pytest.mark.parametrize("count", ["edges", "degrees"])
@pytest.mark.parametrize("kind", [Kind.EDGE, Kind.RELATION])
@pytest.mark.parametrize(
    "relations",
    [Relations(), Relations(directed=True), Relations(KINDS), Relations(KINDS, directed=True)],
    ids=["one", "directed", "kinds", "directed-kinds"],
)
def test_one_unit_moves_kinds_as_far_as_their_noise_is_made_for_on_all_graphs(
    relations: Relations, kind: Kind, count: str
) -> None:
    """Integer Laplace noise of its own on each number costs the distance in all over the scale: this is the loss."""
    method = EdgeKinds(count=count, epsilon=Fraction(1, 2))  # type: ignore[arg-type]
    plan = method.plan(GraphSchema(schema().columns, Unit(kind), relations))
    assert farthest(method, relations, kind) == plan.settings["scale"] / 2
    assert plan.guarantee.loss.epsilon == Fraction(1, 2)  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [Kind.EDGE, Kind.RELATION])
@pytest.mark.parametrize(
    "method",
    [
        DegreeDistribution(epsilon=Fraction(1)),
        SubgraphCount(count="edges", epsilon=Fraction(1)),
        SubgraphCount(count="stars", leaves=2, bound=2, epsilon=Fraction(1)),
    ],
    ids=["degrees", "edges", "stars"],
)
def test_where_kinds_and_directions_connect_a_pair_no_unit_moves_more_than_an_edge_does(
    method: Any, kind: Kind
) -> None:
    relations = Relations(("friend",), directed=True)
    plan = method.plan(GraphSchema(schema().columns, Unit(kind), relations))
    assert farthest(method, relations, kind) == plan.steps[0].scale
