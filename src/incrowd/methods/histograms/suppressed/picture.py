"""A suppressed histogram in a report: counts from k on are exact, smaller ones are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.steps.counts import SuppressCounts
from incrowd.methods.histograms import bins
from incrowd.methods.histograms.bins import EVIDENCE, EXACT

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement
    from incrowd.drawing.markup import Description
    from incrowd.methods.outcomes.histogram import Histogram

__all__ = ["EVIDENCE", "description", "picture"]


def description(statement: Statement) -> Description:
    """Return that counts from k on are exact."""
    k = statement.basis.need(SuppressCounts).k
    return bins.description(statement, f"Counts of {k} or more are exact, smaller ones are 0 or left out.")


def picture(statement: Statement, output: Histogram) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the bars."""
    marks = np.where(output.counts > 0, EXACT, "suppressed or empty").tolist()
    return bins.picture(output, marks, "Every count above zero is exact.")
