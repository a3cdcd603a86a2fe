"""Bars: names and their counts, one below the other; full where a count is exact, pale where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from incrowd.drawing.markup import tag

_LINE = 22
_NAME, _WIDE = 38.0, 50.0  # percent of the width: where bars start, and how long the longest is
_LONG = 40


@dataclass(frozen=True)
class Bar:
    """A name, its count, and whether that is exact."""

    name: str
    count: int
    exact: bool


def bars(title: str, shown: Sequence[Bar]) -> Markup:
    """Return bars as a picture under a title that is read aloud."""
    longest = max(1, *(bar.count for bar in shown))
    drawn = [part for place, bar in enumerate(shown) for part in _bar(bar, place * _LINE, longest)]
    return tag("svg", *drawn, height=_LINE * len(shown) + 4, class_="chart", role="img", aria_label=title)


def _bar(bar: Bar, top: int, longest: int) -> tuple[Markup, ...]:
    width = _WIDE * max(0, bar.count) / longest
    name = bar.name if len(bar.name) <= _LONG else f"{bar.name[: _LONG - 1]}…"
    look = {"y": top + 3, "width": f"{width:.2f}%", "height": _LINE - 6, "class_": "bar" if bar.exact else "bar noisy"}
    return (
        tag("text", name, x=f"{_NAME - 1}%", y=top + 15, class_="end"),
        tag("rect", x=f"{_NAME}%", **look),
        tag("text", f"{bar.count:,}", x=f"{_NAME + width + 0.7:.2f}%", y=top + 15, class_="faint"),
    )
