"""Slices: which columns stay together in which table, and how large the classes of each are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from incrowd.core.words import counted
from incrowd.methods.outcomes.sliced import Sliced
from incrowd.workflows.report.charts import class_sizes
from incrowd.workflows.report.markup import Html, figure, joined, table, tag

_LINE, _WIDE, _GAP = 24, 100.0, 4.0  # height of a block; percent of the width
_NAMED, _LONG = 8, 12


def slice_words(plain: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return title and text of a step that makes several tables; None for any other step.

    >>> slice_words({"step": "publish tables", "tables": 2, "sample": "joint", "by": "released values"})[0]
    'Publish, not linked'
    """
    match plain.get("step"):
        case "choose groups":
            text = (
                f"Columns that go together are put into groups of at most {plain.get('size')}. A private selection "
                f"with an ε of {plain.get('epsilon')} chooses the groups; it reads all rows."
            )
            return "Choose groups privately", text
        case "publish tables":
            drawn = "each from a sample of its own" if plain.get("sample") == "fresh" else "all from the one sample"
            text = f"{counted(int(plain.get('tables', 0)), 'table')}, {drawn}, each sorted by {plain.get('by')}."
            return "Publish, not linked", f"{text} Which row of one belongs to which of another is not told."
    return None


def slices(sliced: Sliced) -> Html:
    """Return the tables as blocks beside each other, and for each the sizes of its classes."""
    parts = [_blocks(sliced)]
    for number, each in enumerate(sliced.tables, 1):
        parts.append(tag("h3", f"Table {number}: {', '.join(each.schema.names)}"))
        parts.append(class_sizes(each.counts, f"rows of table {number}") or tag("p", "Every row was suppressed."))
    return joined(parts)


def _blocks(sliced: Sliced) -> Html:
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
