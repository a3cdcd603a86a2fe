"""A graph drawn from noisy degrees in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.drawing.markup import Description
from incrowd.methods.graphs.pictures import graph_figure

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE = {"nodes": "Nodes", "edges": "Edges drawn"}


def description(statement: Statement) -> Description:  # noqa: ARG001 - the shape of every description
    """Return what was published, in words."""
    full = (
        "Numbered nodes with noisy degrees, joined by coins. No edge of the data is published, and no node stands for "
        "a person; an edge that is the same is so by chance."
    )
    return Description("A synthetic graph", full, "nodes and edges that were drawn")


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the graph."""
    return graph_figure(output.graph, "The published graph, drawn from noisy degrees", exact=False)
