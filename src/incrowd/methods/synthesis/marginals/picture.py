"""Synthetic rows in a report: how good they are, in words and numbers, and which tables were measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from incrowd.core.words import counted
from incrowd.drawing.charts import Bar, bars
from incrowd.drawing.markup import EMPTY, Description, figure, table

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.verify.statement import Statement

EVIDENCE: Mapping[str, str] = {
    "rows": "Rows drawn",
    "rows estimated": "Rows of the data, as estimated with noise",
    "rows declared": "Rows of the data, as declared",
}
_SHOWN = 12


def description(statement: Statement) -> Description:
    """Return in words what was published, from what is stated alone."""
    evidence = statement.evidence
    rows = int(evidence["rows"])
    if rows == 0:
        return EMPTY
    error, margin = float(evidence["mean error of pairs"]), float(evidence["margin of the error"])
    good = (
        f" Over all pairs of columns, {error:.1%} of the rows would have to move to make their tables those of the "
        f"data, on average; that was measured privately, and is right within {margin:.1%} in 19 of 20 cases."
    )
    made = f"{counted(rows, 'row')} drawn from a model; none is a row of the data."
    return Description("Synthetic rows", f"{made}{good}", "nothing: no row is anyone's")


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the tables that were measured after the single columns, and how precisely."""
    chosen = [each for each in statement.evidence["tables"] if len(each["columns"]) > 1][:_SHOWN]
    if not chosen:
        return None
    from fractions import Fraction

    told = "Tables that were measured, with the standard deviation of their noise in rows"
    shown = [Bar(" × ".join(each["columns"]), round(Fraction(each["scale"])), exact=False) for each in chosen]
    numbers = table(told, ["columns", "rows"], [[each.name, f"{each.count:,}"] for each in shown])
    return figure(bars(told, shown), f"{told}: the first {len(shown)}, beside every column by itself.", numbers)
