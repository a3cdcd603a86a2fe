"""Pictures: what of a released table is shown in its report, form by form."""

from __future__ import annotations

from incrowd.core.certificate import Certificate
from incrowd.methods.outcomes.microdata import Microdata
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.workflows.report.charts import class_sizes
from incrowd.workflows.report.markup import Html


def picture(certificate: Certificate, outcome: Outcome) -> Html | None:  # noqa: ARG001 - later forms read it
    """Return the picture of what was released, made from the released table and its certificate alone."""
    match outcome:
        case Microdata():
            return class_sizes(outcome.counts)
    return None
