"""A graph with random changes in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.drawing.markup import Description
from incrowd.methods.graphs.add_delete.steps import AddDelete
from incrowd.methods.graphs.pictures import graph_figure

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE = {"nodes": "Nodes", "edges": "Edges", "nodes of the rarest degree": "Nodes of the rarest degree"}


def description(statement: Statement) -> Description:
    """Return what was published, in words."""
    share = statement.basis.need(AddDelete).share
    full = f"A graph of whose edges {share} were left out at random, and as many others put in; the rest is true."
    return Description("A graph with random changes", full, "nodes with nearly the degree they look for")


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the graph."""
    return graph_figure(output.graph, "The published graph", exact=True)
