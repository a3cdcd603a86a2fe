"""Nothing is imported for the first time between the charge of a graph and its publication."""

from __future__ import annotations

import json
from pathlib import Path

from tests.graphs import EXAMPLES, example_graph, graph_files, graph_policy, random_graph
from tests.workflows.release.test_late_imports import answers

NAMES = ("degrees and labels", "degrees", "groups", "clustering", "triangles", "edge distribution")
"""Between them they use every library that methods of graphs load where they use it, and those that load fewer."""


def test_no_release_of_a_graph_imports_anything_after_its_charge(tmp_path: Path) -> None:
    jobs = []
    for name in NAMES:
        folder = tmp_path / name
        folder.mkdir()
        graph_files(folder, random_graph(60, 150, 1) if name == "degrees" else example_graph(name))
        unit, release = EXAMPLES[name]
        (folder / "policy.yaml").write_text(json.dumps(graph_policy(folder, release, unit)), encoding="utf-8")
        jobs.append((str(folder), ["graph", "release", "--policy", "policy.yaml", "--out", "out"]))
    found = answers(jobs)
    assert all(each["charged"] for each in found)
    assert [each["late"] for each in found] == [[]] * len(NAMES)
