"""Plots: trade-off curves of δ over ε, as SVG or one self-contained HTML page that loads nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from html import escape
from pathlib import Path
from tempfile import NamedTemporaryFile

from incrowd.accounting.suppression.theorems import log_theorem1_delta
from incrowd.core.unit import Adjacency
from incrowd.drawing.plot import NAMESPACE, Curve, Plot
from incrowd.errors import InvalidParameter, OutputUnavailable
from incrowd.workflows.bounds.crowd import CrowdBound, CrowdQuestion, crowd_of
from incrowd.workflows.bounds.safe import SafeBound, SafeQuestion, log_delta_of

_STEPS = 120
_LEAST_WIDTH = 2
_STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:1rem auto;max-width:44rem;"
    "padding:0 1rem}figure{margin:0 0 1rem;max-width:37.5rem}svg{width:100%;height:auto}"
    "td,th{padding:0 1em 0 0;text-align:left}"
)
LogDelta = Callable[[Fraction], float]


def draw(plot: Plot, target: str) -> None:
    """Write the plot; the ending of the file name decides the format, and a reader never sees half a file."""
    path = Path(target)
    suffix = path.suffix.lower()
    if suffix not in {".svg", ".html"}:
        raise InvalidParameter(
            "a plot is written as .svg or .html: give the file such an ending. For a .png or .pdf, convert the .svg, "
            "for example with rsvg-convert or Inkscape, or print the page from a browser."
        )
    content = (plot.svg() if suffix == ".svg" else _page(plot)).encode()
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as beside:
            beside.write(content)
        beside_path = Path(beside.name)
        beside_path.chmod(0o644)
        beside_path.replace(path)
    except OSError as error:
        raise OutputUnavailable("the plot cannot be written there: the folder must exist and be writable.") from error


def _page(plot: Plot) -> str:
    """Return a page with the picture and its numbers as a table; it loads nothing."""
    inline = plot.svg().replace(f' xmlns="{NAMESPACE}"', "", 1)
    power = "1e{:.3f}" if plot.powers_of_ten else "{:.6g}"
    lines = "".join(
        f"<tr><th scope='row'>{escape(curve.title)}<td>{x:.6g}<td>{power.format(y)}"
        for curve in plot.curves
        for x, y in curve.points
    )
    title, heads = escape(plot.title), f"<tr><th>curve<th>{escape(plot.x)}<th>{escape(plot.y)}"
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title>"
        f"<meta name='viewport' content='width=device-width'><style>{_STYLE}</style><figure>{inline}</figure>"
        f"<details><summary>The numbers</summary><table>{heads}{lines}</table></details></html>\n"
    )


def safe_curve(bound: SafeBound) -> Plot:
    """Return δ over ε for these k and rate: the tight bound, and Theorem 1 where it applies."""
    question = SafeQuestion(bound.k, bound.rate, adjacency=bound.adjacency, rows_per_person=bound.rows_per_person)
    grid = epsilon_grid(bound.epsilon)
    curves = [curve("tight", lambda epsilon: log_delta_of(question, epsilon), grid)]
    if bound.adjacency is Adjacency.ADD_REMOVE and bound.rows_per_person == 1:
        curves.append(curve("Theorem 1", lambda epsilon: log_theorem1_delta(bound.k, bound.rate, epsilon), grid))
    title = f"Sampled suppression, k = {bound.k}, rate {bound.rate:.6g}: {bound.unit}"
    return Plot(title, "ε", "δ", tuple(curves), mark=(bound.epsilon, bound.log10_delta))


def crowd_curve(bound: CrowdBound) -> Plot:
    """Return δ over ε for this crowd under its sample."""
    crowd = crowd_of(
        CrowdQuestion(
            bound.k,
            bound.rate,
            bound.crowd_epsilon,
            high_rate=bound.high_rate,
            irregular=bound.irregular,
            max_rate=bound.max_rate,
        )
    )
    curves = (curve("exact worst case", crowd.log_delta, epsilon_grid(bound.epsilon)),)
    title = f"Crowd-blending after sampling, k = {bound.k}, crowd ε = {bound.crowd_epsilon:.6g}, rate {bound.rate:.6g}"
    return Plot(title, "ε", "δ", curves, mark=(bound.epsilon, bound.log10_delta))


def epsilon_grid(around: float) -> tuple[Fraction, ...]:
    """Return evenly spaced ε from 0 to a round number above the requested one.

    >>> [float(epsilon) for epsilon in epsilon_grid(0.5)][-1]
    2.0
    """
    width = max(_LEAST_WIDTH, math.ceil(1.25 * around))
    return tuple(Fraction(width * step, _STEPS) for step in range(_STEPS + 1))


def curve(name: str, log_delta: LogDelta, grid: tuple[Fraction, ...]) -> Curve:
    """Return log₁₀ δ over the grid, without the points where the rule does not apply or δ is 0."""
    points = []
    for epsilon in grid:
        try:
            value = log_delta(epsilon)
        except InvalidParameter:  # below the reach of the theorem
            continue
        if value > -math.inf:
            points.append((float(epsilon), value / math.log(10.0)))
    return Curve(name, tuple(points))
