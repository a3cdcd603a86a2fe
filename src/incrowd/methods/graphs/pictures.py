"""Pictures of graphs: small ones as nodes on a circle, large ones by how many nodes have each degree."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from incrowd.core.graph import Graph
from incrowd.core.words import counted
from incrowd.drawing.charts import Bar, bars
from incrowd.drawing.markup import figure, table, tag

_SMALL, _SIDE, _BARS = 60, 320, 20


def graph_figure(graph: Graph, title: str, *, exact: bool) -> Markup:
    """Return a graph as a picture: its nodes on a circle if they are few, else its degrees."""
    words = f"{title}: {counted(graph.size, 'node')}, {counted(len(graph.ends), 'edge')}."
    values, times = np.unique(graph.degrees, return_counts=True)
    numbers = table(
        "Nodes by degree", ["Degree", "Nodes"], list(zip(values.tolist(), times.tolist(), strict=True))[:200]
    )
    drawing = _circle(graph, words) if graph.size <= _SMALL else degree_bars(values, times, words, exact=exact)
    return figure(drawing, words, numbers)


def degree_bars(values: NDArray[np.int64], times: NDArray[np.int64], title: str, *, exact: bool) -> Markup:
    """Return how many nodes have each degree; where there are many degrees, in ranges that grow."""
    if len(values) <= _BARS:
        shown = [Bar(str(value), int(number), exact) for value, number in zip(values, times, strict=True)]
        return bars(title, shown)
    edges = np.unique(np.round(np.geomspace(1, int(values.max()) + 1, _BARS)).astype(np.int64))
    starts = np.append(0, edges)
    stops = np.append(edges, int(values.max()) + 1)
    shown = [
        Bar(
            f"{low}" if low + 1 == high else f"{low}–{high - 1}",
            int(times[(values >= low) & (values < high)].sum()),
            exact,
        )
        for low, high in zip(starts.tolist(), stops.tolist(), strict=True)
        if low < high
    ]
    return bars(title, shown)


def _circle(graph: Graph, title: str) -> Markup:
    middle, radius = _SIDE / 2, _SIDE / 2 - 10
    angles = [2 * pi * place / max(1, graph.size) for place in range(graph.size)]
    places = [(round(middle + radius * cos(a), 1), round(middle + radius * sin(a), 1)) for a in angles]
    lines = [
        tag("line", x1=places[a][0], y1=places[a][1], x2=places[b][0], y2=places[b][1], class_="grid")
        for a, b in graph.ends.tolist()
    ]
    dots = [tag("circle", cx=x, cy=y, r=4, class_="mark") for x, y in places]
    box = f"0 0 {_SIDE} {_SIDE}"
    return tag("svg", *lines, *dots, viewBox=box, height=_SIDE, class_="chart", role="img", aria_label=title)
