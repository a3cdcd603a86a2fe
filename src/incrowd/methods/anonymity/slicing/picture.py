"""Slices in a report: which columns stay together in which table, and how large the classes of each are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from incrowd.drawing.charts import class_sizes
from incrowd.drawing.markup import figure, joined, table, tag
from incrowd.methods.anonymity import classes
from incrowd.methods.anonymity.classes import EVIDENCE

if TYPE_CHECKING:
    from incrowd.core.statement import Statement
    from incrowd.drawing.markup import Description
    from incrowd.methods.anonymity.slicing.output import Sliced

__all__ = ["EVIDENCE", "description", "picture"]

_LINE, _WIDE, _GAP = 24, 100.0, 4.0  # height of a block; percent of the width
_NAMED, _LONG = 8, 12


def description(statement: Statement) -> Description:
    """Return how large the crowds are in all tables."""
    return classes.description(statement, "tables have together")


def picture(statement: Statement, output: Sliced) -> Markup:  # noqa: ARG001 - the shape of every picture
    """Return the tables as blocks beside each other, and for each the sizes of its classes."""
    parts = [_blocks(output)]
    for number, each in enumerate(output.tables, 1):
        parts.append(tag("h3", f"Table {number}: {', '.join(each.schema.names)}"))
        drawn = class_sizes(each.counts.counts, f"rows of table {number}")
        parts.append(drawn or tag("p", "Every row was suppressed."))
    return joined(parts)


def _blocks(sliced: Sliced) -> Markup:
    """Return a block for each column, those of one table side by side; between the tables nothing is linked."""
    columns, drawn = len(sliced.names), []
    each_wide, left = (_WIDE + _GAP - _GAP * len(sliced.tables)) / columns, 0.0
    for each in sliced.tables:
        for name in each.schema.names:
            drawn.append(tag("rect", x=f"{left:.2f}%", y=0, width=f"{each_wide:.2f}%", height=_LINE, class_="bar"))
            if columns <= _NAMED:
                drawn.append(tag("text", name[:_LONG], x=f"{left:.2f}%", y=_LINE + 16, class_="faint"))
            left += each_wide
        left += _GAP
    title = f"{len(sliced.tables)} tables, a block for each column; no row goes across"
    rows = [
        [number, ", ".join(each.schema.names), f"{len(each):,}", f"{len(each.counts):,}"]
        for number, each in enumerate(sliced.tables, 1)
    ]
    drawing = tag("svg", *drawn, height=2 * _LINE, class_="chart", role="img", aria_label=title)
    numbers = table("Tables", ["Table", "Columns that stay together", "Rows", "Different combinations"], rows)
    return figure(drawing, "Which columns stay together. Between two tables no row is linked to another.", numbers)
