"""A count of a graph in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.drawing.markup import Description, table

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE = {"numbers": "Numbers published"}


def description(statement: Statement) -> Description:  # noqa: ARG001 - the shape of every description
    """Return what was published, in words."""
    return Description(
        "One number", "One number of the graph, with noise. No node and no edge is published.", "a number"
    )


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the number."""
    rows = [[row["what"], f"{row['number']:,}"] for row in output.table.to_pylist()]
    return table("The published number, with noise", ["What", "Number"], rows)
