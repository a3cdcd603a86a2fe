"""Maps of released points: shades for how many lie where, over two coordinates; inside the house before and after."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.keys import Codes, Keys
from incrowd.core.words import counted
from incrowd.methods.outcomes.points import Points
from incrowd.methods.synthesis.grid import Axis
from incrowd.workflows.report.markup import Html, figure, section, table, tag

_FINEST = 64
_ROWS = 16
_SIZE = 320


@dataclass(frozen=True, eq=False)
class Shades:
    """Counts over the first two coordinates, at most 64 by 64 of them; one coordinate makes a single line."""

    axes: tuple[Axis, ...]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, axes: tuple[Axis, ...], codes: list[Codes], counts: NDArray[np.int64]) -> Shades:
        """Return the counts of cells, added up over all other coordinates and over neighbors where there are many."""
        shown = axes[:2]
        sides = [min(axis.slices.pieces, _FINEST) for axis in shown]
        places = [
            code.astype(np.int64) * side // axis.slices.pieces
            for axis, code, side in zip(shown, codes, sides, strict=False)
        ]
        wide, tall = (*sides, 1)[:2]
        found = np.zeros((tall, wide), np.int64)
        np.add.at(found, (places[1] if len(places) > 1 else np.zeros(len(counts), np.int64), places[0]), counts)
        return cls(shown, found)

    def drawing(self, title: str) -> Html:
        """Return the picture: darker where more points lie, relative to its own darkest place."""
        tall, wide = self.counts.shape
        darkest = max(1, int(self.counts.max(initial=0)))
        squares = [
            tag(
                "rect",
                x=int(x),
                y=int(tall - 1 - y),
                width=1,
                height=1,
                class_="bar",
                fill_opacity=f"{max(0.08, (self.counts[y, x] / darkest) ** 0.5):.2f}",
            )
            for y, x in zip(*np.nonzero(self.counts), strict=True)
        ]
        height = _SIZE if tall > 1 else 40
        field = tag(
            "svg",
            tag(
                "rect", width=wide, height=tall, fill="none", stroke="currentColor", vector_effect="non-scaling-stroke"
            ),
            *squares,
            x=0,
            y=20,
            width="100%",
            height=height,
            viewBox=f"0 0 {wide} {tall}",
            preserveAspectRatio="none",
        )
        words = [tag("text", _span(self.axes[0], "→"), x="100%", y=height + 38, class_="end strong")]
        if tall > 1:
            words.append(tag("text", _span(self.axes[1], "↑"), x=0, y=13, class_="strong"))
        look = {"class_": "chart", "role": "img", "aria_label": title, "style": f"max-width:{_SIZE + 60}px"}
        return tag("svg", field, *words, height=height + 46, **look)

    def numbers(self, what: str) -> Html:
        """Return how much lies along the first coordinate, in at most 16 stretches."""
        along = self.counts.sum(axis=0)
        parts = np.array_split(np.arange(len(along)), min(_ROWS, len(along)))
        share = 100.0 / max(1, int(along.sum()))
        name, whole = self.axes[0].column.name, len(along) / 100.0
        rows = [
            [
                f"{part[0] / whole:.0f} to {(part[-1] + 1) / whole:.0f} % of the way",
                f"{along[part].sum() * share:.1f} %",
            ]
            for part in parts
        ]
        return table(f"{what} along {name}", [name, f"Share of {what}"], rows)


def point_map(points: Points) -> Html | None:
    """Return the map of released points, made from them alone; None without points."""
    if not len(points):
        return None
    shades = Shades.of(points.grid.axes, points.codes(), points.counts)
    told = f"{counted(len(points), 'point')} in {counted(len(points.keys), 'cell')}"
    caption = f"Where the published points lie: {told}. {_other(points)}Darker means more; white means none."
    return figure(shades.drawing(f"Map of published points: {told}."), caption, shades.numbers("points"))


def maps_section(points: Points, original: Counts) -> Html:
    """Return the maps before and after, and how far apart they are for every slowly changing function.

    Pairing rows and points of one cell, a share 1 − t of both is paired, t being half the sum of the differences of
    shares; so means over the points and over ALL original rows differ by at most L·moves + 2·B·t.  This counts what the
    sample changed too.  It is made from the original rows and may not leave.
    """
    before = Shades.of(points.grid.axes, original.codes(), original.counts)
    after = Shades.of(points.grid.axes, points.codes(), points.counts)
    apart = distance(original.keys, original.counts, points.keys, points.counts)
    error = points.accuracy.reach + 2 * Decimal(f"{apart:.6f}")
    facts = [
        ["Rows in the box", f"{original.total:,}"],
        ["Points", f"{len(points):,}"],
        ["Cells with rows; with points", f"{len(original):,}; {len(points.keys):,}"],
        ["Share that is in another cell before than after (t)", f"{100 * apart:.2f} %"],
        ["Points move at most, in sides of the box", str(points.accuracy.reach)],
        ["Means of functions with L = B = 1 differ at most by", f"{error:.4f}"],
    ]
    maps = [
        tag("div", tag("h3", name), shades.drawing(f"Map {name.lower()}."))
        for name, shades in (("Before: original rows", before), ("After: published points", after))
    ]
    return section(
        "comparison",
        "Before and after",
        tag("p", "From the original rows, put into the same cells. ", tag("strong", "Nothing here may leave.")),
        tag("div", *maps, class_="pair"),
        table("How far the points are from the rows", ["", "Number"], facts),
    )


def distance(some: Keys, counts: NDArray[np.int64], others: Keys, times: NDArray[np.int64]) -> float:
    """Return half the sum over all cells of the difference between two shares; 1 where one side has nothing.

    >>> distance(np.array([1, 5]), np.array([3, 1]), np.array([1]), np.array([8]))
    0.25
    """
    if not len(some) or not len(others):
        return 0.0 if len(some) == len(others) else 1.0
    keys, where = np.unique(np.concatenate([some, others]), return_inverse=True)
    apart = np.zeros(len(keys))
    np.add.at(apart, where[: len(some)], counts / counts.sum())
    np.add.at(apart, where[len(some) :], -times / times.sum())
    return float(np.abs(apart).sum() / 2.0)


def _other(points: Points) -> str:
    further = points.grid.names[2:]
    return f"All values of {', '.join(further)} are added up. " if further else ""


def _span(axis: Axis, arrow: str) -> str:
    ends = [end if isinstance(end, date) else f"{float(end or 0):g}" for end in axis.slices.domain.bounds]
    return f"{axis.column.name} {arrow} {ends[0]} to {ends[1]}"
