"""Graphs of people who decide: whoever does not consent is left out with all edges, before everything else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.core.steps.around import OWN_NODE, gate_of
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, Refused
from incrowd.governance.consent.event import Decided
from incrowd.verifier.check import Verdict
from incrowd.workflows.consent.participants import FILE
from incrowd.workflows.consent.snapshot import ConsentSnapshot, admit
from incrowd.workflows.graph.assess import assess_graph
from incrowd.workflows.graph.profile import graph_of, profile_graph
from incrowd.workflows.graph.reading import GraphRows, read_graph
from incrowd.workflows.graph.release import prepare_graph, release_graph
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.prepare import Background
from incrowd.workflows.verify.verify import verify
from tests.consents import PURPOSE, TODAY, TOMORROW, Consented, consented
from tests.graphs import all_graphs, graph_files, graph_policy, karate, without_node
from tests.policies import changed, written

COUNT = {"method": "subgraph-count", "count": "edges", "epsilon": 1, "bound": 5}
SWITCHED = {"method": "switching", "share": "1/10"}
PLACES = {"registry": "../registry/consent.sqlite", "key": "../key/consent.key"}


def gated(folder: Path, release: dict[str, Any], ids: Sequence[str], unit: str = "node", **edges: Any) -> Consented:
    data = folder / "data"
    data.mkdir(exist_ok=True)
    plain = changed(graph_policy(data, release, unit, **edges), purpose=PURPOSE, consent=PLACES)
    if "epsilon" not in release:
        plain = changed(plain, consent__calendar=[TODAY, TOMORROW])
    return consented(plain, folder, ids)


def test_nodes_of_others_are_left_out_with_all_their_edges(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    nodes = "id,club\nann,a\nbob,b\ncat,a\ndan,neither\n"
    edges = "source,target\nann,bob\nbob,cat\ncat,dan\ndan,dan\ndan,nobody\nann,cat\n"
    (tmp_path / "data" / "nodes.csv").write_text(nodes, encoding="utf-8")
    (tmp_path / "data" / "edges.csv").write_text(edges, encoding="utf-8")
    made = gated(tmp_path, COUNT, ["ann", "cat", "bob"])  # of dan nothing is looked at: no club, a loop, a stranger
    assert graph_of(made.policy).ids.to_pylist() == ["ann", "bob", "cat"]
    assert len(graph_of(made.policy).ends) == 3
    made.decide(Decided.WITHDRAW, ["bob"])
    left = graph_of(made.policy)
    assert (left.ids.to_pylist(), left.ends.tolist()) == (["ann", "cat"], [[0, 1]])
    assert profile_graph(made.policy).nodes == 2


def test_a_neighbor_is_gated_to_the_same_graph_or_to_a_neighbor(tmp_path: Path) -> None:
    """On all graphs with three nodes and all sets of people who consent, a node less is that node less, or nothing."""
    (tmp_path / "data").mkdir()
    graph_files(tmp_path / "data", karate())
    made = gated(tmp_path, COUNT, [])
    planned = admit(made.policy)
    assert planned is not None
    names = ["n0", "n1", "n2"]
    for graph in all_graphs(3):
        pairs = [(names[a], names[b]) for a, b in graph.ends.tolist()]
        for some in subsets(names):
            subjects = frozenset(map(planned.key.pseudonym, some))
            admission = ConsentSnapshot(planned.gate, planned.key, subjects)
            whole = taking_part(made, names, pairs, admission)
            for leaver in names:
                others = [name for name in names if name != leaver]
                left = [pair for pair in pairs if leaver not in pair]
                less = taking_part(made, others, left, admission)
                assert less == (whole[0] - {leaver}, {pair for pair in whole[1] if leaver not in pair})
                assert leaver in some or less == whole


def subsets(names: list[str]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, size) for size in range(len(names) + 1))


def taking_part(
    made: Consented, names: list[str], pairs: list[tuple[str, str]], admission: ConsentSnapshot
) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the nodes and edges of a graph behind the gate."""
    nodes = pa.table({"id": names, "club": ["a"] * len(names)})
    ends = [pa.array([pair[side] for pair in pairs], pa.string()) for side in (0, 1)]
    rows = GraphRows(open_source(nodes), open_source(pa.table(ends, ["source", "target"])))
    graph = read_graph(made.policy, rows.admitting(admission, made.policy))
    kept: list[str] = graph.ids.to_pylist()
    return set(kept), {(kept[a], kept[b]) for a, b in graph.ends.tolist()}


def test_a_gated_graph_is_certified_and_verifies(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    graph_files(tmp_path / "data", karate())
    made = gated(tmp_path, COUNT, karate().ids.to_pylist()[:20])
    published = release_graph(made.policy, Destination(tmp_path / "out"))
    certificate = published.release.certificate
    gate = gate_of(certificate.steps)
    assert gate is not None
    assert gate.settled
    assert "nodes of people, with all their edges, whose consent" in gate.sentence
    assert OWN_NODE in [each.term for each in certificate.claims[0].preconditions]
    found = verify(published.folder, policy=made.policy)
    assert [each for each in found.findings if each.verdict is Verdict.FAILED] == []


def test_a_graph_without_an_epsilon_is_followed_only_while_nobody_moves(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    graph_files(tmp_path / "data", karate())
    ids = karate().ids.to_pylist()
    made = gated(tmp_path, SWITCHED, ids[:30])
    release_graph(made.policy, Destination(tmp_path / "first"))
    release_graph(made.policy, Destination(tmp_path / "second"))
    made.decide(Decided.WITHDRAW, ids[:1])
    with pytest.raises(Refused, match="people left or joined since release"):
        release_graph(made.policy, Destination(tmp_path / "third"))
    assert len(assess_graph(tmp_path / "first", made.policy).before) > 0
    bare = written(graph_policy(tmp_path / "data", SWITCHED, "node"), tmp_path / "data", "bare.yaml")
    with pytest.raises(Refused, match="the two together would show who refused"):
        release_graph(bare, Destination(tmp_path / "third"))


@pytest.mark.parametrize("release", [SWITCHED, {"method": "super-nodes", "k": 3, "columns": ["club"]}])
@pytest.mark.parametrize("kept", [True, False])
def test_a_node_that_was_erased_is_noticed(tmp_path: Path, release: dict[str, Any], kept: bool) -> None:
    (tmp_path / "data").mkdir()
    graph, less = karate(), next(without_node(karate()))
    graph_files(tmp_path / "data", graph)
    made = gated(tmp_path, release, graph.ids.to_pylist())
    first = release_graph(made.policy, Destination(tmp_path / "first"))
    if not kept:
        (first.internal / FILE).unlink()
        release_graph(made.policy, Destination(tmp_path / "again"))
    (erased,) = set(graph.ids.to_pylist()) - set(less.ids.to_pylist())
    graph_files(tmp_path / "data", less)
    for decided in (Decided.GIVE, Decided.WITHDRAW):
        made.decide(decided, [erased])
        with pytest.raises(Refused, match="nodes are gone or new"):
            release_graph(made.policy, Destination(tmp_path / "second"))
    counted = load_policy(written(changed(_plain(made), release=COUNT), tmp_path / "data", "counted.yaml"))
    release_graph(counted, Destination(tmp_path / "counted"))  # it has an epsilon


def _plain(made: Consented) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads((made.policy.folder / "policy.yaml").read_text(encoding="utf-8"))
    return changed(plain, consent__calendar=None)


def test_edges_are_no_people_and_a_gate_must_be_read(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    graph_files(tmp_path / "data", karate())
    edge = changed(graph_policy(tmp_path / "data", {"method": "degree-distribution", "epsilon": 1}), purpose=PURPOSE)
    with pytest.raises(InvalidParameter, match="would show who consented"):
        load_policy(changed(edge, consent=PLACES))
    made = gated(tmp_path, COUNT, [])
    with pytest.raises(Refused, match="consent registry was not read"):
        prepare_graph(made.policy, LOCAL, Background())
    beside = changed(graph_policy(tmp_path / "data", COUNT, "node"), purpose=PURPOSE, consent=PLACES)
    policy = load_policy(changed(beside, consent__key=str(tmp_path / "data" / "key")))
    with pytest.raises((Refused, InvalidParameter), match=r"in one folder|cannot be read"):
        graph_of(policy)
