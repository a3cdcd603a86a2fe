"""A release that is tried again with the same key is paid once, where that is honest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import InvalidParameter, OutputUnavailable, Refused
from incrowd.workflows.graph.release import ORIGIN, release_graph
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release import deliver
from incrowd.workflows.release.deliver import Destination, PublishedRelease
from incrowd.workflows.release.keyed import alone_with, key_digest
from incrowd.workflows.release.tables import ReleaseTerms, release_to
from incrowd.workflows.verify.verify import verify
from tests.graphs import graph_files, graph_policy, karate

POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "people"},
    "columns": {"sex": {"categories": ["f", "m"]}},
    "release": {"method": "safe", "rate": "1/2", "epsilon": 1, "delta": "1e-4"},
    "budget": {"epsilon": 10, "delta": "1/10"},
}
ROWS = "sex\n" + "f\nm\n" * 300
_KILLED = """
import os, sys
from pathlib import Path
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.engines.writers import sinks
from incrowd.workflows.graph.release import release_graph
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import ReleaseTerms, release_to

point, rename, touch, renamed = sys.argv[1], Path.rename, Path.touch, []

def ending(name):
    original = getattr(Ledger, name)
    def called(*values, **named):
        if point == f"before {name}":
            os._exit(9)
        result = original(*values, **named)
        if point == f"after {name}":
            os._exit(9)
        return result
    setattr(Ledger, name, called)

def renaming(self, target):
    renamed.append(target)
    if point == "between the renames" and len(renamed) == 2:
        os._exit(9)
    result = rename(self, target)
    if point == "after the renames" and len(renamed) == 2:
        os._exit(9)
    return result

def touching(self, *values, **named):
    touch(self, *values, **named)
    if point == "between the marks" and self.name == sinks._WHOLE:
        os._exit(9)

ending("charge_together")
ending("conclude")
Path.rename, Path.touch = renaming, touching
"""
_TABLE = 'release_to("people.csv", "policy.yaml", Destination(Path("out"), "csv"), terms=ReleaseTerms(key="march"))'
_GRAPH = 'release_graph("policy.yaml", Destination(Path("out"), "csv"), key="march")'


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Policy:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(json.dumps(POLICY))
    Path("people.csv").write_text(ROWS)
    return load_policy(Path("policy.yaml"))


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Policy:
    monkeypatch.chdir(tmp_path)
    graph_files(tmp_path, karate())
    Path("policy.yaml").write_text(json.dumps(graph_policy(tmp_path, {"method": "degree-anonymity", "k": 2})))
    return load_policy(Path("policy.yaml"))


def tried(policy: Policy, key: str | None = "march", out: str = "out") -> PublishedRelease:
    return release_to("people.csv", policy, Destination(Path(out), "csv"), terms=ReleaseTerms(key=key))


def killed(point: str, call: str = _TABLE) -> None:
    process = subprocess.run([sys.executable, "-c", _KILLED + call, point], env=os.environ, check=False)
    assert process.returncode == 9
    assert Path("out").exists() == (point == "after the renames")


def outcomes(policy: Policy) -> list[bool]:
    """Return, for each charge, whether something was released."""
    ledger = find_book(policy)
    entries = [] if ledger is None else [entry for entry in ledger.entries() if entry.kind == "charge"]
    assert ledger is None or ledger.check().ok
    return [ledger is not None and ledger.conclusions(entry.body["release"])[-1:] != (None,) for entry in entries]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_what_is_finished_is_returned_with_the_same_bytes_and_is_paid_once(policy: Policy) -> None:
    first = tried(policy)
    before = bytes_of(first.folder)
    Path("people.csv").write_text(ROWS + "f\n")  # what the source holds now does not matter
    again = tried(policy)
    assert again.release.certificate == first.release.certificate
    assert len(again.release.result) == len(first.release.result)
    assert bytes_of(first.folder) == before
    assert outcomes(policy) == [True]
    assert "nothing was charged" in again.notes[0]


def test_another_key_and_another_policy_are_other_releases(policy: Policy) -> None:
    tried(policy)
    tried(policy, "april", "april")
    Path("other.yaml").write_text(json.dumps(POLICY | {"release": POLICY["release"] | {"epsilon": "1/2"}}))
    tried(load_policy(Path("other.yaml")), "march", "other")
    assert outcomes(policy) == [True, True, True]


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ("before charge_together", [True]),
        ("after charge_together", [False, True]),
        ("between the marks", [False, True]),
        ("before conclude", [False, True]),
        ("after conclude", [True]),
        ("between the renames", [True]),
        ("after the renames", [True]),
    ],
)
def test_a_run_that_was_killed_is_paid_again_only_if_rows_may_have_been_read_for_nothing(
    policy: Policy, point: str, expected: list[bool]
) -> None:
    killed(point)
    made = tried(policy)
    assert outcomes(policy) == expected
    assert verify(made.folder).passed
    assert tried(policy).release.certificate == made.release.certificate
    assert outcomes(policy) == expected
    assert not list(Path.cwd().rglob(".*.incrowd-*"))


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ("before charge_together", [True]),
        ("before conclude", [False, True]),
        ("after conclude", [True]),
        ("after the renames", [True]),
    ],
)
def test_a_graph_has_a_key_too(graph: Policy, point: str, expected: list[bool]) -> None:
    killed(point, _GRAPH)
    made = release_graph(graph, Destination("out", "csv"), key="march")
    assert outcomes(graph) == expected
    assert verify(made.folder).passed
    assert (made.internal / ORIGIN).is_file()
    before = bytes_of(made.folder)
    Path("edges.csv").unlink()  # what the sources hold now does not matter
    again = release_graph(graph, Destination("out", "csv"), key="march")
    assert (again.release.certificate, again.internal) == (made.release.certificate, made.internal)
    assert again.release.result.graph.ends.tolist() == made.release.result.graph.ends.tolist()
    assert (bytes_of(made.folder), outcomes(graph)) == (before, expected)
    assert "nothing was charged" in again.notes[0]
    assert not list(Path.cwd().rglob(".*.incrowd-*"))


def test_another_graph_with_a_key_is_another_release_and_a_moved_one_is_not_made_again(graph: Policy) -> None:
    release_graph(graph, Destination("out", "csv"), key="march")
    with pytest.raises(Refused, match="is not in elsewhere"):
        release_graph(graph, Destination("elsewhere", "csv"), key="march")
    with alone_with(graph, None, key_digest(graph, "april")), pytest.raises(Refused, match="running now"):
        release_graph(graph, Destination("april", "csv"), key="april")
    assert outcomes(graph) == [True]
    release_graph(graph, Destination("april", "csv"), key="april")
    assert outcomes(graph) == [True, True]


def test_an_error_after_the_charge_is_a_run_that_came_to_nothing(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **_named: Any) -> Any:
        raise OutputUnavailable("the disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(deliver, "write_files", failing)
        with pytest.raises(OutputUnavailable, match="not refunded"):
            tried(policy)
    tried(policy)
    assert outcomes(policy) == [False, True]


def test_a_key_in_use_is_refused_and_a_second_charge_with_it_too(policy: Policy) -> None:
    digest = key_digest(policy, "march")
    with alone_with(policy, None, digest), pytest.raises(Refused, match="running now"):
        tried(policy)
    assert outcomes(policy) == []
    made = tried(policy)
    ledger = Ledger.open(policy.ledger_address)
    with pytest.raises(Refused, match="charged with this key already"):
        ledger.charge_together({"people": policy.plan.guarantee}, "another", key=digest)
    assert made.release.certificate.id == ledger.charged_with(digest)


def test_what_was_moved_or_changed_is_not_made_again(policy: Policy) -> None:
    made = tried(policy)
    with pytest.raises(Refused, match="is not in elsewhere"):
        tried(policy, out="elsewhere")
    for change in (lambda file: file.write_text("sex\nf\n"), Path.unlink):
        change(made.folder / "data.csv")
        with pytest.raises(Refused, match="no longer those"):
            tried(policy)
    assert outcomes(policy) == [True]


def test_a_table_of_a_database_has_no_key(policy: Policy) -> None:
    destination = Destination(Path("out"), "csv", table="postgresql://me@host/db::t")
    with pytest.raises(InvalidParameter, match="into a folder alone"):
        release_to("people.csv", policy, destination, terms=ReleaseTerms(key="march"))
    assert outcomes(policy) == []


@pytest.mark.parametrize("key", ["", "  ", "x" * 201])
def test_a_key_is_a_short_text(policy: Policy, key: str) -> None:
    with pytest.raises(InvalidParameter, match="a key is a text"):
        tried(policy, key)
