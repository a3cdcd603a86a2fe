"""Rows with sets of items in a report: how few items tell nobody apart, and how many rows are like no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.core.words import counted
from incrowd.drawing.charts import class_sizes
from incrowd.drawing.markup import EMPTY, Description
from incrowd.methods.anonymity.itemsets.steps import CutItems

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE = {
    "rows": "Rows published",
    "items shown": "Different items shown",
    "largest set": "Items of the largest set",
    "smallest support": "Rows of the rarest combination of few items",
    "unique rows": "Rows that are like no other",
}


def description(statement: Statement) -> Description:
    """Return which combinations of items are not rare, and how many rows are alone."""
    rows, cut = int(statement.evidence["rows"]), statement.basis.need(CutItems)
    if rows == 0:
        return EMPTY
    full = (
        f"The published table has {counted(rows, 'row')} with a set of items each. Every combination of up to {cut.m} "
        f"items that occurs, occurs in {cut.k} rows or more. Rows like no other: "
        f"{int(statement.evidence['unique rows']):,}."
    )
    return Description("Rows with sets of items", full)


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return how many rows look like how many others, in all columns."""
    return class_sizes(output.rows.counts)
