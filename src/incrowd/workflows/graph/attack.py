"""Attack a release of a graph: every adversary with a baseline and a control; internal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from incrowd.attacks.finding import CONFIDENCE, Finding, check_enough, corrected
from incrowd.attacks.graphs import GRAPH_ATTACKS, graph_attack_of
from incrowd.core.steps.around import gate_of
from incrowd.errors import InvalidParameter
from incrowd.workflows.graph.profile import opened
from incrowd.workflows.graph.published import HeldRelease
from incrowd.workflows.graph.reading import read_graph, withheld_edges
from incrowd.workflows.policy.internal import keep_result
from incrowd.workflows.policy.ledger import record_look
from incrowd.workflows.policy.policy import PolicyLike, load_policy


@dataclass(frozen=True)
class GraphLab:
    """The findings of attacks, with simultaneous confidence intervals, and why others were skipped."""

    findings: tuple[Finding, ...]
    skipped: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {"findings": [finding.to_json() for finding in self.findings], "skipped": dict(self.skipped)}


def attack_graph(release: Path, policy: PolicyLike, names: Sequence[str] = ()) -> GraphLab:
    """Run attacks on a release, all that apply if none is named; the attacker knows the graph with its ids."""
    read = load_policy(policy)
    held = HeldRelease.read(release, read)
    with opened(read, gate_of(held.certificate.steps)) as rows:
        graph, withheld = read_graph(read, rows), withheld_edges(read, rows)
    record_look(read, "attack")
    trial = replace(held.trial(graph), withheld=withheld)
    check_enough(len(trial.targets), None, CONFIDENCE)
    findings, skipped = [], {}
    for name in names or GRAPH_ATTACKS:
        try:
            findings.append(graph_attack_of(name)(trial))
        except InvalidParameter as error:
            if names:
                raise
            skipped[name] = str(error)
    lab = GraphLab(corrected(findings), skipped)
    keep_result(read, held.certificate.id, "attack", lab.to_json())
    return lab
