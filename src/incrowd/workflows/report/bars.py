"""Bars of a published histogram: exact counts full, noisy ones hatched, read off the released table alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.certificate import Certificate
from incrowd.core.words import counted
from incrowd.methods.outcomes.histogram import Histogram
from incrowd.methods.outcomes.selection import Selection
from incrowd.workflows.report.markup import Html, figure, table, tag

_BARS = 24
_LINE = 22
_NAME, _WIDE = 38.0, 50.0  # percent of the width: where bars start, and how long the longest is
_EXACT, _NOISY, _UNKNOWN = "exact", "noisy", "not told"


def count_bars(certificate: Certificate, histogram: Histogram) -> Html | None:
    """Return the bars of the bins, or of the largest ones where there are many; None without bins."""
    counts = histogram.counts
    if not len(counts):
        return None
    shown = np.sort(np.argsort(-counts, kind="stable")[:_BARS])
    marks = _marks({str(step.get("step")): step for step in certificate.chain}, histogram)[shown]
    part = histogram.table.take(shown)
    names = [
        ", ".join("missing" if label is None else str(label) for label in row)
        for row in zip(*(part[name].to_pylist() for name in histogram.labels), strict=True)
    ]
    values = counts[shown]
    longest = max(1, int(values.max(initial=1)))
    lines = [part for place in range(len(shown)) for part in _bar(place, names, values, marks, longest)]
    what = "All bins" if len(shown) == len(counts) else f"The {len(shown)} largest of {len(counts):,} bins"
    title = f"{what} with their published counts, from {int(values.min()):,} to {int(values.max()):,}"
    drawing = tag("svg", *lines, height=_LINE * len(shown) + 4, class_="chart", role="img", aria_label=title)
    rows = [[name, f"{value:,}", mark] for name, value, mark in zip(names, values, marks, strict=True)]
    numbers = table("Bins and their counts", [", ".join(histogram.labels), "Count", "Which is"], rows)
    return figure(drawing, f"{what}. {_words(marks)}", numbers)


def ranking(selection: Selection) -> Html:
    """Return the winners as a table."""
    names = selection.schema.names
    rows = [["missing" if cell is None else cell for cell in row.values()] for row in selection.table.to_pylist()]
    return table(f"The {counted(len(rows), 'most common bin')}", names, rows)


def _bar(place: int, names: list[str], values: NDArray[np.int64], marks: NDArray[Any], longest: int) -> list[Html]:
    top, value = place * _LINE, int(values[place])
    width = _WIDE * max(0, value) / longest
    name = names[place] if len(names[place]) <= 40 else f"{names[place][:39]}…"
    return [
        tag("text", name, x=f"{_NAME - 1}%", y=top + 15, class_="end"),
        tag(
            "rect",
            x=f"{_NAME}%",
            y=top + 3,
            width=f"{width:.2f}%",
            height=_LINE - 6,
            class_="bar" if marks[place] == _EXACT else "bar noisy",
        ),
        tag("text", f"{value:,}", x=f"{_NAME + width + 0.7:.2f}%", y=top + 15, class_="faint"),
    ]


def _marks(steps: Mapping[str, Mapping[str, Any]], histogram: Histogram) -> NDArray[Any]:
    """Return for each bin whether its count is exact, as far as the release itself tells."""
    counts = histogram.counts
    if "suppress counts" in steps:
        return np.where(counts > 0, _EXACT, "suppressed or empty")
    if "noise when small" not in steps:
        return np.full(len(counts), _NOISY, dtype=object)
    if histogram.exact is not None:
        return np.where(histogram.exact, _EXACT, _NOISY)
    rounds = int(steps["publish counts"].get("round", 1))
    told = steps["noise when small"].get("clamp") is True and rounds == 1
    return np.where(counts >= int(steps["noise when small"]["k"]), _EXACT, _NOISY) if told else _unknown(counts)


def _unknown(counts: NDArray[np.int64]) -> NDArray[Any]:
    return np.full(len(counts), _UNKNOWN, dtype=object)


def _words(marks: NDArray[Any]) -> str:
    kinds = set(marks.tolist())
    if _UNKNOWN in kinds:
        return "Large counts are exact and small ones noisy; the release does not tell which is which."
    if _EXACT in kinds and _NOISY in kinds:
        return "Full bars are exact counts, pale ones carry noise."
    if _NOISY in kinds:
        return "Every count carries noise."
    return "Every count above zero is exact."
