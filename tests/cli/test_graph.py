"""`incrowd graph`: the verbs of graphs, from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from incrowd.cli.main import main
from incrowd.workflows.graph.release import release_graph
from incrowd.workflows.release.deliver import Destination
from tests.cli.running import Runner
from tests.graphs import graph_files, graph_policy, karate
from tests.policies import written


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    graph_files(tmp_path, karate())
    release = {"method": "degree-anonymity", "k": 2}
    (tmp_path / "policy.yaml").write_text(json.dumps(graph_policy(tmp_path, release)), encoding="utf-8")
    return "policy.yaml"


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_a_graph_walks_through_all_verbs(policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(capsys, "graph", "profile", "--policy", policy, "--json"))["nodes"] == 34
    assert "unique" in printed(capsys, "graph", "profile", "--policy", policy)
    assert f"incrowd graph release --policy {policy}" in printed(capsys, "plan", "--policy", policy)
    assert "k-degree anonymity" in printed(capsys, "graph", "release", "--policy", policy, "--out", "out")
    assert "NOT" not in printed(capsys, "verify", "out", "--policy", policy)
    words = ("graph", "assess", "out", "--policy", policy)
    kept = json.loads(printed(capsys, *words, "--json", "--report", "page.html"))["kept"]
    assert {"degrees apart", "clustering after", "path after", "modularity after"} <= {each["name"] for each in kept}
    assert (tmp_path / "page.html").read_text(encoding="utf-8").count("<svg") > 2
    assert "clustering before" in printed(capsys, *words)
    lab = json.loads(printed(capsys, "graph", "attack", "out", "--policy", policy, "--json"))
    assert [each["attack"] for each in lab["findings"]][:2] == ["degree", "neighborhood"]
    assert "control" in printed(capsys, "graph", "attack", "out", "--policy", policy, "--attack", "degree")
    assert main(["graph", "attack", "out", "--policy", policy, "--attack", "guessing"]) == 2
    assert main(["graph", "assess", "out", "--policy", policy, "--report", "out/page.html"]) == 2


def test_a_graph_that_is_released_again_with_its_key_is_paid_once(policy: str, run: Runner) -> None:
    line = f"graph release --policy {policy} --out out --idempotency-key march"
    first, again = run(f"{line} --json").json, run(f"{line} --json").json
    assert first["notes"] == []
    assert again["notes"] == ["this release was made before with this key: nothing was charged or read now."]
    assert again["certificate"] == first["certificate"]
    assert "nothing was charged" in run(line).out
    assert run(f"graph release --policy {policy} --out out --idempotency-key april").code == 2


_KILLED = """
import os
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.cli.main import main

conclude = Ledger.conclude

def concluding(self, charge, certificate):
    conclude(self, charge, certificate)
    os._exit(9)

Ledger.conclude = concluding
main(["graph", "release", "--policy", "policy.yaml", "--out", "out"])
"""


def test_a_graph_whose_release_was_killed_is_delivered_by_its_own_command_at_no_cost(
    policy: str, tmp_path: Path, run: Runner
) -> None:
    assert subprocess.run([sys.executable, "-c", _KILLED], capture_output=True, check=False).returncode == 9
    line = f"graph release --policy {policy} --out out"
    refused = run(line)
    assert refused.code == 1
    assert "--recover deliver" in refused.err
    assert run(f"{line} --recover perhaps").code == 2
    assert "at no cost" in run(f"{line} --recover deliver").out
    kinds = [
        entry["kind"] for entry in run("ledger show --entries --json --ledger sqlite:///ledger.sqlite").json["entries"]
    ]
    assert (kinds.count("charge"), kinds.count("conclude")) == (1, 1)
    assert run(f"verify out --policy {policy}").code == 0
    assert run(f"{line} --recover discard").code == 2


def test_a_graph_that_is_refused_ends_with_2_and_names_nobody(
    policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n1,mallory\n", encoding="utf-8")
    assert main(["graph", "release", "--policy", policy, "--out", "out"]) == 2
    told = "".join(capsys.readouterr())
    assert "unknown: drop" in told
    assert "mallory" not in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("unit", "question", "secret", "hidden"),
    [
        (
            "edge",
            "Can anyone tell that two people are connected?",
            "a guess whether two people are connected",
            "Not protected: nodes, their number and their columns",
        ),
        (
            "edge of one kind",
            "Can anyone tell that an edge is there?",
            "a guess whether an edge is there",
            "Other edges of the same two nodes",
        ),
    ],
    ids=["pair", "edge"],
)
def test_the_report_speaks_of_edges(unit: str, question: str, secret: str, hidden: str, tmp_path: Path) -> None:
    graph_files(tmp_path, karate())
    release = {"method": "degree-distribution", "epsilon": 1}
    release_graph(graph_policy(tmp_path, release, unit), Destination(tmp_path / "out"))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert all(words in page for words in (question, secret, hidden))
    assert "you are in the data" not in page


def test_dropped_edges_are_counted_and_the_nearest_ids_shown_on_a_terminal_only(
    tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nodes.csv").write_text("id,club\nB000010,a\nB000020,b\nZoë,a\n", encoding="utf-8")
    edges = "source,target\nB000010,Zoë\nb10,Zoë\nB000020,Zoe\nB000020,B000010\n"
    (tmp_path / "edges.csv").write_text(edges, encoding="utf-8")
    plain = graph_policy(tmp_path, {"method": "subgraph-count", "count": "edges", "epsilon": 1}, unknown="drop")
    policy = written(plain, tmp_path)
    piped = run(f"graph profile --policy {policy}")
    assert "edges to unlisted nodes" in piped.out
    assert "b10" not in piped.out + piped.err
    assert run(f"graph profile --policy {policy} --json").json["edges to unknown nodes"] == 2
    monkeypatch.setattr("incrowd.cli.graph._on_terminal", lambda: True)
    shown = run(f"graph profile --policy {policy}").out
    assert "b10" in shown
    assert "B000010" in shown
