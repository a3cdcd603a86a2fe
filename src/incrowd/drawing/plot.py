"""Plot: curves over one axis as an SVG file of its own, in light and dark, without a script."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import NamedTuple

from markupsafe import Markup

from incrowd.drawing.markup import joined, tag

NAMESPACE = "http://www.w3.org/2000/svg"
_WIDE, _TALL, _EDGE, _LINE = 480, 260, 14, 22  # at 390 pixels, a text of 14 is still one of 11
_CHARACTER = 7.8  # about as wide as a character of 14 pixels
_SWATCH = 32
_DISPLAYED = 1.25
_LIGHT = ("#0072b2", "#c05000", "#00805e", "#a64d82", "#5b5bd6", "#7d6200", "#3c3c3c")
_DARK = ("#5ab0f0", "#ff9a56", "#3cc79a", "#e28fc0", "#a5a5ff", "#d9b640", "#d0d0d0")
_DASHES = (None, "7 4", "2 3", "9 4 2 4", "4 5", "12 3", "1 4")
_INK, _GRID, _PAPER = "#1b1f24", "#d8dee4", "#ffffff"
_STYLE = Markup("@media (prefers-color-scheme: dark) {{ {} }}").format(
    Markup(" ").join(
        [
            Markup(".plot .paper { fill: #14181d } .plot text { fill: #e8ebef } .plot .grid { stroke: #3a434d }"),
            Markup(".plot .axis, .plot .ink, .plot .guide { stroke: #a5afba } .plot .mark { fill: #e8ebef }"),
            *(Markup(".plot .c{} {{ stroke: {} }}").format(place, color) for place, color in enumerate(_DARK)),
        ]
    )
)


@dataclass(frozen=True)
class Curve:
    """Points (x, y) under one name; y is a base-10 logarithm if the plot says so.

    Color tells names apart; where curves have a `kind`, it decides which are dashed.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    kind: str = ""

    @property
    def title(self) -> str:
        """Name and kind."""
        return f"{self.name} {self.kind}".strip()


@dataclass(frozen=True)
class Plot:
    """Curves over one axis; `powers_of_ten` labels y as 10^y, so that δ may be smaller than any float."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    mark: tuple[float, float] | None = None
    powers_of_ten: bool = True

    @property
    def description(self) -> str:
        """The picture in words, for screen readers."""
        x, y = self._scales
        names = "; ".join(curve.title for curve in self.curves)
        labels = [self.label(value) for value in (y.low, y.high)]
        return f"{self.y} from {labels[0]} to {labels[1]} over {self.x} from {x.low:g} to {x.high:g}. Curves: {names}."

    @property
    def _scales(self) -> tuple[AxisScale, AxisScale]:
        points = [point for curve in self.curves for point in curve.points]
        points += [] if self.mark is None or not math.isfinite(self.mark[1]) else [self.mark]
        return AxisScale.of((x for x, _ in points), 5), AxisScale.of(
            (y for _, y in points), 8, whole=self.powers_of_ten
        )

    def label(self, y: float) -> str:
        """Return the label of a tick of the upward axis."""
        if not self.powers_of_ten:
            return f"{y:g}"
        return f"1e{y:.0f}" if y else "1"

    def svg(self) -> Markup:
        """Return the plot as a whole SVG file.

        >>> "k = 20" in Plot("a curve", "ε", "δ", (Curve("k = 20", ((0.0, -2.0), (1.0, -9.0))),)).svg()
        True
        """
        x, y = self._scales
        heads = wrap(self.title, math.floor((_WIDE - 2 * _EDGE) / (_CHARACTER * 1.05)))
        top = _EDGE + _LINE * (len(heads) + 1) + 12
        left = 2 * _EDGE + _CHARACTER * max(len(self.label(value)) for value in y.ticks)
        frame = _PlotFrame(x, y, left, top)
        below = top + _TALL + 3 * _LINE + 8
        legend, tall = _legend(self.curves, below)
        parts = [
            tag("title", self.title, id="plot-title"),
            tag("desc", self.description, id="plot-description"),
            tag("style", _STYLE),
            tag("rect", width=_WIDE, height=tall, fill=_PAPER, class_="paper"),
            *(_text(line, _EDGE, _EDGE + 14 + _LINE * place, weight=600) for place, line in enumerate(heads)),
            _text(self.y, _EDGE, top - 14, weight=600),
            *frame.axes(self),
            *(_line(frame, curve, look) for curve, look in zip(self.curves, looks(self.curves), strict=True)),
            *(() if self.mark is None or not math.isfinite(self.mark[1]) else frame.spot(self.mark)),
            *legend,
        ]
        about = {"role": "img", "aria_labelledby": "plot-title plot-description", "class_": "plot", "font_size": 14}
        size = {"width": _WIDE * _DISPLAYED, "height": tall * _DISPLAYED, "viewBox": f"0 0 {_WIDE} {tall}"}
        family = {"font_family": "system-ui, -apple-system, 'Segoe UI', sans-serif", "fill": _INK}
        return tag("svg", *parts, xmlns=NAMESPACE, **size, **about, **family)


class AxisScale(NamedTuple):
    """An axis between two round numbers, and the round numbers on it."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float], most: int, *, whole: bool = False) -> AxisScale:
        """Return the axis that holds some values, with not many more ticks than `most`.

        >>> AxisScale.of([0.1, 1.9], 5)
        AxisScale(low=0.0, high=2.0, ticks=(0.0, 0.5, 1.0, 1.5, 2.0))
        >>> AxisScale.of([-18.6, -2], 8, whole=True).ticks
        (-20.0, -15.0, -10.0, -5.0, 0.0)
        """
        numbers = [*values] or [0.0]
        low, high = min(numbers), max(numbers)
        if high - low < 1e-9 * max(1.0, abs(low)):  # too close to distinguish in a picture
            high = low + max(1.0, abs(low))
        size = 10.0 ** math.floor(math.log10((high - low) / most))
        step = next(factor * size for factor in (1, 2, 5, 10) if (high - low) / (factor * size) <= most)
        step = max(1.0, step) if whole else step
        places = range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)
        ticks = tuple(round(place * step, 12) for place in places)
        return cls(ticks[0], ticks[-1], ticks)


class LineStyle(NamedTuple):
    """How a line looks: the place of its color, None for ink; and its dashes."""

    color: int | None
    dashes: str | None

    @property
    def attributes(self) -> dict[str, object]:
        """The look as attributes of a line."""
        stroke = _INK if self.color is None else _LIGHT[self.color]
        name = "ink" if self.color is None else f"c{self.color}"
        return {"stroke": stroke, "stroke_dasharray": self.dashes, "class_": name, "stroke_width": 2, "fill": "none"}


def looks(curves: tuple[Curve, ...]) -> list[LineStyle]:
    """Return the style of each curve: a color by its name, dashes by its kind, or by its name if it has none.

    >>> [look.color for look in looks((Curve("k = 5", (), "tight"), Curve("k = 5", (), "Theorem 1")))]
    [0, 0]
    """
    names = list(dict.fromkeys(curve.name for curve in curves))
    kinds = list(dict.fromkeys(curve.kind or curve.name for curve in curves))
    return [
        LineStyle(names.index(curve.name) % len(_LIGHT), _DASHES[kinds.index(curve.kind or curve.name) % len(_DASHES)])
        for curve in curves
    ]


@dataclass(frozen=True)
class _PlotFrame:
    """The places of values in the picture, in its own units."""

    x: AxisScale
    y: AxisScale
    left: float
    top: float

    def at(self, point: tuple[float, float]) -> tuple[float, float]:
        """Return the place of a point."""
        wide = _WIDE - self.left - 1.5 * _EDGE
        across = self.left + wide * (point[0] - self.x.low) / (self.x.high - self.x.low)
        return round(across, 1), round(self.top + _TALL * (self.y.high - point[1]) / (self.y.high - self.y.low), 1)

    def axes(self, plot: Plot) -> Iterator[Markup]:
        """Yield grid, ticks, labels, and the name of the axis across."""
        right, bottom = self.at((self.x.high, self.y.low))
        for value in self.y.ticks:
            height = self.at((self.x.low, value))[1]
            yield tag("line", x1=self.left, x2=right, y1=height, y2=height, stroke=_GRID, class_="grid")
            yield _text(plot.label(value), self.left - 8, height + 5, anchor="end")
        for value in self.x.ticks:
            place = self.at((value, self.y.low))[0]
            yield tag("line", x1=place, x2=place, y1=bottom, y2=bottom + 5, stroke=_INK, class_="axis")
            yield _text(f"{value:g}", place, bottom + _LINE, anchor="middle")
        yield tag("line", x1=self.left, x2=right, y1=bottom, y2=bottom, stroke=_INK, class_="axis")
        yield _text(plot.x, (self.left + right) / 2, bottom + 2 * _LINE, anchor="middle", weight=600)

    def spot(self, point: tuple[float, float]) -> Iterator[Markup]:
        """Yield a dot at a point, with lines to both axes."""
        x, y = self.at(point)
        bottom = self.at((self.x.low, self.y.low))[1]
        dashed = {"stroke": _INK, "stroke_dasharray": "3 4", "class_": "guide"}
        yield tag("line", x1=self.left, x2=x, y1=y, y2=y, **dashed)
        yield tag("line", x1=x, x2=x, y1=y, y2=bottom, **dashed)
        yield tag("circle", cx=x, cy=y, r=5, class_="mark")


def _line(frame: _PlotFrame, curve: Curve, look: LineStyle) -> Markup:
    places = " ".join(f"{x},{y}" for x, y in map(frame.at, curve.points))
    return tag("polyline", points=places, stroke_linejoin="round", **look.attributes)


def _legend(curves: tuple[Curve, ...], top: float) -> tuple[list[Markup], float]:
    """Return the legend, names before kinds, and where the picture ends."""
    styles = list(zip(curves, looks(curves), strict=True))
    kinds = {curve.kind: LineStyle(None, look.dashes) for curve, look in styles if curve.kind}
    names = {curve.name: LineStyle(look.color, None) if curve.kind else look for curve, look in styles}
    parts: list[Markup] = []
    for group in filter(None, (names, kinds)):
        room = _SWATCH + _CHARACTER * max(map(len, group)) + 2 * _EDGE
        columns = max(1, math.floor((_WIDE - _EDGE) / room))
        for place, (name, look) in enumerate(group.items()):
            x, y = _EDGE + room * (place % columns), top + _LINE * (place // columns)
            parts += [tag("line", x1=x, x2=x + _SWATCH - 8, y1=y - 5, y2=y - 5, **look.attributes)]
            parts += [_text(name, x + _SWATCH, y)]
        top += _LINE * math.ceil(len(group) / columns)
    return [joined(parts)], top - _LINE + _EDGE


def _text(content: str, x: float, y: float, anchor: str | None = None, weight: int | None = None) -> Markup:
    return tag("text", content, x=round(x, 1), y=round(y, 1), text_anchor=anchor, font_weight=weight)
