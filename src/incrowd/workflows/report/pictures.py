"""Pictures: what of a released table is shown in its report, form by form."""

from __future__ import annotations

from incrowd.core.certificate import Certificate
from incrowd.methods.outcomes.anonymized import Anonymized
from incrowd.methods.outcomes.histogram import Histogram
from incrowd.methods.outcomes.itemsets import ItemTable
from incrowd.methods.outcomes.microdata import Microdata
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.methods.outcomes.points import Points
from incrowd.methods.outcomes.selection import Selection
from incrowd.methods.outcomes.sliced import Sliced
from incrowd.workflows.report.bars import count_bars, ranking
from incrowd.workflows.report.charts import class_sizes, sizes_chart
from incrowd.workflows.report.markup import Html
from incrowd.workflows.report.points_map import point_map
from incrowd.workflows.report.slices import slices


def picture(certificate: Certificate, outcome: Outcome) -> Html | None:
    """Return the picture of what was released, made from the released table and its certificate alone."""
    match outcome:
        case Histogram():
            return count_bars(certificate, outcome)
        case Selection():
            return ranking(outcome)
        case Microdata():
            return class_sizes(outcome.counts)
        case ItemTable():
            return sizes_chart(outcome.rows.counts)
        case Anonymized():
            return sizes_chart(outcome.sizes, over="in all quasi-identifiers")
        case Sliced():
            return slices(outcome)
        case Points():
            return point_map(outcome)
    return None
