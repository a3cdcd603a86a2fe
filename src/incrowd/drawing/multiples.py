"""Small multiples: one small chart a cell, over periods, each with the same axes and a band of error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from incrowd.drawing.markup import joined, tag

_ALONE = {"stroke": "#0072b2", "stroke_width": 3, "stroke_opacity": 0.4}
_DASHED = {"fill": "none", "stroke": "#b35900", "stroke_width": 1, "stroke_dasharray": "4 3"}
_WIDE, _TALL, _GAP, _TITLE, _FOOT, _ACROSS = 220, 84, 16, 18, 14, 3


@dataclass(frozen=True)
class Multiple:
    """One small chart: its name, and (period, value) points in order; a gap is a period without a release."""

    name: str
    points: Sequence[tuple[int, float]]
    smooth: Sequence[float] = ()
    """A second line over the same periods, drawn thin: what the points become under a constraint."""


def multiples(title: str, charts: Sequence[Multiple], within: float, labels: Sequence[str]) -> Markup:
    """Return small charts with common axes, from the first period to the last; `within` is half the band's width."""
    values = [value for chart in charts for _, value in chart.points]
    low, high = min(0.0, *(value - within for value in values)), max(1.0, *(value + within for value in values))
    parts = [tag("title", title)]
    for place, chart in enumerate(charts):
        left = (place % _ACROSS) * (_WIDE + _GAP)
        top = (place // _ACROSS) * (_TALL + _TITLE + _FOOT + _GAP)
        parts.append(tag("g", *_chart(chart, (low, high), within, labels), transform=f"translate({left} {top})"))
    rows = -(-len(charts) // _ACROSS)
    wide = min(len(charts), _ACROSS) * (_WIDE + _GAP)
    tall = rows * (_TALL + _TITLE + _FOOT + _GAP)
    return Markup('<svg viewBox="0 0 {} {}" role="img" class="multiples" aria-label="{}">{}</svg>').format(
        wide, tall, title, joined(parts)
    )


def _chart(chart: Multiple, ends: tuple[float, float], within: float, labels: Sequence[str]) -> list[Markup]:
    low, high = ends
    scale = (high - low) or 1.0

    def x(period: int) -> float:
        return round((period - 1) * _WIDE / max(1, len(labels) - 1), 1)

    def y(value: float) -> float:
        return round(_TITLE + _TALL * (high - value) / scale, 1)

    parts = [
        tag("text", chart.name[:34], x=0, y=_TITLE - 6, class_="name"),
        tag("line", x1=0, x2=_WIDE, y1=y(0), y2=y(0), class_="zero"),
        tag("text", f"up to {high:,.0f}", x=_WIDE, y=_TITLE - 6, text_anchor="end", class_="end"),
        *(
            tag("text", label, x=x(place), y=_TITLE + _TALL + _FOOT, text_anchor=anchor, class_="end")
            for label, place, anchor in ((labels[0], 1, "start"), (labels[-1], len(labels), "end"))
            if len(labels) > 1
        ),
    ]
    for run in _runs(chart.points):
        if len(run) == 1:
            at, value = x(run[0][0]), run[0][1]
            parts.append(
                tag("line", x1=at, x2=at, y1=y(value - within), y2=y(value + within), class_="alone", **_ALONE)
            )
            parts.append(tag("circle", cx=at, cy=y(value), r=2, class_="value"))
            continue
        above = [f"{x(period)},{y(value + within)}" for period, value in run]
        below = [f"{x(period)},{y(value - within)}" for period, value in reversed(run)]
        parts.append(tag("polygon", points=" ".join((*above, *below)), class_="band"))
        line = " ".join(f"{x(period)},{y(value)}" for period, value in run)
        parts.append(tag("polyline", points=line, class_="line"))
    if chart.smooth:
        line = " ".join(
            f"{x(period)},{y(value)}" for (period, _), value in zip(chart.points, chart.smooth, strict=True)
        )
        parts.append(tag("polyline", points=line, class_="smooth", **_DASHED))
    return parts


def rising(values: Sequence[float]) -> list[float]:
    """Return the nearest numbers that are at least 0 and never fall, by pooling neighbors that would.

    Source: Barlow, Bartholomew, Bremner & Brunk 1972: the projection is never further from any rising truth.

    >>> rising([-3.0, 5.0, 3.0, 9.0])
    [0.0, 4.0, 4.0, 9.0]
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        total, size = value, 1
        while pools and pools[-1][0] * size > total * pools[-1][1]:
            before = pools.pop()
            total, size = total + before[0], size + before[1]
        pools.append((total, size))
    return [max(0.0, total / size) for total, size in pools for _ in range(size)]


def _runs(points: Sequence[tuple[int, float]]) -> list[list[tuple[int, float]]]:
    """Return the points in runs of consecutive periods: a line is not drawn across a missing one.

    >>> [len(run) for run in _runs([(1, 5.0), (2, 6.0), (4, 7.0)])]
    [2, 1]
    """
    runs: list[list[tuple[int, float]]] = []
    for point in points:
        if runs and runs[-1][-1][0] == point[0] - 1:
            runs[-1].append(point)
        else:
            runs.append([point])
    return runs
