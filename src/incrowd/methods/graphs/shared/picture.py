"""Pictures of graphs: small ones as nodes and edges, large ones by how many nodes have each degree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from incrowd.core.graph import Graph, keys_of, simple
from incrowd.core.words import counted
from incrowd.drawing.charts import Bar, bars
from incrowd.drawing.markup import figure, table, tag
from incrowd.drawing.picture import Picture

if TYPE_CHECKING:
    from incrowd.core.statement import Statement


_SMALL, _WIDE, _TALL, _BARS, _ROUNDS = 60, 420, 320, 20, 300
_NONE: NDArray[np.int64] = np.zeros(0, np.int64)
_AFTER = "After, as published or drawn from it"
_GONE, _ADDED = " Dashed edges are not in what was published.", " Colored edges are not in the data."


def graph_figure(graph: Graph, title: str, *, exact: bool) -> Markup:
    """Return a graph as a picture: its nodes and edges if they are few, else its degrees."""
    if graph.size <= _SMALL:
        return _figure(graph, title, _drawing(graph, layout(graph), _NONE, "tie"))
    values, times = np.unique(graph.degrees, return_counts=True)
    return _figure(graph, title, degree_bars(values, times, title, exact=exact))


def change_figures(before: Graph, after: Graph) -> Markup:
    """Return two graphs on the same nodes as two pictures; where nodes are few, edges of one of both are marked."""
    if before.size > _SMALL:
        return graph_figure(before, "Before", exact=True) + graph_figure(after, _AFTER, exact=False)
    keys = [keys_of(graph.ends, graph.size) for graph in (before, after)]
    places = layout(before.with_ends(simple(np.concatenate([before.ends, after.ends]), before.size)))
    was, is_ = _drawing(before, places, keys[1], "gone"), _drawing(after, places, keys[0], "added")
    return _figure(before, "Before", was, _GONE) + _figure(after, _AFTER, is_, _ADDED)


def _figure(graph: Graph, title: str, drawing: Markup, note: str = "") -> Markup:
    words = f"{title}: {counted(graph.size, 'node')}, {counted(len(graph.ends), 'edge')}.{note}"
    values, times = np.unique(graph.degrees, return_counts=True)
    rows = list(zip(values.tolist(), times.tolist(), strict=True))[:200]
    return figure(drawing, words, table("Nodes by degree", ["Degree", "Nodes"], rows))


def degree_bars(values: NDArray[np.int64], times: NDArray[np.int64], title: str, *, exact: bool) -> Markup:
    """Return how many nodes have each degree; where there are many degrees, in ranges that grow."""
    if len(values) <= _BARS:
        heights = [Bar(str(value), int(number), exact) for value, number in zip(values, times, strict=True)]
        return bars(title, heights)
    edges = np.unique(np.round(np.geomspace(1, int(values.max()) + 1, _BARS)).astype(np.int64))
    starts = np.append(0, edges)
    stops = np.append(edges, int(values.max()) + 1)
    heights = [
        Bar(
            f"{low}" if low + 1 == high else f"{low}–{high - 1}",
            int(times[(values >= low) & (values < high)].sum()),
            exact,
        )
        for low, high in zip(starts.tolist(), stops.tolist(), strict=True)
        if low < high
    ]
    return bars(title, heights)


def _drawing(graph: Graph, places: NDArray[np.float64], common: NDArray[np.int64], mark: str) -> Markup:
    """Return nodes at their places and the edges between them; those that are not known are marked, and drawn last."""
    spots = np.round(10 + places * np.array([_WIDE - 20, _TALL - 20]), 1).tolist()
    other = ~np.isin(keys_of(graph.ends, graph.size), common)
    lines = [
        tag("line", x1=spots[a][0], y1=spots[a][1], x2=spots[b][0], y2=spots[b][1], class_=mark if new else "tie")
        for new in (False, True)
        for a, b in graph.ends[other == new].tolist()
    ]
    dots = [tag("circle", cx=x, cy=y, r=5, class_="mark") for x, y in spots]
    box, title = f"0 0 {_WIDE} {_TALL}", f"{counted(graph.size, 'node')} and {counted(len(graph.ends), 'edge')}"
    return tag("svg", *lines, *dots, viewBox=box, height=_TALL, class_="chart", role="img", aria_label=title)


def layout(graph: Graph) -> NDArray[np.float64]:
    """Return places of nodes in the unit square: edges pull, nodes push (Fruchterman & Reingold 1991).

    >>> layout(Graph.of(2, [(0, 1)])).round(3).tolist()
    [[1.0, 0.5], [0.0, 0.5]]
    """
    size = max(1, graph.size)
    angles = 2 * np.pi * np.arange(graph.size) / size
    spots, near = np.stack([np.cos(angles), np.sin(angles)], axis=1), 1.5 / np.sqrt(size)
    joined = np.zeros((graph.size, graph.size))
    joined[graph.ends[:, 0], graph.ends[:, 1]] = joined[graph.ends[:, 1], graph.ends[:, 0]] = 1
    for warmth in np.linspace(0.2, 0.005, _ROUNDS):
        apart = spots[:, None] - spots
        far = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-3)
        force = ((near**2 / far**2 - joined * far / near)[:, :, None] * apart).sum(axis=1) - 0.5 * spots
        length = np.maximum(np.sqrt((force**2).sum(axis=1, keepdims=True)), 1e-9)
        spots = spots + force / length * np.minimum(length, warmth)
    if not graph.size:
        return spots
    low, wide = spots.min(axis=0), np.ptp(spots, axis=0)
    return np.where(wide > 1e-6, (spots - low) / np.where(wide > 1e-6, wide, 1), 0.5)


@dataclass(frozen=True)
class GraphPicture(Picture):
    """A published graph in a report: a title, whether its counts are exact, and the evidence that readers see."""

    title: str
    exact: bool = True
    evidence: Mapping[str, str] = field(
        default_factory=lambda: {
            "nodes": "Nodes",
            "edges": "Edges",
            "nodes of the rarest degree": "Nodes of the rarest degree",
        }
    )

    def draw(self, statement: Statement, output: Any) -> Markup | None:
        return graph_figure(output.graph, self.title, exact=self.exact)
