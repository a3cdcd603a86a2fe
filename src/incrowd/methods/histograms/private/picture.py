"""A private histogram in a report: every count carries noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.methods.histograms import bins
from incrowd.methods.histograms.bins import EVIDENCE, NOISY

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement
    from incrowd.drawing.markup import Description
    from incrowd.methods.outcomes.histogram import Histogram

__all__ = ["EVIDENCE", "description", "picture"]


def description(statement: Statement) -> Description:
    """Return that all counts are noisy."""
    return bins.description(statement, "Every one of them carries noise.")


def picture(statement: Statement, output: Histogram) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the bars."""
    return bins.picture(output, [NOISY] * len(output), "Every count carries noise.")
