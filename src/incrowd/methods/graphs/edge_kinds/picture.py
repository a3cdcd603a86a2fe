"""Kinds of edges in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.drawing.charts import Bar, bars
from incrowd.drawing.markup import Description, figure, table
from incrowd.methods.graphs.edge_kinds.steps import EDGES, NoisyKinds

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE = {"numbers": "Numbers published"}


def description(statement: Statement) -> Description:
    """Return what was published, in words."""
    step = statement.basis.need(NoisyKinds)
    what = "How many edges there are" if step.count == EDGES else "How many nodes have each degree"
    of = "of each kind" if step.kinds else "of all kinds together"
    return Description("Kinds of edges", f"{what} {of}, with noise. No node and no edge is published.", "noisy numbers")


def picture(statement: Statement, output: Any) -> Markup | None:
    """Return the numbers of each kind."""
    rows = output.table.to_pylist()[:200]
    if statement.basis.need(NoisyKinds).count == EDGES:
        words = "How many edges there are; every number carries noise."
        drawn = bars(words, [Bar(row["kind"], row["number"], False) for row in rows])
        return figure(drawn, words, table("Edges", ["Kind", "Edges"], [[row["kind"], row["number"]] for row in rows]))
    cells = [[row["kind"], row["direction"], row["degree"], row["count"]] for row in rows]
    return table("How many nodes have each degree, with noise", ["Kind", "Edges counted", "Degree", "Nodes"], cells)
