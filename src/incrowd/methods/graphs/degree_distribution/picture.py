"""A degree distribution in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.drawing.markup import Description, figure, table
from incrowd.methods.graphs.degree_distribution.steps import NoisyDegrees
from incrowd.methods.graphs.pictures import degree_bars

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE = {"numbers": "Degrees listed"}


def description(statement: Statement) -> Description:
    """Return what was published, in words."""
    bound = statement.basis.need(NoisyDegrees).bound
    cut = (
        "" if bound is None else f" Degrees are cut at {bound}, which makes them too small where nodes have more edges."
    )
    full = f"How many nodes have each degree, with noise.{cut} No node and no edge is published."
    return Description("A distribution of degrees", full, "numbers that hang little on one edge or node")


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the bars."""
    degrees, counts = output.table["degree"].to_numpy(), output.table["count"].to_numpy()
    words = "How many nodes have each degree; every number carries noise."
    rows = [[int(degree), int(count)] for degree, count in zip(degrees[:200], counts[:200], strict=True)]
    return figure(degree_bars(degrees, counts, words, exact=False), words, table("Degrees", ["Degree", "Nodes"], rows))
