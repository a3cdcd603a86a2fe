"""A coarser table in a report: the crowds of its rows, or its counts, which are sums of released ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from incrowd.drawing.charts import class_sizes
from incrowd.methods.anonymity.shared.classes import ClassesPicture
from incrowd.methods.histograms.shared.picture import EVIDENCE as COUNTED
from incrowd.methods.histograms.shared.picture import bin_bars, counts_described
from incrowd.methods.shared.outcome import Histogram
from incrowd.workflows.coarsen.check import is_counted

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement
    from incrowd.drawing.markup import Description
    from incrowd.methods.shared.microdata import Microdata

_CLASSES = ClassesPicture()
EVIDENCE: Mapping[str, str] = {**_CLASSES.evidence, **COUNTED}
_SUMS = "Every count is a sum of released ones, which its parent's steps describe."


def description(statement: Statement) -> Description:
    """Return how large the crowds are, or that counts were added up."""
    return counts_described(statement, _SUMS) if is_counted(statement.steps) else _CLASSES.description(statement)


def picture(statement: Statement, output: Microdata | Histogram) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return how many rows look like how many others, or the bars of the bins."""
    if isinstance(output, Histogram):
        return bin_bars(output, ["a sum"] * len(output), _SUMS)
    return class_sizes(output.counts.counts)
