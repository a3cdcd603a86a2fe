"""Masked rows in a report: what was changed, in words, and how many rows look alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from incrowd.core.words import counted
from incrowd.drawing.charts import class_sizes
from incrowd.drawing.markup import EMPTY, Description
from incrowd.methods.perturbation.steps import maskings

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE: Mapping[str, str] = {
    "rows": "Rows published",
    "classes": "Different combinations",
    "smallest class": "Rows of the rarest one",
}


def description(statement: Statement) -> Description:
    """Return in words what was published, from what is stated alone."""
    rows = int(statement.evidence["rows"])
    if rows == 0:
        return EMPTY
    names = dict.fromkeys(name for step in maskings(statement.steps) for name in step.changes)
    changed = f"Values of {counted(len(names), 'column')} of {len(statement.released)} were changed."
    size = f" The published table has {counted(rows, 'row')}."
    return Description("Masked values", f"{changed} How well that hides people is measured, not guaranteed.{size}")


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return how many rows look like how many others, in the quasi-identifiers."""
    return class_sizes(output.sizes, over="in all quasi-identifiers") if len(output) else None
