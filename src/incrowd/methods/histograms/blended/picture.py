"""A blended histogram in a report: large counts are exact, small ones noisy, as far as the release tells which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.steps.bins import PublishCounts
from incrowd.core.steps.counts import NoiseWhenSmall
from incrowd.methods.histograms import bins
from incrowd.methods.histograms.bins import EVIDENCE, EXACT, NOISY

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement
    from incrowd.drawing.markup import Description
    from incrowd.methods.outcomes.histogram import Histogram

__all__ = ["EVIDENCE", "description", "picture"]

_WORDS = {
    (EXACT, NOISY): "Full bars are exact counts, pale ones carry noise.",
    (NOISY,): "Every count carries noise.",
    (EXACT,): "Every count above zero is exact.",
}
_UNKNOWN = "Large counts are exact and small ones noisy; the release does not tell which is which."


def description(statement: Statement) -> Description:
    """Return that counts from k on are exact."""
    k = statement.basis.need(NoiseWhenSmall).k
    return bins.description(statement, f"Counts of {k} or more are exact, smaller ones carry noise.")


def picture(statement: Statement, output: Histogram) -> Markup | None:
    """Return the bars; where noise is held below k, or counts are marked, it is known which are exact."""
    small, published = statement.basis.need(NoiseWhenSmall), statement.basis.need(PublishCounts)
    exact = output.exact
    if exact is None and small.clamp and published.round == 1:
        exact = output.counts >= small.k
    if exact is None:
        return bins.picture(output, ["not told"] * len(output), _UNKNOWN)
    marks = np.where(exact, EXACT, NOISY).tolist()
    return bins.picture(output, marks, _WORDS[tuple(sorted(set(marks)))]) if marks else None
