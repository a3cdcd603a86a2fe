"""Charts: bars, histograms and error bars in a picture that is as wide as the page; text keeps its size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from incrowd.core.words import counted
from incrowd.drawing.markup import figure, table, tag

TALL, TOP, LEFT, WIDE = 230, 30, 13.0, 81.0
_ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
_LINE = 22
_NAME, _WIDE = 38.0, 50.0  # percent of the width: where bars start, and how long the longest is
_LONG = 40
_BARS = 10
_PAIR, _PAIR_LEFT, _PAIR_WIDE, _PAIR_LONG = 28, 32.0, 40.0, 17  # a pair of bars: its height, start, width and name


@dataclass(frozen=True)
class Area:
    """The part of a picture that holds values: x in percent of the width, y in pixels."""

    low: float
    high: float
    bottom: float
    top: float

    def x(self, value: float) -> str:
        """Return the horizontal place of a value, in percent."""
        return f"{LEFT + WIDE * (value - self.low) / (self.high - self.low):.2f}%"

    def y(self, value: float) -> float:
        """Return the vertical place of a value from above, in pixels."""
        return round(TOP + TALL * (self.top - value) / (self.top - self.bottom), 1)

    def across(self, values: Sequence[float], labels: Sequence[str], below: Sequence[str] = ()) -> list[Markup]:
        """Return labels under the picture, in one line or two."""
        texts = [
            tag("text", label, x=self.x(value), y=TOP + TALL + 18, class_="mid")
            for value, label in zip(values, labels, strict=True)
        ]
        texts += [
            tag("text", label, x=self.x(value), y=TOP + TALL + 34, class_="mid faint")
            for value, label in zip(values, below, strict=False)
        ]
        return texts

    def upward(self, values: Sequence[float], labels: Sequence[str]) -> list[Markup]:
        """Return labels to the left of the picture, each with a line through it."""
        parts = []
        for value, label in zip(values, labels, strict=True):
            height = self.y(value)
            parts.append(tag("line", x1=f"{LEFT}%", x2=f"{LEFT + WIDE}%", y1=height, y2=height, class_="grid"))
            parts.append(tag("text", label, x=f"{LEFT - 1}%", y=height + 4, class_="end"))
        return parts


def titles(across: str, upward: str) -> list[Markup]:
    """Return the names of the axes."""
    return [
        tag("text", across, x=f"{LEFT + WIDE}%", y=TOP + TALL + 52, class_="end strong"),
        tag("text", upward, x="0", y=13, class_="strong"),
    ]


def picture(title: str, *parts: Markup) -> Markup:
    """Return a whole picture, with a title for screen readers."""
    return tag("svg", *parts, height=TALL + TOP + 60, class_="chart", role="img", aria_label=title)


def rounded_up(value: float) -> float:
    """Return the least round number that is not below a positive value.

    >>> rounded_up(0.73), rounded_up(2.1), rounded_up(1.0)
    (0.8, 2.5, 1.0)
    """
    size = 10.0 ** math.floor(math.log10(value))
    return next(step * size for step in _ROUND if step * size >= value * (1 - 1e-12))


def ticks(high: float, most: int) -> list[float]:
    """Return round numbers from 0 to `high`, not many more than `most`.

    >>> ticks(2.0, 5)
    [0.0, 0.5, 1.0, 1.5, 2.0]
    """
    size = 10.0 ** math.floor(math.log10(high / most))
    step = next(factor * size for factor in (1, 2, 5, 10) if high / (factor * size) <= most)
    return [round(place * step, 12) for place in range(int(high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Bar:
    """A name, its count, and whether the count is exact."""

    name: str
    count: int
    exact: bool


def bars(title: str, counts: Sequence[Bar]) -> Markup:
    """Return bars as a picture, with a title for screen readers."""
    longest = max(1, *(bar.count for bar in counts))
    parts = [part for place, bar in enumerate(counts) for part in _bar(bar, place * _LINE, longest)]
    return tag("svg", *parts, height=_LINE * len(counts) + 4, class_="chart", role="img", aria_label=title)


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _bar(bar: Bar, top: int, longest: int) -> tuple[Markup, ...]:
    width = _WIDE * max(0, bar.count) / longest
    look = {"y": top + 3, "width": f"{width:.2f}%", "height": _LINE - 6, "class_": "bar" if bar.exact else "bar noisy"}
    return (
        tag("text", _short(bar.name, _LONG), x=f"{_NAME - 1}%", y=top + 15, class_="end"),
        tag("rect", x=f"{_NAME}%", **look),
        tag("text", f"{bar.count:,}", x=f"{_NAME + width + 0.7:.2f}%", y=top + 15, class_="faint"),
    )


def class_sizes(sizes: NDArray[np.int64], what: str = "published rows", over: str = "in all columns") -> Markup | None:
    """Return the histogram of rows by the size of their equivalence class."""
    if not len(sizes):
        return None
    ranges, total = ranges_of(sizes), int(sizes.sum())
    inside = [sizes[(sizes >= low) & (sizes <= high)] for low, high in ranges]
    shares = [float(group.sum()) / total for group in inside]
    area = Area(0.0, float(len(ranges)), 0.0, rounded_up(max(shares)))
    names = [f"{low:,}" if low == high else f"{low:,}–{high:,}" for low, high in ranges]
    extremes = f"The smallest class has {counted(int(sizes.min()), 'row')}, the largest "
    extremes += f"{counted(int(sizes.max()), 'row')}."
    rows = [
        [name, counted(len(group), "class"), f"{100 * share:.1f} %"]
        for name, group, share in zip(names, inside, shares, strict=True)
    ]
    numbers = table(f"Classes by size: {what}", ["Rows in the class", "Classes", "Share of rows"], rows)
    parts = [*_axes(area, names), *titles("rows in the same class", f"share of {what}"), *_bars(shares, area)]
    caption = f"Share of {what} by how many rows have the same values {over}. {extremes}"
    return figure(picture(f"Histogram of {what} by size of class. {extremes}", *parts), caption, numbers)


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


@dataclass(frozen=True)
class Share:
    """The share of all rows in a class, before and after."""

    label: str
    before: float
    after: float


def distance(shares: tuple[Share, ...]) -> float:
    """Return the total variation distance: the share of rows that would have to change class.

    >>> distance((Share("F", 0.5, 0.6), Share("M", 0.5, 0.4)))
    0.1
    """
    return round(sum(abs(share.before - share.after) for share in shares) / 2.0, 12)


def share_bars(name: str, shares: tuple[Share, ...]) -> Markup:
    """Return a column before and after, with its numbers."""
    rows = [[share.label, f"{100 * share.before:.2f} %", f"{100 * share.after:.2f} %"] for share in shares]
    numbers = table(f"Shares of {name}", ["Class", "Before", "After"], rows)
    moved = f"{100 * distance(shares):.1f} % of the released rows would have to change class to match."
    return figure(_pairs(name, shares), f"{name}: {counted(len(shares), 'class')}; {moved}", numbers)


def _pairs(name: str, shares: tuple[Share, ...]) -> Markup:
    """Return two bars for each class, with the numbers at their end."""
    longest = max(1e-9, *(max(share.before, share.after) for share in shares))
    parts = [tag("text", name, x="0", y=14, class_="strong")]
    for place, (look, words) in enumerate((("before", "before"), ("bar", "after"))):
        x = f"{_PAIR_LEFT + 18 * place}%"
        parts += [tag("rect", x=x, y=4, width=12, height=12, class_=look), tag("text", words, x=x, y=14, dx=18)]
    for place, share in enumerate(shares):
        parts += _pair(share, _PAIR * place + _PAIR, longest)
    about = {"class_": "chart", "role": "img", "aria_label": f"Shares of {name} before and after"}
    return tag("svg", *parts, height=_PAIR * (len(shares) + 1) + 4, **about)


def _pair(share: Share, top: int, longest: float) -> list[Markup]:
    label = _short(share.label, _PAIR_LONG)
    wide = [_PAIR_WIDE * value / longest for value in (share.before, share.after)]
    ends = f"{100 * share.before:.1f} → {100 * share.after:.1f} %"
    bars = [
        tag("rect", x=f"{_PAIR_LEFT}%", y=top + y, width=f"{width:.2f}%", height=9, class_=look)
        for y, width, look in zip((4, 14), wide, ("before", "bar"), strict=True)
    ]
    after = {"x": f"{_PAIR_LEFT + max(wide):.2f}%", "dx": 6, "y": top + 17, "class_": "faint"}
    return [tag("text", label, x=f"{_PAIR_LEFT}%", dx=-8, y=top + 17, class_="end"), *bars, tag("text", ends, **after)]


_ROW, _ABOVE, _BELOW = 26, 8, 26
_ESTIMATE_NAME, _ESTIMATE_LEFT, _ESTIMATE_WIDE = 30.0, 32.0, 62.0
_ESTIMATE_LONG = 28


@dataclass(frozen=True)
class IntervalEstimate:
    """A name, its number, and the ends of its interval if it has one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The interval as far as it is finite, or the number itself."""
        low, high = (self.value if end is None or not math.isfinite(end) else end for end in (self.low, self.high))
        return low, high


def error_bars(title: str, estimates: Sequence[IntervalEstimate]) -> Markup:
    """Return numbers as dots on one scale, with a bar for each interval.

    >>> "whisker" in error_bars("People", [IntervalEstimate("F", 90, 80, 100), IntervalEstimate("M", 70, 60, 80)])
    True
    """
    low = min(0.0, *(min(estimate.value, *estimate.ends) for estimate in estimates))
    high = max(0.0, *(max(estimate.value, *estimate.ends) for estimate in estimates))
    low, high = -rounded_up(-low) if low < 0 else 0.0, rounded_up(high) if high > 0 else 0.0
    high = high if high > low else low + 1.0
    tall = _ABOVE + _ROW * len(estimates)

    def across(value: float) -> str:
        return f"{_ESTIMATE_LEFT + _ESTIMATE_WIDE * (value - low) / (high - low):.2f}%"

    parts = [part for value in _scale(low, high) for part in _tick(across(value), f"{value:,.6g}", tall)]
    for place, estimate in enumerate(estimates):
        middle = _ABOVE + _ROW * place + _ROW / 2
        name = _short(estimate.name, _ESTIMATE_LONG)
        parts.append(tag("text", name, x=f"{_ESTIMATE_NAME}%", y=middle + 4, class_="end"))
        start, end = map(across, estimate.ends)
        if estimate.low is not None and estimate.high is not None:
            parts += [tag("line", x1=start, x2=end, y1=middle, y2=middle, class_="whisker")]
            parts += [tag("line", x1=x, x2=x, y1=middle - 5, y2=middle + 5, class_="whisker") for x in (start, end)]
        parts.append(tag("circle", cx=across(estimate.value), cy=middle, r=4, class_="middle"))
    scale = {"data_from": low, "data_to": high, "data_left": _ESTIMATE_LEFT, "data_wide": _ESTIMATE_WIDE}
    return tag("svg", *parts, height=tall + _BELOW, class_="chart", role="img", aria_label=title, **scale)


def _scale(low: float, high: float) -> list[float]:
    above = ticks(high, 4) if high > 0 else [0.0]
    below = [-value for value in ticks(-low, 4) if value] if low < 0 else []
    size = max(high, -low)
    return [value for value in (*below, *above) if value == 0 or abs(value) >= size / 8]


def _tick(x: str, label: str, tall: float) -> tuple[Markup, Markup]:
    line = tag("line", x1=x, x2=x, y1=_ABOVE, y2=tall, class_="grid")
    return line, tag("text", label, x=x, y=tall + 18, class_="mid faint")
