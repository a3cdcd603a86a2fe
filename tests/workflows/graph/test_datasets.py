"""Graphs are told apart by the ids of their nodes: other people have their own budget, the same ones do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.core.graph import Graph
from incrowd.errors import Refused
from incrowd.workflows.graph.release import release_graph
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release
from tests.graphs import graph_files, graph_policy, karate, random_graph, with_clubs
from tests.policies import changed

COUNT = {"method": "subgraph-count", "count": "edges", "epsilon": 1, "bound": 5}
DEGREES = {"method": "degree-distribution", "epsilon": 1}


def renamed(graph: Graph, prefix: str) -> Graph:
    """Return the same graph of other people."""
    ids = pa.array([f"{prefix}{number}" for number in range(graph.size)])
    return Graph(ids, graph.ends, graph.columns.set_column(0, "id", ids))


def released(folder: Path, name: str, graph: Graph, release: dict[str, Any], unit: str) -> None:
    """Release a graph as a dataset, in one ledger with all others of the folder."""
    (folder / name).mkdir()
    graph_files(folder / name, graph)
    plain = changed(
        graph_policy(folder / name, release, unit), dataset__name=name, ledger=f"sqlite:///{folder}/ledger.sqlite"
    )
    release_graph(plain, Destination(folder / f"{name} out"))


@pytest.mark.parametrize(("told", "unit"), [(COUNT, "node"), (DEGREES, "edge")])
def test_graphs_without_a_common_node_are_other_people(tmp_path: Path, told: dict[str, Any], unit: str) -> None:
    released(tmp_path, "club", renamed(karate(), "k"), told, unit)
    released(tmp_path, "town", renamed(random_graph(500, 1500, 3), "Bürger "), told, unit)
    released(tmp_path, "twin", renamed(karate(), "z"), told, unit)  # the same form, and not one id


@pytest.mark.parametrize(("told", "unit"), [(COUNT, "node"), (DEGREES, "edge")])
def test_graphs_with_the_same_nodes_share_a_budget_whatever_else_changed(
    tmp_path: Path, told: dict[str, Any], unit: str
) -> None:
    graph = karate()
    released(tmp_path, "club", graph, told, unit)
    others = random_graph(34, 60, 5)
    for name, same in (
        ("again", graph),
        ("other edges", Graph(graph.ids, others.ends, graph.columns)),
        ("other clubs", with_clubs(graph, "b" * 34)),
    ):
        with pytest.raises(Refused, match=r"A new name gives no new budget"):
            released(tmp_path, name, same, told, unit)


def test_a_graph_that_holds_half_of_another_ones_nodes_is_asked_about(tmp_path: Path) -> None:
    released(tmp_path, "club", karate(), COUNT, "node")
    town = renamed(random_graph(500, 1500, 3), "k")
    ids = pa.array([*karate().ids.to_pylist()[:17], *town.ids.to_pylist()[17:]])
    with pytest.raises(Refused, match="share at least half of their people"):
        released(tmp_path, "town", Graph(ids, town.ends, town.columns.set_column(0, "id", ids)), COUNT, "node")


def test_the_nodes_of_a_graph_are_recognized_as_the_people_of_a_table(tmp_path: Path) -> None:
    released(tmp_path, "club", karate(), COUNT, "node")
    table = pa.table({"who": karate().ids, "sex": ["F", "M"] * 17})
    plain = {
        "incrowd": 1,
        "dataset": {"name": "members", "unit": {"column": "who"}},
        "columns": {"who": {"role": "identifier"}, "sex": {"categories": ["F", "M"]}},
        "release": {"method": "private-histogram", "levels": {"sex": 0}, "epsilon": 1},
        "budget": {"epsilon": 5},
        "ledger": f"sqlite:///{tmp_path}/ledger.sqlite",
    }
    with pytest.raises(Refused, match="share at least half of their people"):
        release(table, plain)
