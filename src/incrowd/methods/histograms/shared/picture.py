"""Bins: what a report says and draws of published counts; how exact they are, each method says itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.words import counted
from incrowd.drawing.charts import Bar, bars
from incrowd.drawing.markup import Description, figure, table
from incrowd.drawing.picture import Picture

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement
    from incrowd.methods.shared.outcome import Histogram


EVIDENCE = {
    "bins": "Bins published",
    "bins above zero": "Bins with a count above zero",
    "smallest count above zero": "Smallest count above zero",
    "exact counts": "Counts marked as exact",
}
EXACT, NOISY = "exact", "noisy"
_BARS = 24


@dataclass(frozen=True)
class HistogramPicture(Picture):
    """Counts as bars; `exactness` says how exact they are, in a sentence."""

    evidence: Mapping[str, str] = field(default_factory=lambda: dict(EVIDENCE))

    def exactness(self, statement: Statement) -> str:
        """Return how exact the counts are, as a sentence."""
        raise NotImplementedError

    def description(self, statement: Statement) -> Description:
        return counts_described(statement, self.exactness(statement))


def counts_described(statement: Statement, exactness: str) -> Description:
    """Describe counts of bins, and how exact they are."""
    bins = counted(int(statement.evidence["bins"]), "bin")
    full = f"How many rows there are in each of {bins}. {exactness} No row is published."
    return Description("Counts", full, "the count of that person's bin")


def bin_bars(histogram: Histogram, marks: Sequence[str], words: str) -> Markup | None:
    """Return the bars of the bins, or of the largest ones where there are many; `marks` says of each what it is."""
    counts = histogram.counts
    if not len(counts):
        return None
    largest = np.sort(np.argsort(-counts, kind="stable")[:_BARS])
    table_part = histogram.table.take(largest)
    labels = zip(*(table_part[name].to_pylist() for name in histogram.labels), strict=True)
    names = [", ".join("missing" if label is None else str(label) for label in row) for row in labels]
    parts = [Bar(name, int(counts[place]), marks[place] == EXACT) for name, place in zip(names, largest, strict=True)]
    what = "All bins" if len(largest) == len(counts) else f"The {len(largest)} largest of {len(counts):,} bins"
    values = [bar.count for bar in parts]
    title = f"{what} with their published counts, from {min(values):,} to {max(values):,}"
    rows = [[bar.name, f"{bar.count:,}", marks[place]] for bar, place in zip(parts, largest, strict=True)]
    numbers = table("Bins and their counts", [", ".join(histogram.labels), "Count", "Which is"], rows)
    return figure(bars(title, parts), f"{what}. {words}", numbers)
