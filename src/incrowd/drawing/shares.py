"""Shares: a column before and after, as bars beside each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from incrowd.core.words import counted
from incrowd.drawing.markup import figure, table, tag

_BEFORE, _AFTER = "before", "after"
_COLORS = ["#8c96a0", "#2f7fd1"]


@dataclass(frozen=True)
class Share:
    """The part of all rows that lies in a class, before and after."""

    label: str
    before: float
    after: float


def distance(shares: tuple[Share, ...]) -> float:
    """Return the total variation distance: the part of the rows that would have to change class.

    >>> distance((Share("F", 0.5, 0.6), Share("M", 0.5, 0.4)))
    0.1
    """
    return round(sum(abs(share.before - share.after) for share in shares) / 2.0, 12)


def share_bars(name: str, shares: tuple[Share, ...]) -> Markup:
    """Return a column before and after, with its numbers."""
    drawing = tag("div", _drawn(name, shares), class_="drawn", role="img", aria_label=f"{name} before and after")
    rows = [[share.label, f"{100 * share.before:.2f} %", f"{100 * share.after:.2f} %"] for share in shares]
    numbers = table(f"Shares of {name}", ["Class", "Before", "After"], rows)
    moved = f"{100 * distance(shares):.1f} % of the released rows would have to change class to match."
    return figure(drawing, f"{name}: {counted(len(shares), 'class')}; {moved}", numbers)


def _drawn(name: str, shares: tuple[Share, ...]) -> Markup:
    """Return the chart, drawn in this process; its ink is the page's, so that it can be read in the dark."""
    import vl_convert

    svg = str(vl_convert.vegalite_to_svg(specification(name, shares)))
    return Markup(re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg))  # noqa: S704 - Vega escapes the texts of its SVG


def specification(name: str, shares: tuple[Share, ...]) -> dict[str, Any]:
    """Return the chart of a column as a Vega-Lite specification that holds its own data."""
    import altair as alt

    sides = [_BEFORE, _AFTER]
    rows = [{"class": each.label, "share": getattr(each, side), "rows": side} for each in shares for side in sides]
    color = alt.Color(
        "rows:N",
        title=None,
        sort=sides,
        scale=alt.Scale(domain=sides, range=_COLORS),
        legend=alt.Legend(orient="top", labelFontSize=12),
    )
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("share:Q", title=None, axis=alt.Axis(format="%", tickCount=4)),
            y=alt.Y("class:N", title=None, sort=[share.label for share in shares]),
            yOffset=alt.YOffset("rows:N", sort=sides),
            color=color,
        )
        .properties(width=300, height=alt.Step(10), title=alt.TitleParams(name, anchor="start"))
    )
    ink = {"labelColor": "currentColor", "titleColor": "currentColor"}
    around = {"left": 16, "top": 5, "right": 5, "bottom": 5}
    plain: dict[str, Any] = (
        chart.configure(background="transparent", font="sans-serif", padding=around)
        .configure_axis(**ink, labelFontSize=12, gridColor="#88888855", domainColor="#888888", tickColor="#888888")
        .configure_legend(**ink)
        .configure_title(color="currentColor")
        .configure_view(stroke=None)
        .to_dict()
    )
    return plain
