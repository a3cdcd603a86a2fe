"""A graph drawn from a block model in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.drawing.markup import Description
from incrowd.methods.graphs.block_model.steps import DrawFromBlocks
from incrowd.methods.graphs.pictures import graph_figure

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE = {"nodes": "Nodes", "edges": "Edges drawn"}


def description(statement: Statement) -> Description:
    """Return what was published, in words."""
    step = statement.basis.need(DrawFromBlocks)
    full = (
        f"Nodes with their “{step.column}”, and edges that were drawn from noisy counts inside and between "
        f"{step.blocks} blocks. No edge of the data is published; one that is the same is so by chance."
    )
    return Description("A synthetic graph", full, "edges that were drawn")


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the graph."""
    return graph_figure(output.graph, "The published graph, drawn from noisy counts", exact=False)
