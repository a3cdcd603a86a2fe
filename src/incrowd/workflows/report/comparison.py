"""Comparison: each column before and after, for the data holder's eyes only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from incrowd.core.counts import Counts
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.workflows.report.charts import class_sizes
from incrowd.workflows.report.markup import Html, figure, section, table, tag

_MOST_CLASSES = 24
_BEFORE, _AFTER = "before", "after"
_COLORS = ["#8c96a0", "#2f7fd1"]
_MISSING = "(missing)"
_REST = "(all others)"


@dataclass(frozen=True)
class Share:
    """The part of all rows that lies in a class, before and after."""

    label: str
    before: float
    after: float


def comparison_section(released: Counts, original: Counts, rate: Fraction) -> Html:
    """Return what became of the rows: totals, sizes of classes, and every column before and after.

    `rate` is that of the secret sample, 1 if every row was read.
    """
    if released.names != original.names:
        raise InvalidParameter("the original must be counted over the released columns, in their order.")
    columns = [tag("div", _column(name, shares_of(released, original, name))) for name in released.names]
    return section(
        "comparison",
        "Before and after",
        tag("p", "From the original rows, recoded like the released ones. ", tag("strong", "Nothing here may leave.")),
        _totals(released, original, rate),
        tag("div", class_sizes(original, "original rows") or "", class_="sizes"),
        tag("div", *columns, class_="pair"),
    )


def shares_of(released: Counts, original: Counts, name: str) -> tuple[Share, ...]:
    """Return the classes of a column in order; of many, the largest ones, and the others together."""
    before, after = _marginal(original, name), _marginal(released, name)
    shares = [Share(label, before.get(label, 0.0), after.get(label, 0.0)) for label in before | after]
    if len(shares) <= _MOST_CLASSES:
        return tuple(shares)
    largest = sorted(shares, key=lambda share: max(share.before, share.after), reverse=True)[: _MOST_CLASSES - 1]
    kept = set(map(id, largest))
    rest = [share for share in shares if id(share) not in kept]
    others = Share(_REST, sum(share.before for share in rest), sum(share.after for share in rest))
    return (*(share for share in shares if id(share) in kept), others)


def distance(shares: tuple[Share, ...]) -> float:
    """Return the total variation distance: the part of the rows that would have to change class.

    >>> distance((Share("F", 0.5, 0.6), Share("M", 0.5, 0.4)))
    0.1
    """
    return round(sum(abs(share.before - share.after) for share in shares) / 2.0, 12)


def _marginal(counts: Counts, name: str) -> dict[str, float]:
    one = counts.marginal([name])
    labels = [_MISSING if label is None else str(label) for label in one.classes[0].labels().to_pylist()]
    total = max(1, one.total)
    return {labels[code]: int(n) / total for code, n in zip(one.codes()[0], one.counts, strict=True)}


def _totals(released: Counts, original: Counts, rate: Fraction) -> Html:
    kept = released.total / max(1, original.total)
    single = int(np.count_nonzero(original.counts == 1))
    rows = [
        ["Rows", f"{original.total:,}", f"{released.total:,}"],
        ["Different combinations of values", f"{len(original):,}", f"{len(released):,}"],
        ["Combinations that occur once", f"{single:,}", f"{int(np.count_nonzero(released.counts == 1)):,}"],
        ["Share of the rows that was released", "", f"{100 * kept:.2f} %"],
        ["Share that a sample draws on average", "", f"{100 * float(rate):.2f} %"],
        ["Share of the sample that was too rare, about", "", f"{100 * max(0.0, 1.0 - kept / float(rate)):.1f} %"],
    ]
    return table("Rows before and after", ["", "Original, recoded", "Released"], rows)


def _column(name: str, shares: tuple[Share, ...]) -> Html:
    moved = f"{100 * distance(shares):.1f} %"
    drawing = tag("div", _drawn(name, shares), class_="drawn", role="img", aria_label=f"{name} before and after")
    rows = [[share.label, f"{100 * share.before:.2f} %", f"{100 * share.after:.2f} %"] for share in shares]
    numbers = table(f"Shares of {name}", ["Class", "Before", "After"], rows)
    caption = (
        f"{name}: {counted(len(shares), 'class')}; {moved} of the released rows would have to change class to match."
    )
    return figure(drawing, caption, numbers)


def _drawn(name: str, shares: tuple[Share, ...]) -> Html:
    """Return the chart, drawn in this process; its ink is the page's, so that it can be read in the dark."""
    import vl_convert

    svg = str(vl_convert.vegalite_to_svg(specification(name, shares)))
    return Html(re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg))


def specification(name: str, shares: tuple[Share, ...]) -> dict[str, Any]:
    """Return the chart of a column as a Vega-Lite specification that holds its own data."""
    import altair as alt

    sides = ((_BEFORE, "before"), (_AFTER, "after"))
    rows = [
        {"class": share.label, "share": getattr(share, field), "rows": side}
        for share in shares
        for side, field in sides
    ]
    order = [share.label for share in shares]
    color = alt.Scale(domain=[_BEFORE, _AFTER], range=_COLORS)
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("share:Q", title=None, axis=alt.Axis(format="%", tickCount=4)),
            y=alt.Y("class:N", title=None, sort=order),
            yOffset=alt.YOffset("rows:N", sort=[_BEFORE, _AFTER]),
            color=alt.Color(
                "rows:N",
                title=None,
                sort=[_BEFORE, _AFTER],
                scale=color,
                legend=alt.Legend(orient="top", labelFontSize=12),
            ),
        )
        .properties(width=300, height=alt.Step(10), title=alt.TitleParams(name, anchor="start"))
    )
    ink = {"labelColor": "currentColor", "titleColor": "currentColor"}
    plain: dict[str, Any] = (
        chart.configure(
            background="transparent", font="sans-serif", padding={"left": 16, "top": 5, "right": 5, "bottom": 5}
        )
        .configure_axis(**ink, labelFontSize=12, gridColor="#88888855", domainColor="#888888", tickColor="#888888")
        .configure_legend(**ink)
        .configure_title(color="currentColor")
        .configure_view(stroke=None)
        .to_dict()
    )
    return plain
