"""Bins: what a report says and draws of published counts; how exact they are, each method says itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.words import counted
from incrowd.drawing.charts import Bar, bars
from incrowd.drawing.markup import Description, figure, table

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement
    from incrowd.methods.outcomes.histogram import Histogram

EVIDENCE = {
    "bins": "Bins published",
    "bins above zero": "Bins with a count above zero",
    "smallest count above zero": "Smallest count above zero",
    "exact counts": "Counts marked as exact",
}
EXACT, NOISY = "exact", "noisy"
_BARS = 24


def description(statement: Statement, counts: str) -> Description:
    """Return that bins were counted, and how exact the counts are."""
    bins = counted(int(statement.evidence["bins"]), "bin")
    full = f"How many rows there are in each of {bins}. {counts} No row is published."
    return Description("Counts", full, "the count of that person's bin")


def picture(histogram: Histogram, marks: Sequence[str], words: str) -> Markup | None:
    """Return the bars of the bins, or of the largest ones where there are many; `marks` says of each what it is."""
    counts = histogram.counts
    if not len(counts):
        return None
    shown = np.sort(np.argsort(-counts, kind="stable")[:_BARS])
    part = histogram.table.take(shown)
    labels = zip(*(part[name].to_pylist() for name in histogram.labels), strict=True)
    names = [", ".join("missing" if label is None else str(label) for label in row) for row in labels]
    drawn = [Bar(name, int(counts[place]), marks[place] == EXACT) for name, place in zip(names, shown, strict=True)]
    what = "All bins" if len(shown) == len(counts) else f"The {len(shown)} largest of {len(counts):,} bins"
    values = [bar.count for bar in drawn]
    title = f"{what} with their published counts, from {min(values):,} to {max(values):,}"
    rows = [[bar.name, f"{bar.count:,}", marks[place]] for bar, place in zip(drawn, shown, strict=True)]
    numbers = table("Bins and their counts", [", ".join(histogram.labels), "Count", "Which is"], rows)
    return figure(bars(title, drawn), f"{what}. {words}", numbers)
