"""Axes: where values lie in a picture that is as wide as the page; text keeps its size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from incrowd.drawing.markup import tag

TALL, TOP, LEFT, WIDE = 230, 30, 13.0, 81.0
_ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)


@dataclass(frozen=True)
class Area:
    """The part of a picture in which values are drawn: x in percent of the width, y in pixels."""

    low: float
    high: float
    bottom: float
    top: float

    def x(self, value: float) -> str:
        """Return where a value lies across, in percent."""
        return f"{LEFT + WIDE * (value - self.low) / (self.high - self.low):.2f}%"

    def y(self, value: float) -> float:
        """Return where a value lies from above, in pixels."""
        return round(TOP + TALL * (self.top - value) / (self.top - self.bottom), 1)

    def across(self, values: Sequence[float], labels: Sequence[str], below: Sequence[str] = ()) -> list[Markup]:
        """Return labels under the picture, in one line or two."""
        drawn = [
            tag("text", label, x=self.x(value), y=TOP + TALL + 18, class_="mid")
            for value, label in zip(values, labels, strict=True)
        ]
        drawn += [
            tag("text", label, x=self.x(value), y=TOP + TALL + 34, class_="mid faint")
            for value, label in zip(values, below, strict=False)
        ]
        return drawn

    def upward(self, values: Sequence[float], labels: Sequence[str]) -> list[Markup]:
        """Return labels to the left of the picture, each with a line through it."""
        drawn = []
        for value, label in zip(values, labels, strict=True):
            height = self.y(value)
            drawn.append(tag("line", x1=f"{LEFT}%", x2=f"{LEFT + WIDE}%", y1=height, y2=height, class_="grid"))
            drawn.append(tag("text", label, x=f"{LEFT - 1}%", y=height + 4, class_="end"))
        return drawn


def titles(across: str, upward: str) -> list[Markup]:
    """Return the names of the axes."""
    return [
        tag("text", across, x=f"{LEFT + WIDE}%", y=TOP + TALL + 52, class_="end strong"),
        tag("text", upward, x="0", y=13, class_="strong"),
    ]


def picture(title: str, *parts: Markup) -> Markup:
    """Return a whole picture under a title that is read aloud."""
    return tag("svg", *parts, height=TALL + TOP + 60, class_="chart", role="img", aria_label=title)


def rounded_up(value: float) -> float:
    """Return a round number that is not below a positive value.

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
    step = next(each * size for each in (1, 2, 5, 10) if high / (each * size) <= most)
    return [round(place * step, 12) for place in range(int(high / step + 1e-9) + 1)]
