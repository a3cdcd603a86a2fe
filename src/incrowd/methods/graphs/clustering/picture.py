"""A clustering coefficient in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.drawing.markup import Description, table
from incrowd.methods.graphs.outputs import CLUSTERING, TRIANGLES, WEDGES

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE = {"numbers": "Rows published"}


def description(statement: Statement) -> Description:  # noqa: ARG001 - the shape of every description
    """Return what was published, in words."""
    full = (
        "How many triangles and how many pairs of edges with a common end there are, with noise, and how often two "
        "neighbors of a node are connected by these numbers. No node and no edge is published."
    )
    return Description("A clustering coefficient", full, "noisy numbers")


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the numbers."""
    (row,) = output.table.to_pylist()
    rows = [[name, f"{row[name]:,}"] for name in (TRIANGLES, WEDGES, CLUSTERING)]
    return table("The published numbers, with noise", ["What", "Number"], rows)
