"""Charts drawn by hand as SVG: the curve of a promise, and the sizes of the published classes."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Crowd, Grouped, Sequence, walk
from incrowd.core.unit import Adjacency
from incrowd.core.words import counted, short_up, times_up
from incrowd.errors import IncrowdError
from incrowd.workflows.report.axes import LEFT, TALL, TOP, WIDE, Area, picture, rounded_up, ticks, titles
from incrowd.workflows.report.markup import Html, figure, table, tag
from incrowd.workflows.report.odds import Odds

_STEPS = 48
_COMPOSED_STEPS = 16  # each point of a composed loss is composed anew
_ROWS = 16
_BARS = 10


class Point(NamedTuple):
    """An ε, and the δ that holds there."""

    epsilon: float
    delta: float

    @property
    def power(self) -> float:
        """The base-10 logarithm of δ."""
        return math.log10(self.delta)


def loss_curve(guarantee: Guarantee, odds: Odds) -> Html | None:
    """Return the chart of δ over ε with the promised point; None where no accountant gives such a curve."""
    points = curve(guarantee, odds) if odds.bounded and odds.delta else []
    if len(points) < 2:
        return None
    promised = Point(float(odds.epsilon), float(odds.delta))
    area = Area(0.0, points[-1].epsilon, min(math.floor(1.5 * promised.power), math.floor(promised.power) - 1), 0.0)
    across, powers = ticks(area.high, 5), ticks(-area.bottom, 6)
    axes = [
        *area.across(across, [f"{x:g}" for x in across], [f"×{times_up(f'{x:g}')}" for x in across]),
        *area.upward([-power for power in powers], [f"1e-{power:g}" if power else "1" for power in powers]),
        *titles("ε, and the factor on the odds", "δ"),
    ]
    caption = (
        "Every point of the line holds at once: at a smaller ε the chance of failure δ is larger, and the reverse. "
        f"The dot is what was promised and charged ({odds.numbers})."
    )
    rows = [
        [f"{point.epsilon:.3g}", times_up(repr(point.epsilon)), short_up(Decimal(point.delta), 3)]
        for point in points[:: math.ceil(len(points) / _ROWS)]
    ]
    drawing = picture(
        f"δ falls as ε grows. Promised: {odds.numbers}", *axes, _line(points, area), *_mark(promised, area)
    )
    return figure(drawing, caption, table("δ over ε", ["ε", "Factor e^ε", "δ at most"], rows))


def curve(guarantee: Guarantee, odds: Odds) -> list[Point]:
    """Return the curve from ε = 0 to twice the promised one, as the tightest accountant gives it.

    >>> from fractions import Fraction
    >>> from incrowd.core.loss import Crowd, Sampled
    >>> from incrowd.core.unit import Unit
    >>> promise = Guarantee(Sampled(Fraction(1, 10), Crowd(20)), Unit(), "the tight curve", delta=Fraction(1, 10**9))
    >>> [f"{point.epsilon:g} {point.delta:.2e}" for point in curve(promise, Odds(Decimal("0.5"), Decimal("1e-9")))][24]
    '0.5 2.63e-11'
    """
    from incrowd.accounting import accountant

    width, points = rounded_up(max(2.0 * float(odds.epsilon), 0.2)), []
    replaced = guarantee.unit.adjacency is Adjacency.REPLACE
    composed = isinstance(guarantee.loss, Sequence)
    if composed and any(isinstance(part, Crowd if replaced else Grouped) for part in walk(guarantee.loss)):
        return []  # each point would take seconds
    steps = _COMPOSED_STEPS if composed else _STEPS
    for step in range(steps + 1):
        epsilon = width * step / steps
        try:
            delta = accountant.delta(guarantee.loss, repr(epsilon), guarantee.unit.adjacency).value
        except IncrowdError:
            return []
        if delta > 0.0:
            points.append(Point(epsilon, delta))
    return points


def class_sizes(counts: Counts, what: str = "published rows") -> Html | None:
    """Return the histogram of rows by the size of their class, read off the counts alone; None without rows."""
    return sizes_chart(counts.counts, what)


def sizes_chart(sizes: NDArray[np.int64], what: str = "published rows", over: str = "in all columns") -> Html | None:
    """Return the histogram of rows by the size of their class, for classes that agree in some columns."""
    if not len(sizes):
        return None
    ranges, total = ranges_of(sizes), int(sizes.sum())
    inside = [sizes[(sizes >= low) & (sizes <= high)] for low, high in ranges]
    shares = [float(found.sum()) / total for found in inside]
    area = Area(0.0, float(len(ranges)), 0.0, rounded_up(max(shares)))
    names = [f"{low:,}" if low == high else f"{low:,}–{high:,}" for low, high in ranges]
    labeled = range(0, len(ranges), math.ceil(len(ranges) / 5))
    upward = ticks(area.top, 4)
    axes = [
        *area.across([place + 0.5 for place in labeled], [names[place] for place in labeled]),
        *area.upward(upward, [f"{100 * share:g} %" for share in upward]),
        *titles("rows in the same class", f"share of {what}"),
    ]
    told = f"The smallest class has {counted(int(sizes.min()), 'row')}, the largest {counted(int(sizes.max()), 'row')}."
    caption = f"Share of {what} by how many rows have the same values {over}. {told}"
    rows = [
        [name, counted(len(found), "class"), f"{100 * share:.1f} %"]
        for name, found, share in zip(names, inside, shares, strict=True)
    ]
    head = ["Rows in the class", "Classes", "Share of rows"]
    drawing = picture(f"Histogram of {what} by size of class. {told}", *axes, *_bars(shares, area))
    return figure(drawing, caption, table(f"Classes by size: {what}", head, rows))


def ranges_of(sizes: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return ranges from the smallest to the largest size, each wider than the one before by about the same factor.

    >>> ranges_of(np.array([5, 30])), ranges_of(np.array([8]))
    ([(5, 5), (6, 6), (7, 8), (9, 9), (10, 11), (12, 14), (15, 17), (18, 21), (22, 25), (26, 30)], [(8, 8)])
    """
    low, high = int(sizes.min()), int(sizes.max())
    edges = np.unique(np.round(np.geomspace(low, high + 1, _BARS + 1)).astype(np.int64)).tolist()
    return [(edges[place], edges[place + 1] - 1) for place in range(len(edges) - 1)]


def _line(points: list[Point], area: Area) -> Html:
    """Return the curve in a picture of its own, which stretches while the stroke does not."""
    drawn = " ".join(f"{1000 * p.epsilon / area.high:.1f},{1000 * p.power / area.bottom:.1f}" for p in points)
    return tag(
        "svg",
        tag("polyline", points=drawn, class_="curve", vector_effect="non-scaling-stroke"),
        x=f"{LEFT}%",
        y=TOP,
        width=f"{WIDE}%",
        height=TALL,
        viewBox="0 0 1000 1000",
        preserveAspectRatio="none",
    )


def _mark(promised: Point, area: Area) -> list[Html]:
    x, y = area.x(promised.epsilon), area.y(promised.power)
    return [
        tag("line", x1=x, x2=x, y1=y, y2=TOP + TALL, class_="guide"),
        tag("line", x1=f"{LEFT}%", x2=x, y1=y, y2=y, class_="guide"),
        tag("circle", cx=x, cy=y, r=6, class_="mark"),
        tag("text", "promised", x=x, y=y - 10, dx=8, class_="strong"),
    ]


def _bars(shares: list[float], area: Area) -> list[Html]:
    wide = f"{WIDE * 0.8 / len(shares):.2f}%"
    tops = [area.y(share) for share in shares]
    return [
        tag("rect", x=area.x(place + 0.1), y=y, width=wide, height=round(TOP + TALL - y, 1), class_="bar")
        for place, y in enumerate(tops)
    ]
