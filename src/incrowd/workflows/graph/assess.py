"""Assess a release of a graph: unique nodes and preserved structure, before and after; internal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from incrowd.core.graph import Graph, simple
from incrowd.core.steps.around import gate_of
from incrowd.measures.graphs import GraphShape, communities, modularity, uniqueness
from incrowd.measures.score import Score
from incrowd.methods.graphs.shared.outputs import GraphNumbers
from incrowd.methods.graphs.shared.picture import change_figures, graph_figure
from incrowd.workflows.graph.profile import graph_of
from incrowd.workflows.graph.published import HeldRelease
from incrowd.workflows.policy.internal import check_apart, keep_result
from incrowd.workflows.policy.ledger import record_look
from incrowd.workflows.policy.policy import PolicyLike, load_policy
from incrowd.workflows.report.page import internal_report


@dataclass(frozen=True)
class GraphAssessment:
    """Scores of risk and of utility, before and after."""

    before: tuple[Score, ...]
    after: tuple[Score, ...]
    preservation: tuple[Score, ...]
    pictures: Markup = field(default_factory=Markup, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        parts = {"before": self.before, "after": self.after, "kept": self.preservation}
        return {name: [score.to_json() for score in scores] for name, scores in parts.items()}


def assess_graph(release: Path, policy: PolicyLike, report: Path | None = None) -> GraphAssessment:
    """Compare a release with the graph it was made from; `report` writes a page with pictures into another folder."""
    read = load_policy(policy)
    if report is not None:
        check_apart(report, [release])
    held = HeldRelease.read(release, read)
    graph = graph_of(read, gate_of(held.certificate.steps))
    record_look(read, "assess")
    published = _published(held, graph)
    after = () if published is None else uniqueness(published)
    assessment = GraphAssessment(
        uniqueness(graph), after, _preservation(held, graph, published), _pictures(graph, held, published)
    )
    keep_result(read, held.certificate.id, "assess", assessment.to_json())
    if report is not None:
        report.write_text(internal_report(held.certificate, held.output, assessment.pictures), encoding="utf-8")
    return assessment


def _published(held: HeldRelease, graph: Graph) -> Graph | None:
    """Return the published graph, or one drawn from published degrees; None where only other numbers were published."""
    if isinstance(held.output, GraphNumbers) and not held.drawable:
        return None
    return held.trial(graph).published


def _preservation(held: HeldRelease, graph: Graph, published: Graph | None) -> tuple[Score, ...]:
    if published is None:
        return tuple(_numbers(held.output.table.to_pylist()))
    groups = communities(graph)
    moved = groups[np.argsort(held.trial(graph).truth, kind="stable")]
    own = Score("modularity before", modularity(graph, groups), "edges inside communities beyond chance")
    return (
        *GraphShape.of(graph).beside(GraphShape.of(published)),
        own,
        Score("modularity after", modularity(published, moved), "the same communities in what was published"),
    )


def _numbers(rows: list[dict[str, Any]]) -> Iterator[Score]:
    """Yield every published number under its label."""
    for row in rows:
        words = " ".join(value for value in row.values() if isinstance(value, str))
        for name, value in row.items():
            if not isinstance(value, str):
                label = words if name == "number" else f"{words} {name}".strip()
                yield Score(label, float(value), "the published number, with noise")


def _pictures(graph: Graph, held: HeldRelease, published: Graph | None) -> Markup:
    """Draw the graph before and after; where the origin of nodes is known, each node has the same place in both."""
    if published is None:
        return graph_figure(graph, "Before", exact=True)
    back = np.argsort(held.trial(graph).truth, kind="stable")
    return change_figures(graph, graph.with_ends(simple(back[published.ends], graph.size)))
