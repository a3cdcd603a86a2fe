"""Plots: trade-off curves of δ over ε, as SVG, PNG or one self-contained HTML page that loads nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from incrowd.accounting.suppression.theorems import log_theorem1_delta
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter, OutputUnavailable
from incrowd.workflows.bounds.crowd import CrowdBound, CrowdQuestion, crowd_of
from incrowd.workflows.bounds.safe import SafeBound, SafeQuestion, log_delta_of

_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 4), (10, 2), (1, 3))
_WIDTH, _HEIGHT = 560, 340
_STEPS = 120
_LEAST_WIDTH = 2
LogDelta = Callable[[Fraction], float]


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


def draw(plot: Plot, target: str) -> None:
    """Write the plot; the ending of the file name decides the format, and a reader never sees half a file."""
    path = Path(target)
    suffix = path.suffix.lower()
    if suffix not in {".svg", ".png", ".html"}:
        raise InvalidParameter("a plot is written as .svg, .png or .html: give the file such an ending.")
    content = _rendered(plot, suffix)
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as beside:
            beside.write(content)
        beside_path = Path(beside.name)
        beside_path.chmod(0o644)
        beside_path.replace(path)
    except OSError as error:
        raise OutputUnavailable("the plot cannot be written there: the folder must exist and be writable.") from error


def specification(plot: Plot) -> dict[str, Any]:
    """Return the plot as a Vega-Lite specification.

    >>> curve = Curve("k = 20", ((0.0, -2.0), (1.0, -9.0)))
    >>> specification(Plot("a curve", "ε", "δ", (curve,)))["title"]["text"]
    'a curve'
    """
    import altair as alt

    rows = [
        {"x": x, "y": y, "curve": curve.name, "kind": curve.kind or curve.name}
        for curve in plot.curves
        for x, y in curve.points
    ]
    names = list(dict.fromkeys(curve.name for curve in plot.curves))
    kinds = list(dict.fromkeys(curve.kind or curve.name for curve in plot.curves))
    colors = alt.Scale(domain=names, range=[_COLORS[index % len(_COLORS)] for index in range(len(names))])
    dashes = alt.Scale(domain=kinds, range=[list(_DASHES[index % len(_DASHES)]) for index in range(len(kinds))])
    powers = alt.Axis(labelExpr="'1e' + format(datum.value, 'd')", tickMinStep=1)
    scale = alt.Scale(zero=False, nice=True)
    encoding = {
        "x": alt.X("x:Q", title=plot.x, scale=scale),
        "y": alt.Y("y:Q", title=plot.y, scale=scale, axis=powers if plot.powers_of_ten else alt.Axis()),
    }
    lines = alt.Chart(alt.Data(values=rows)).mark_line(strokeWidth=2)
    layers = [
        lines.encode(
            **encoding,
            color=alt.Color("curve:N", title=None, sort=names, scale=colors),
            strokeDash=alt.StrokeDash("kind:N", title=None, sort=kinds, scale=dashes),
        )
    ]
    if plot.mark is not None:
        spot = alt.Chart(alt.Data(values=[{"x": plot.mark[0], "y": plot.mark[1]}]))
        layers.append(spot.mark_point(size=90, filled=True, color="#000000").encode(**encoding))
    title = alt.TitleParams(plot.title, anchor="start", fontSize=13)
    chart = alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, title=title, background="white")
    plain: dict[str, Any] = chart.to_dict()
    return plain


def _rendered(plot: Plot, suffix: str) -> bytes:
    import vl_convert

    plain = specification(plot)
    if suffix == ".png":
        return bytes(vl_convert.vegalite_to_png(plain, scale=2))
    picture = str(vl_convert.vegalite_to_svg(plain))
    return (picture if suffix == ".svg" else _page(plot, picture)).encode()


def _page(plot: Plot, picture: str) -> str:
    """Return a page with the picture and, for those who do not see it, its numbers; it refers to nothing outside."""
    inline = re.sub(r' xmlns(:xlink)?="[^"]*"', "", picture, count=2)
    power = "1e{:.3f}" if plot.powers_of_ten else "{:.6g}"
    lines = "".join(
        f"<tr><th scope='row'>{escape(curve.title)}<td>{x:.6g}<td>{power.format(y)}"
        for curve in plot.curves
        for x, y in curve.points
    )
    title, heads = escape(plot.title), f"<tr><th>curve<th>{escape(plot.x)}<th>{escape(plot.y)}"
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title>"
        "<style>body{font:15px system-ui,sans-serif;margin:2em}td,th{padding:0 1em 0 0;text-align:left}</style>"
        f"<figure role='img' aria-label='{title}'>{inline}</figure>"
        f"<details><summary>The numbers</summary><table>{heads}{lines}</table></details></html>\n"
    )


def safe_curve(found: SafeBound) -> Plot:
    """Return δ over ε for these k and rate: the tight curve, and Theorem 1 where it speaks."""
    question = SafeQuestion(found.k, found.rate, adjacency=found.adjacency, rows_per_person=found.rows_per_person)
    grid = epsilon_grid(found.epsilon)
    curves = [curve("tight", lambda epsilon: log_delta_of(question, epsilon), grid)]
    if found.adjacency is Adjacency.ADD_REMOVE and found.rows_per_person == 1:
        curves.append(curve("Theorem 1", lambda epsilon: log_theorem1_delta(found.k, found.rate, epsilon), grid))
    title = f"Sampled suppression, k = {found.k}, rate {found.rate:.6g}: {found.unit}"
    return Plot(title, "ε", "δ", tuple(curves), mark=(found.epsilon, found.log10_delta))


def crowd_curve(found: CrowdBound) -> Plot:
    """Return δ over ε for this crowd under its sample."""
    crowd = crowd_of(
        CrowdQuestion(
            found.k,
            found.rate,
            found.crowd_epsilon,
            high_rate=found.high_rate,
            irregular=found.irregular,
            max_rate=found.max_rate,
        )
    )
    curves = (curve("exact worst case", crowd.log_delta, epsilon_grid(found.epsilon)),)
    title = f"Crowd-blending after sampling, k = {found.k}, crowd ε = {found.crowd_epsilon:.6g}, rate {found.rate:.6g}"
    return Plot(title, "ε", "δ", curves, mark=(found.epsilon, found.log10_delta))


def epsilon_grid(around: float) -> tuple[Fraction, ...]:
    """Return evenly spaced ε from 0 to a round number that holds what was asked for.

    >>> [float(epsilon) for epsilon in epsilon_grid(0.5)][-1]
    2.0
    """
    width = max(_LEAST_WIDTH, math.ceil(1.25 * around))
    return tuple(Fraction(width * step, _STEPS) for step in range(_STEPS + 1))


def curve(name: str, log_delta: LogDelta, grid: tuple[Fraction, ...]) -> Curve:
    """Return log₁₀ δ over the grid, without the points at which the rule says nothing or δ is 0."""
    points = []
    for epsilon in grid:
        try:
            value = log_delta(epsilon)
        except InvalidParameter:  # below the reach of the theorem
            continue
        if value > -math.inf:
            points.append((float(epsilon), value / math.log(10.0)))
    return Curve(name, tuple(points))
