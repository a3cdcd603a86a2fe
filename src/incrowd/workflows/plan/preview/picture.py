"""A private look in words: how many choices were weighed, and the table of what each is expected to keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from incrowd.core.words import counted
from incrowd.drawing.markup import Description, table
from incrowd.workflows.plan.preview.steps import MeasureKept

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement
    from incrowd.workflows.plan.preview.output import KeptChoices, KeptEstimate

EVIDENCE: Mapping[str, str] = {}


def description(statement: Statement) -> Description:
    """Return that numbers of rows carry noise."""
    choices = counted(len(statement.basis.need(MeasureKept).choices), "choice")
    full = f"How many rows {choices} of levels, k and rate would keep, with noise; nobody's row."
    return Description("Noisy numbers", full, "noisy numbers of rows that choices would keep")


def picture(statement: Statement, output: KeptChoices) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the table of choices."""
    rows = (
        (
            " ".join(map(str, estimate.levels.values())),
            estimate.k,
            str(estimate.rate),
            *(f"{n:,.0f}" for n in _numbers(estimate)),
        )
        for estimate in output.estimates
    )
    return table("Rows that each choice is expected to keep", ("levels", "k", "rate", "kept", "from", "to"), rows)


def _numbers(estimate: KeptEstimate) -> tuple[float, float, float]:
    return estimate.expected, estimate.low, estimate.high
