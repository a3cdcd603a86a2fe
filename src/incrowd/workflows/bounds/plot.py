"""Curves in a file: SVG, PNG or one self-contained HTML page that loads nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from incrowd.errors import InvalidParameter, OutputUnavailable

_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 4), (10, 2), (1, 3))
_WIDTH, _HEIGHT = 560, 340


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
