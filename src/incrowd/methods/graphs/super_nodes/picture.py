"""A graph of super-nodes in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.core.graph import Graph
from incrowd.drawing.markup import Description
from incrowd.methods.graphs.pictures import graph_figure
from incrowd.methods.graphs.super_nodes.steps import GroupNodes

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE = {
    "super-nodes": "Super-nodes",
    "smallest super-node": "Nodes of the smallest",
    "largest super-node": "Nodes of the largest",
}


def description(statement: Statement) -> Description:
    """Return what was published, in words."""
    k = statement.basis.need(GroupNodes).k
    full = (
        f"Super-nodes of {k} nodes or more, with the exact numbers of edges inside and between them. No node is "
        "published."
    )
    return Description("Super-nodes", full, f"a super-node of {k} or more")


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the super-nodes, joined where there are edges between them."""
    return graph_figure(Graph.of(len(output), output.ends), "Super-nodes, joined where edges are", exact=True)
