"""Intervals: numbers with their error bars, one a line, as a picture with its numbers beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from incrowd.drawing.charts import rounded_up, ticks
from incrowd.drawing.markup import tag

_LINE, _TOP, _BELOW = 26, 8, 26
_NAME, _LEFT, _WIDE = 30.0, 32.0, 62.0
_LONG = 28


@dataclass(frozen=True)
class Estimated:
    """A name, its number, and the ends of its interval where it has one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The interval as far as it is finite, or the number itself."""
        low, high = (self.value if end is None or not math.isfinite(end) else end for end in (self.low, self.high))
        return low, high


def error_bars(title: str, shown: Sequence[Estimated]) -> Markup:
    """Return numbers as dots on one scale, each with a bar from end to end of its interval.

    >>> "whisker" in error_bars("People", [Estimated("F", 90, 80, 100), Estimated("M", 70, 60, 80)])
    True
    """
    low = min(0.0, *(min(each.value, *each.ends) for each in shown))
    high = max(0.0, *(max(each.value, *each.ends) for each in shown))
    low, high = -rounded_up(-low) if low < 0 else 0.0, rounded_up(high) if high > 0 else 0.0
    high = high if high > low else low + 1.0
    tall = _TOP + _LINE * len(shown)

    def across(value: float) -> str:
        return f"{_LEFT + _WIDE * (value - low) / (high - low):.2f}%"

    drawn = [part for value in _scale(low, high) for part in _tick(across(value), f"{value:,.6g}", tall)]
    for place, each in enumerate(shown):
        middle = _TOP + _LINE * place + _LINE / 2
        name = each.name if len(each.name) <= _LONG else f"{each.name[: _LONG - 1]}…"
        drawn.append(tag("text", name, x=f"{_NAME}%", y=middle + 4, class_="end"))
        start, end = map(across, each.ends)
        if each.low is not None and each.high is not None:
            drawn += [tag("line", x1=start, x2=end, y1=middle, y2=middle, class_="whisker")]
            drawn += [tag("line", x1=x, x2=x, y1=middle - 5, y2=middle + 5, class_="whisker") for x in (start, end)]
        drawn.append(tag("circle", cx=across(each.value), cy=middle, r=4, class_="middle"))
    told = {"data_from": low, "data_to": high, "data_left": _LEFT, "data_wide": _WIDE}
    return tag("svg", *drawn, height=tall + _BELOW, class_="chart", role="img", aria_label=title, **told)


def _scale(low: float, high: float) -> list[float]:
    above = ticks(high, 4) if high > 0 else [0.0]
    below = [-value for value in ticks(-low, 4) if value] if low < 0 else []
    size = max(high, -low)
    return [value for value in (*below, *above) if value == 0 or abs(value) >= size / 8]


def _tick(x: str, label: str, tall: float) -> tuple[Markup, Markup]:
    line = tag("line", x1=x, x2=x, y1=_TOP, y2=tall, class_="grid")
    return line, tag("text", label, x=x, y=tall + 18, class_="mid faint")
