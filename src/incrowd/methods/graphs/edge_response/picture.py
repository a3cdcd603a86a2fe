"""Answers of pairs in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.drawing.markup import Description
from incrowd.methods.graphs.edge_response.steps import AnswerPairs
from incrowd.methods.graphs.pictures import graph_figure

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE = {"nodes": "Nodes", "edges": "Pairs that say yes"}


def description(statement: Statement) -> Description:
    """Return what was published, in words, with the estimates that follow from it."""
    flip, told = statement.basis.need(AnswerPairs).flip, statement.evidence
    full = (
        f"One answer of every pair of nodes, the contrary of the truth with the chance {float(flip):.4f}. From these "
        f"about {told.get('edges estimated')} edges and {told.get('triangles estimated')} triangles are estimated."
    )
    return Description("Answers by coins", full, "answers, each of which may be false")


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the pairs that say yes."""
    return graph_figure(output.graph, "Pairs that say yes, of which many are not connected", exact=False)
