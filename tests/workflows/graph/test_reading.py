"""Sources of graphs: what is refused before the charge, and what becomes of kinds, directions and odd edges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet as pq

from incrowd.core.graph import Graph
from incrowd.engines.readers.delimited import Delimited
from incrowd.errors import (
    IncrowdError,
    InvalidParameter,
    MixedUnits,
    SourceChanged,
    SourceInvalid,
    SourceUnreadable,
)
from incrowd.methods.graphs.shared.steps import TOGETHER
from incrowd.workflows.graph.profile import graph_of
from incrowd.workflows.graph.reading import GraphReader, NodeIds
from incrowd.workflows.graph.release import release_graph
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release
from incrowd.workflows.verify.verify import verify
from tests.coins import ScriptedCoins
from tests.graphs import graph_files, graph_policy, karate
from tests.policies import PEOPLE, changed

COUNT = {"method": "subgraph-count", "count": "edges", "epsilon": 1}
NODES = "id,club\nann,a\nbob,b\ncat,a\n"


def policy_of(folder: Path, edges: str, unit: str = "edge", release: Any = None, **rules: Any) -> dict[str, Any]:
    (folder / "nodes.csv").write_text(NODES, encoding="utf-8")
    (folder / "edges.csv").write_text(edges, encoding="utf-8")
    return graph_policy(folder, release or COUNT, unit, **rules)


def edges_of(policy: dict[str, Any]) -> list[list[int]]:
    ends: list[list[int]] = graph_of(load_policy(policy)).ends.tolist()
    return ends


@pytest.mark.parametrize(
    ("edges", "key", "kept"),
    [
        ("source,target\nann,bob\nbob,eve\n", "unknown", [[0, 1]]),
        ("source,target\nann,bob\nbob,bob\n", "loops", [[0, 1]]),
        ("source,target\nann,bob\nbob,ann\n", "doubles", [[0, 1]]),
        ("source,target\nann,bob\nbob,\n", "unknown", [[0, 1]]),
    ],
)
def test_odd_edges_are_refused_without_a_value_and_a_charge_or_dropped(
    edges: str, key: str, kept: list[list[int]], tmp_path: Path
) -> None:
    policy = policy_of(tmp_path, edges)
    with pytest.raises(SourceInvalid, match=f"{key}: drop") as error:
        release_graph(policy, Destination(tmp_path / "out"))
    assert not any(name in str(error.value) for name in ("ann", "bob", "eve"))
    assert not (tmp_path / "out").exists()
    assert find_book(load_policy(policy)) is None
    assert edges_of(policy_of(tmp_path, edges, **{key: "drop"})) == kept


def test_edges_are_parsed_once_before_the_charge_and_noticed_if_they_change(tmp_path: Path) -> None:
    policy, parse, finish = (
        policy_of(tmp_path, "source,target\nann,bob\nbob,cat\n"),
        Delimited._parse,
        GraphReader.graph,
    )

    def meddled(reader: GraphReader) -> Graph:
        with (tmp_path / "edges.csv").open("a", encoding="utf-8") as file:
            file.write("ann,cat\n")
        return finish(reader)

    with patch.object(GraphReader, "graph", meddled), pytest.raises(SourceChanged):
        release_graph(policy, Destination(tmp_path / "out"))
    assert find_book(load_policy(policy)) is None
    with patch.object(Delimited, "_parse", autospec=True, side_effect=parse) as parses:
        release_graph(policy, Destination(tmp_path / "out"))
    assert [call.args[0].path.name for call in parses.call_args_list].count("edges.csv") == 1
    (tmp_path / "edges.csv").write_text("source,target\nann,bob\nbob,cat,ann\n", encoding="utf-8")
    with pytest.raises(SourceInvalid, match="line 3"):
        release_graph(policy, Destination(tmp_path / "broken"))


def test_two_directions_are_doubles_only_in_a_graph_without_directions(tmp_path: Path) -> None:
    edges = "source,target\nann,bob\nbob,ann\nbob,cat\n"
    assert edges_of(policy_of(tmp_path, edges, directed=True)) == [[0, 1], [1, 2]]
    with pytest.raises(SourceInvalid, match="more than once"):
        edges_of(policy_of(tmp_path, f"{edges}ann,bob\n", directed=True))


def test_kinds_of_edges_are_no_doubles_and_only_those_asked_for_count(tmp_path: Path) -> None:
    edges = "source,target,how\nann,bob,friend\nann,bob,boss\nbob,cat,boss\n"
    assert edges_of(policy_of(tmp_path, edges, kind="how")) == [[0, 1], [1, 2]]
    assert edges_of(policy_of(tmp_path, edges, kind="how", kinds=["friend"])) == [[0, 1]]


def test_edges_of_each_kind_and_direction_are_counted_apart_and_a_lie_about_them_is_found(tmp_path: Path) -> None:
    """Two kinds in two directions: all edges of a pair are four, and each of two numbers gets noise for all of them."""
    edges = "source,target,how\nann,bob,friend\nbob,ann,friend\nann,bob,boss\nbob,cat,guest\n"
    told: dict[str, Any] = {"directed": True, "kind": "how", "kinds": ["friend", "boss"]}
    policy = policy_of(tmp_path, edges, release={"method": "edge-kinds", "count": "edges", "epsilon": 1}, **told)
    graph = graph_of(load_policy(policy))
    assert [layer.tolist() for layer in graph.layers] == [[[0, 1], [1, 0]], [[0, 1]]]
    assert graph.ends.tolist() == [[0, 1]]
    plan = load_policy(policy).plan
    assert plan.settings["scale"] == 4
    assert plan.draw(graph, ScriptedCoins(laplace=[1, -5])).table.to_pylist() == [
        {"kind": "friend", "number": 3},
        {"kind": "boss", "number": -4},
    ]
    release_graph(policy, Destination(tmp_path / "out", "csv"))
    assert verify(tmp_path / "out", policy=load_policy(policy)).passed
    file = tmp_path / "out" / "certificate.json"
    plain = json.loads(file.read_text(encoding="utf-8"))
    plain["steps"][0] |= {"directed": False}
    file.write_text(json.dumps(plain), encoding="utf-8")
    found = verify(tmp_path / "out")
    assert not found.passed
    assert any("not those that the noise is made for" in each.why for each in found.findings)


def test_one_edge_of_one_kind_is_priced_as_one_and_the_certificate_says_what_a_pair_can_lose(tmp_path: Path) -> None:
    edges = "source,target,how\nann,bob,friend\nbob,ann,boss\n"
    told: dict[str, Any] = {"directed": True, "kind": "how", "kinds": ["friend", "boss"]}
    release = {"method": "edge-kinds", "count": "degrees", "epsilon": 1}
    policy = load_policy(policy_of(tmp_path, edges, "edge of one kind", release, **told))
    assert policy.plan.settings["scale"] == 2
    assert TOGETHER in policy.plan.claims[0].not_protected
    table = policy.plan.draw(graph_of(policy), ScriptedCoins(laplace=[0] * 12)).table
    assert table.filter(pc.equal(table["kind"], "boss")).to_pylist() == [
        {"kind": "boss", "direction": way, "degree": degree, "count": 2 - degree}
        for way in ("out", "in")
        for degree in (0, 1)
    ]
    release_graph(policy, Destination(tmp_path / "out"))
    other = policy_of(tmp_path, edges, "edge", release, **told)
    with pytest.raises(MixedUnits, match="one unit"):
        release_graph(other, Destination(tmp_path / "again"))


def test_kinds_that_are_met_later_or_missing_are_kinds_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incrowd.workflows.graph.reading._ROWS", 1)
    edges = "source,target,how\nann,bob,friend\nann,bob,\nann,bob,boss\nbob,cat,boss\n"
    assert edges_of(policy_of(tmp_path, edges, kind="how")) == [[0, 1], [1, 2]]
    with pytest.raises(SourceInvalid, match="1 edges stand more than once"):
        edges_of(policy_of(tmp_path, f"{edges}ann,bob,friend\n", kind="how"))


def test_nodes_without_an_id_of_their_own_are_refused(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, "source,target\nann,bob\n")
    (tmp_path / "nodes.csv").write_text("id,club\nann,a\nann,b\nbob,b\n", encoding="utf-8")
    with pytest.raises(SourceInvalid, match="or share one"):
        edges_of(policy)


def test_graphml_parquet_and_csv_are_the_same_graph(tmp_path: Path) -> None:
    graph_files(tmp_path, karate())
    policy = graph_policy(tmp_path, COUNT)
    expected = edges_of(policy)
    ids = karate().ids.to_pylist()
    pq.write_table(karate().columns, tmp_path / "nodes.parquet")
    pairs = [[ids[a], ids[b]] for a, b in karate().ends.tolist()]
    columns = {"source": [a for a, _ in pairs], "target": [b for _, b in pairs]}
    pq.write_table(pa.table(columns), tmp_path / "edges.parquet")
    policy["nodes"]["source"], policy["edges"]["source"] = (
        str(tmp_path / f"{name}.parquet") for name in ("nodes", "edges")
    )
    assert edges_of(policy) == expected
    (tmp_path / "club.graphml").write_text(graphml(), encoding="utf-8")
    policy["nodes"]["source"] = policy["edges"]["source"] = str(tmp_path / "club.graphml")
    assert edges_of(policy) == expected


def graphml() -> str:
    clubs = karate().columns["club"].to_pylist()
    nodes = [f'<node id="{n}"><data key="d0">{club}</data></node>' for n, club in enumerate(clubs)]
    edges = [f'<edge source="{a}" target="{b}"/>' for a, b in karate().ends.tolist()]
    return (
        '<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        '<key id="d0" for="node" attr.name="club" attr.type="string"/>'
        f'<graph edgedefault="undirected">{"".join(nodes + edges)}</graph></graphml>'
    )


@pytest.mark.parametrize(
    "text", ["no xml", '<!DOCTYPE g [<!ENTITY a "b">]><graphml><graph/></graphml>', "<graphml><node/></graphml>"]
)
def test_graphml_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    graph_files(tmp_path, karate())
    policy = graph_policy(tmp_path, COUNT)
    (tmp_path / "club.graphml").write_text(text, encoding="utf-8")
    policy["nodes"]["source"] = str(tmp_path / "club.graphml")
    with pytest.raises(SourceUnreadable):
        edges_of(policy)


@pytest.mark.parametrize(
    ("release", "unit", "words"),
    [
        ({"method": "subgraph-count", "count": "triangles", "epsilon": 1}, "node", "without bound"),
        (
            {"method": "subgraph-count", "count": "stars", "leaves": 2, "bound": 5, "epsilon": 1},
            "node",
            "without bound",
        ),
        ({"method": "subgraph-count", "count": "stars", "leaves": 2, "epsilon": 1}, "edge", "give the bound"),
        ({"method": "subgraph-count", "count": "edges", "epsilon": 1}, "node", "give the bound"),
        ({"method": "subgraph-count", "count": "edges", "epsilon": 1, "bound": 3}, "edge", "leave it out"),
        ({"method": "degree-distribution", "epsilon": 1}, "node", "give the bound"),
        ({"method": "block-model", "column": "club", "epsilon": 1}, "node", "without bound"),
        ({"method": "edge-response", "epsilon": 1}, "node", "without bound"),
        ({"method": "clustering", "epsilon": 1}, "node", "without bound"),
        ({"method": "degree-sequence", "epsilon": 1}, "node", "without bound"),
        ({"method": "edge-kinds", "count": "edges", "epsilon": 1}, "node", "without bound"),
        ({"method": "edge-kinds", "count": "edges", "epsilon": "1e-20"}, "edge", "at most 2"),
        ({"method": "clustering", "epsilon": 0}, "edge", "above 0"),
        ({"method": "clustering", "epsilon": 1, "power": 1}, "edge", "from 2"),
        ({"method": "add-delete", "share": 0}, "edge", "at most 1"),
        ({"method": "block-model", "column": "id", "epsilon": 1}, "edge", "identifier"),
        ({"method": "block-model", "column": "club", "epsilon": "1e-20"}, "edge", "at most 2"),
        ({"method": "degree-distribution", "epsilon": 1, "bound": 10**9}, "node", "from 1 to"),
        ({"method": "subgraph-count", "count": "stars", "leaves": 9, "bound": 10**6, "epsilon": 1}, "edge", "smaller"),
        ({"method": "degree-anonymity", "k": 1}, "edge", "at least 2"),
        ({"method": "switching", "share": 2}, "edge", "at most 1"),
        ({"method": "safe", "k": 5, "rate": 1}, "edge", "for tables"),
    ],
)
def test_what_cannot_be_guaranteed_is_refused_with_the_way_out(
    release: dict[str, Any], unit: str, words: str, tmp_path: Path
) -> None:
    policy = policy_of(tmp_path, "source,target\nann,bob\n", unit, release)
    with pytest.raises(InvalidParameter, match=words):
        _ = load_policy(policy).plan


@pytest.mark.parametrize(
    "release",
    [
        {"method": "super-nodes", "k": 4},
        {"method": "degree-anonymity", "k": 4},
        {"method": "degree-anonymity", "k": 2, "columns": ["club"]},
    ],
    ids=["groups", "degrees", "labels"],
)
def test_k_that_cannot_be_reached_costs_nothing(release: dict[str, Any], tmp_path: Path) -> None:
    policy = policy_of(tmp_path, "source,target\nann,bob\n", release=release)
    with pytest.raises(InvalidParameter, match=f"fewer than {release['k']}"):
        release_graph(policy, Destination(tmp_path / "out"))
    book = find_book(load_policy(policy))
    assert book is None or not book.knows("club")


def test_a_policy_is_of_a_table_or_of_a_graph(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, "source,target\nann,bob\n")
    for wrong in (
        changed(policy, dataset__unit={}),
        changed(policy, columns={"club": {}}),
        changed(policy, edges=None),
        changed(PEOPLE, dataset__unit={"kind": "edge"}),
        changed(PEOPLE, release=COUNT),
        changed(policy, edges__kinds=["friend"]),
        changed(policy, edges__kind="how", edges__kinds=["friend", "friend"]),
    ):
        with pytest.raises(IncrowdError):
            _ = load_policy(wrong).plan
    with pytest.raises(InvalidParameter, match="incrowd graph release"):
        release(pa.table({"id": ["ann"], "club": ["a"]}), policy)
    with pytest.raises(InvalidParameter, match="of a table"):
        release_graph(PEOPLE, Destination(tmp_path / "out"))


@pytest.mark.parametrize(
    "ids", [["7", "0", "12", "3"], ["7", "0", "012", "3"], ["7", "0", "12", "9" * 18], ["a", "7"], []]
)
def test_ids_that_are_numbers_are_found_as_texts_are(ids: list[str]) -> None:
    named = ["7", "07", "0", "-7", "+7", " 7", "12", "012", "9" * 18, "9" * 25, "3", "", "a", "1e1", "7.0"]
    nodes = NodeIds(pa.array(ids, pa.string()))
    numbers = [name for name in named if name.isdecimal()]
    balanced = ["12", "012", "0x7fffffffffffffff"]  # as many characters as digits in all, and yet two are no ids
    for values in ([*named, None], named, numbers, ["7", "12", "0", "1000000"], balanced, ["7", "0x3", "-3"]):
        expected = [ids.index(value) if value in ids else -1 for value in values]
        assert nodes.places(pa.array(values, pa.string())).tolist() == expected
