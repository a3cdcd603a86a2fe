"""A k-degree anonymous graph in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.drawing.markup import Description
from incrowd.methods.graphs.degree_anonymity.steps import LevelDegrees
from incrowd.methods.graphs.pictures import graph_figure

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE = {"nodes": "Nodes", "edges": "Edges", "nodes of the rarest degree": "Nodes of the rarest degree"}


def description(statement: Statement) -> Description:
    """Return what was published, in words."""
    k = statement.basis.need(LevelDegrees).k
    full = (
        f"A graph in which every degree is shared by {k} nodes or more. Edges were added, moved or removed until it "
        "was so; all others are true."
    )
    return Description("A graph without rare degrees", full, f"{k} nodes or more with the degree they look for")


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the graph."""
    return graph_figure(output.graph, "The published graph", exact=True)
