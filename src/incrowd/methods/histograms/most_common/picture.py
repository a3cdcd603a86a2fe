"""The most common bins in a report: a list, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.core.words import counted
from incrowd.drawing.markup import Description, table

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement
    from incrowd.methods.outcomes.histogram import Selection

EVIDENCE = {"ranks": "Bins chosen"}


def description(statement: Statement) -> Description:
    """Return how many bins are listed."""
    bins = counted(int(statement.evidence["ranks"]), "most common bin")
    return Description(f"The {bins}", "No row is published.")


def picture(statement: Statement, output: Selection) -> Markup:  # noqa: ARG001 - the shape of every picture
    """Return the winners as a table."""
    rows = [["missing" if cell is None else cell for cell in row.values()] for row in output.table.to_pylist()]
    return table(f"The {counted(len(rows), 'most common bin')}", output.schema.names, rows)
