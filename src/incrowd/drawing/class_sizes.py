"""Class sizes: how many of the rows look like how many others."""

from __future__ import annotations

import math

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from incrowd.core.words import counted
from incrowd.drawing.axes import TALL, TOP, WIDE, Area, picture, rounded_up, ticks, titles
from incrowd.drawing.markup import figure, table, tag

_BARS = 10


def class_sizes(sizes: NDArray[np.int64], what: str = "published rows", over: str = "in all columns") -> Markup | None:
    """Return the histogram of rows by the size of their class, for classes that agree in some columns."""
    if not len(sizes):
        return None
    ranges, total = ranges_of(sizes), int(sizes.sum())
    inside = [sizes[(sizes >= low) & (sizes <= high)] for low, high in ranges]
    shares = [float(found.sum()) / total for found in inside]
    area = Area(0.0, float(len(ranges)), 0.0, rounded_up(max(shares)))
    names = [f"{low:,}" if low == high else f"{low:,}–{high:,}" for low, high in ranges]
    extremes = f"The smallest class has {counted(int(sizes.min()), 'row')}, the largest "
    extremes += f"{counted(int(sizes.max()), 'row')}."
    rows = [
        [name, counted(len(found), "class"), f"{100 * share:.1f} %"]
        for name, found, share in zip(names, inside, shares, strict=True)
    ]
    numbers = table(f"Classes by size: {what}", ["Rows in the class", "Classes", "Share of rows"], rows)
    drawn = [*_axes(area, names), *titles("rows in the same class", f"share of {what}"), *_bars(shares, area)]
    caption = f"Share of {what} by how many rows have the same values {over}. {extremes}"
    return figure(picture(f"Histogram of {what} by size of class. {extremes}", *drawn), caption, numbers)


def ranges_of(sizes: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return ranges from the smallest to the largest size, each wider than the one before by about the same factor.

    >>> ranges_of(np.array([5, 30])), ranges_of(np.array([8]))
    ([(5, 5), (6, 6), (7, 8), (9, 9), (10, 11), (12, 14), (15, 17), (18, 21), (22, 25), (26, 30)], [(8, 8)])
    """
    low, high = int(sizes.min()), int(sizes.max())
    edges = np.unique(np.round(np.geomspace(low, high + 1, _BARS + 1)).astype(np.int64)).tolist()
    return [(edges[place], edges[place + 1] - 1) for place in range(len(edges) - 1)]


def _axes(area: Area, names: list[str]) -> list[Markup]:
    labeled = range(0, len(names), math.ceil(len(names) / 5))
    upward = ticks(area.top, 4)
    across = area.across([place + 0.5 for place in labeled], [names[place] for place in labeled])
    return across + area.upward(upward, [f"{100 * share:g} %" for share in upward])


def _bars(shares: list[float], area: Area) -> list[Markup]:
    wide = f"{WIDE * 0.8 / len(shares):.2f}%"
    tops = [area.y(share) for share in shares]
    return [
        tag("rect", x=area.x(place + 0.1), y=y, width=wide, height=round(TOP + TALL - y, 1), class_="bar")
        for place, y in enumerate(tops)
    ]
