"""Edges of several kinds, edge lists without nodes, and edges to nodes that are not listed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

from incrowd.errors import InvalidParameter, SourceInvalid
from incrowd.methods.graphs.super_nodes import CHECK
from incrowd.verifier.judge import statement_of
from incrowd.workflows.graph.attack import attack_graph
from incrowd.workflows.graph.profile import graph_of, profile_graph
from incrowd.workflows.graph.published import HeldRelease
from incrowd.workflows.graph.release import release_graph
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.verify.verify import verify
from tests.graphs import graph_policy
from tests.policies import changed

KINDS: dict[str, Any] = {"kind": "kind", "kinds": ["colleague", "neighbor"], "doubles": "drop"}
GROUPS = {"method": "super-nodes", "k": 5, "by_kind": True}


def offices(folder: Path) -> None:
    """Write 60 people of 6 offices: colleagues, neighbors, and friends, of whom most are colleagues."""
    chance = np.random.default_rng(3)
    low, high = np.triu_indices(60, 1)
    same = low // 10 == high // 10
    lines = ["source,target,kind"]
    for kind, near, far in (("colleague", 0.8, 0.0), ("neighbor", 0.05, 0.05), ("friend", 0.4, 0.01)):
        taken = chance.random(len(low)) < np.where(same, near, far)
        lines += [f"Bürger {a},Bürger {b},{kind}" for a, b in zip(low[taken], high[taken], strict=True)]
    (folder / "edges.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    people = [f"Bürger {number},{'ab'[number % 2]}" for number in range(60)]
    (folder / "nodes.csv").write_text("\n".join(["id,club", *people]) + "\n", encoding="utf-8")


def test_super_nodes_publish_edges_by_kind_and_an_attack_measures_what_that_gives_away(tmp_path: Path) -> None:
    offices(tmp_path)
    policy = graph_policy(tmp_path, GROUPS, **KINDS)
    published = release_graph(policy, Destination(tmp_path / "out", "csv"))
    assert verify(published.folder, policy=load_policy(policy)).passed
    nodes, edges = (pcsv.read_csv(tmp_path / "out" / f"data.{part}.csv") for part in (1, 2))
    kinds = ["edges of kind colleague", "edges of kind neighbor"]
    assert edges.column_names == ["from", "to", "edges", *kinds]
    assert nodes.column_names[3:] == ["edges inside of kind colleague", "edges inside of kind neighbor"]
    read = graph_of(load_policy(policy))
    counts = [sum(nodes[f"edges inside of kind {kind}"].to_pylist()) for kind in KINDS["kinds"]]
    counts = [one + sum(edges[name].to_pylist()) for one, name in zip(counts, kinds, strict=True)]
    assert counts == [len(layer) for layer in read.layers]
    assert "friend" not in "".join((tmp_path / "out" / f"data.{part}.csv").read_text() for part in (1, 2))
    shown = [exposure.key for exposure in published.release.certificate.claims[0].not_protected]
    assert "kinds-of-group-edges" in shown
    (finding,) = attack_graph(published.folder, policy, ["withheld-kind"]).findings
    assert (finding.attack, finding.success.of) == ("withheld-kind", finding.reference.of)
    assert finding.success.of > 100


def test_a_forged_kind_is_noticed(tmp_path: Path) -> None:
    offices(tmp_path)
    policy = graph_policy(tmp_path, GROUPS, **KINDS)
    published = release_graph(policy, Destination(tmp_path / "out", "csv"))
    output = HeldRelease.read(published.folder, load_policy(policy)).output
    statement = statement_of(published.release.certificate)
    assert CHECK.recount(statement, output) is None
    place = output.edges.column_names.index("edges of kind neighbor")
    for count in (-1, 10**6):
        forged = output.edges.set_column(place, "edges of kind neighbor", pa.array([count] * output.edges.num_rows))
        problem = CHECK.recount(statement, replace(output, edges=forged))
        assert "not those of the connected pairs" in str(problem)
    fewer = replace(output, edges=output.edges.drop_columns("edges of kind neighbor"))
    assert "columns" in str(CHECK.recount(statement, fewer))


def test_kinds_are_published_only_where_they_are_declared(tmp_path: Path) -> None:
    offices(tmp_path)
    with pytest.raises(InvalidParameter, match="list them as kinds: under edges:"):
        release_graph(graph_policy(tmp_path, GROUPS, kind="kind", doubles="drop"), Destination(tmp_path / "out"))


def edge_list(folder: Path, release: Any, unit: str = "edge") -> dict[str, Any]:
    (folder / "edges.csv").write_text("source,target\n0017,Zoë\nZoë,ann\nann,0017\n", encoding="utf-8")
    return changed(graph_policy(folder, release, unit), nodes={"id": "member"})


def test_an_edge_list_alone_is_a_graph_of_those_whom_it_names(tmp_path: Path) -> None:
    policy = edge_list(tmp_path, {"method": "subgraph-count", "count": "triangles", "epsilon": 1})
    graph = graph_of(load_policy(policy))
    assert (graph.ids.to_pylist(), graph.ends.tolist()) == (["0017", "Zoë", "ann"], [[0, 1], [0, 2], [1, 2]])
    published = release_graph(policy, Destination(tmp_path / "out"))
    assert verify(published.folder, policy=load_policy(policy)).passed
    claim = published.release.certificate.claims[0]
    assert "nodes-read-from-edges" in [exposure.key for exposure in claim.not_protected]
    assert profile_graph(policy).unknown.edges == 0
    alone = load_policy(changed(policy, nodes=None))
    assert graph_of(alone).ids.to_pylist() == ["0017", "Zoë", "ann"], "nodes: may be left out"


def test_a_kind_that_is_withheld_adds_no_nodes(tmp_path: Path) -> None:
    rows = "source,target,kind\nann,bob,colleague\nbob,Zoë,friend\n"
    (tmp_path / "edges.csv").write_text(rows, encoding="utf-8")
    policy = changed(graph_policy(tmp_path, {"method": "super-nodes", "k": 2}, **KINDS), nodes=None)
    assert graph_of(load_policy(policy)).ids.to_pylist() == ["ann", "bob"], "a lone node would show a friendship"


def test_a_profile_counts_edges_to_unlisted_nodes_where_a_release_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,club\nann,a\nbob,b\n", encoding="utf-8")
    rows = "source,target,kind\nann,bob,colleague\nann,Bob,colleague\nann,eve,friend\n"
    (tmp_path / "edges.csv").write_text(rows, encoding="utf-8")
    policy = graph_policy(tmp_path, {"method": "super-nodes", "k": 2}, **KINDS)
    profiled = profile_graph(policy)
    assert (profiled.edges, profiled.unknown.edges, profiled.unknown.refused) == (1, 1, True)
    assert profiled.unknown.nearest == (("Bob", ("bob",)),)
    with pytest.raises(SourceInvalid, match="1 edges name a node"):
        release_graph(policy, Destination(tmp_path / "out"))
    dropped = profile_graph(changed(policy, edges__unknown="drop")).unknown
    assert (dropped.edges, dropped.refused) == (1, False)


def test_nodes_that_are_not_listed_cannot_be_the_unit(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="they are not listed"):
        load_policy(edge_list(tmp_path, {"method": "degree-distribution", "epsilon": 1}, "node"))
    columns = {"id": "member", "columns": {"club": {"categories": ["a", "b"]}}}
    with pytest.raises(InvalidParameter, match="need a source"):
        load_policy(changed(edge_list(tmp_path, {"method": "super-nodes", "k": 2}), nodes=columns))
