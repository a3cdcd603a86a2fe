"""Synthetic rows in a report: how good they are, in words and numbers, and which tables were measured."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from incrowd.core.words import counted
from incrowd.drawing.charts import Bar, bars
from incrowd.drawing.markup import EMPTY, Description, figure, joined, table

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

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
    return Description("Synthetic rows", f"{made}{good}{_range(evidence)}", "nothing: no row is anyone's")


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the tables that were measured after the single columns, and how precisely; and the errors of tables."""
    found = [each for each in (_measured(statement.evidence), _errors(statement.evidence)) if each is not None]
    return joined(found) if found else None


def _range(evidence: Mapping[str, Any]) -> str:
    """Return in words the smallest and the largest error of a table, where each was measured."""
    told = sorted(evidence.get("errors of tables", []), key=lambda each: float(each["error"]))
    if not told:
        return ""
    least, most = (f"{float(each['error']):.1%} ({_name(each)})" for each in (told[0], told[-1]))
    margin = float(evidence["margin of each table"])
    return (
        f" Of {counted(len(told), 'table')}, each measured privately, it is from {least} to {most}; each is right "
        f"within {margin:.1%} in 19 of 20 cases."
    )


def _measured(evidence: Mapping[str, Any]) -> Markup | None:
    chosen = [each for each in evidence["tables"] if len(each["columns"]) > 1][:_SHOWN]
    if not chosen:
        return None
    told = "Tables that were measured, with the standard deviation of their noise in rows"
    shown = [Bar(_name(each), round(Fraction(each["scale"])), exact=False) for each in chosen]
    numbers = table(told, ["columns", "rows"], [[each.name, f"{each.count:,}"] for each in shown])
    return figure(bars(told, shown), f"{told}: the first {len(shown)}, beside every column by itself.", numbers)


def _errors(evidence: Mapping[str, Any]) -> Markup | None:
    """Return the error of each table, the largest first."""
    told = sorted(evidence.get("errors of tables", []), key=lambda each: -float(each["error"]))
    if not told:
        return None
    title = f"Share of the rows that would have to move, ± {float(evidence['margin of each table']):.2%} each"
    return table(title, ["columns", "error"], [[_name(each), f"{float(each['error']):.2%}"] for each in told])


def _name(each: Mapping[str, Any]) -> str:
    return " × ".join(each["columns"])
