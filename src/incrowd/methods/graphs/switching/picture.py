"""A switched graph in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.drawing.markup import Description
from incrowd.methods.graphs.pictures import graph_figure
from incrowd.methods.graphs.switching.steps import SwitchEdges

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE = {"nodes": "Nodes", "edges": "Edges", "nodes of the rarest degree": "Nodes of the rarest degree"}


def description(statement: Statement) -> Description:
    """Return what was published, in words."""
    share = statement.basis.need(SwitchEdges).share
    full = (
        f"A graph with all degrees as they were, of whose edges {share} exchanged an end with another; the rest is "
        "true."
    )
    return Description("A graph with switched edges", full, "the nodes with the degree they look for")


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the graph."""
    return graph_figure(output.graph, "The published graph", exact=True)
