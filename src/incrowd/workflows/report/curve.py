"""Curve: δ over ε as the tightest accountant gives it, with the guaranteed point."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from markupsafe import Markup

from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Crowd, Grouped, Sequence, walk
from incrowd.core.unit import Adjacency
from incrowd.core.words import short_up, times_up
from incrowd.drawing.charts import LEFT, TALL, TOP, WIDE, Area, picture, rounded_up, ticks, titles
from incrowd.drawing.markup import figure, table, tag
from incrowd.errors import IncrowdError
from incrowd.workflows.bounds.odds import Odds

_STEPS = 48
_COMPOSED_STEPS = 16  # each point of a composed loss is composed anew
_ROWS = 16


class CurvePoint(NamedTuple):
    """An ε, and the δ that holds there."""

    epsilon: float
    delta: float

    @property
    def power(self) -> float:
        """The base-10 logarithm of δ."""
        return math.log10(self.delta)


def loss_curve(guarantee: Guarantee, odds: Odds) -> Markup | None:
    """Return the chart of δ over ε with the guaranteed point; None where no accountant gives such a curve."""
    points = curve(guarantee, odds) if odds.bounded and odds.delta else ()
    if len(points) < 2:
        return None
    guaranteed = CurvePoint(float(odds.epsilon), float(odds.delta))
    area = Area(0.0, points[-1].epsilon, min(math.floor(1.5 * guaranteed.power), math.floor(guaranteed.power) - 1), 0.0)
    across, powers = ticks(area.high, 5), ticks(-area.bottom, 6)
    axes = [
        *area.across(across, [f"{x:g}" for x in across], [f"×{times_up(f'{x:g}')}" for x in across]),
        *area.upward([-power for power in powers], [f"1e-{power:g}" if power else "1" for power in powers]),
        *titles("ε, and the factor on the odds", "δ"),
    ]
    caption = (
        "Every point of the line holds at once: at a smaller ε the chance of failure δ is larger, and the reverse. "
        f"The dot is what was guaranteed and charged ({odds.numbers})."
    )
    rows = [
        [f"{point.epsilon:.3g}", times_up(repr(point.epsilon)), short_up(Decimal(point.delta), 3)]
        for point in points[:: math.ceil(len(points) / _ROWS)]
    ]
    drawing = picture(
        f"δ falls as ε grows. Guaranteed: {odds.numbers}", *axes, _line(points, area), *_mark(guaranteed, area)
    )
    return figure(drawing, caption, table("δ over ε", ["ε", "Factor e^ε", "δ at most"], rows))


@lru_cache(maxsize=64)
def curve(guarantee: Guarantee, odds: Odds) -> tuple[CurvePoint, ...]:
    """Return the curve from ε = 0 to twice the guaranteed one, as the tightest accountant gives it.

    >>> from fractions import Fraction
    >>> from incrowd.core.loss import Crowd, Sampled
    >>> from incrowd.core.unit import Unit
    >>> guarantee = Guarantee(Sampled(Fraction(1, 10), Crowd(20)), Unit(), "the tight curve", delta=Fraction(1, 10**9))
    >>> points = curve(guarantee, Odds(Decimal("0.5"), Decimal("1e-9")))
    >>> f"{points[24].epsilon:g} {points[24].delta:.2e}"
    '0.5 2.63e-11'
    """
    from incrowd.accounting import accountant

    width, points = rounded_up(max(2.0 * float(odds.epsilon), 0.2)), []
    replaced = guarantee.unit.adjacency is Adjacency.REPLACE
    composed = isinstance(guarantee.loss, Sequence)
    if composed and any(isinstance(part, Crowd if replaced else Grouped) for part in walk(guarantee.loss)):
        return ()  # each point would take seconds
    steps = _COMPOSED_STEPS if composed else _STEPS
    for step in range(steps + 1):
        epsilon = width * step / steps
        try:
            delta = accountant.delta(guarantee.loss, repr(epsilon), guarantee.unit.adjacency).value
        except IncrowdError:
            return ()
        if delta > 0.0:
            points.append(CurvePoint(epsilon, delta))
    return tuple(points)


def _line(points: tuple[CurvePoint, ...], area: Area) -> Markup:
    """Return the curve in a picture of its own, which stretches while the stroke does not."""
    path = " ".join(f"{1000 * p.epsilon / area.high:.1f},{1000 * p.power / area.bottom:.1f}" for p in points)
    return tag(
        "svg",
        tag("polyline", points=path, class_="curve", vector_effect="non-scaling-stroke"),
        x=f"{LEFT}%",
        y=TOP,
        width=f"{WIDE}%",
        height=TALL,
        viewBox="0 0 1000 1000",
        preserveAspectRatio="none",
    )


def _mark(guaranteed: CurvePoint, area: Area) -> list[Markup]:
    x, y = area.x(guaranteed.epsilon), area.y(guaranteed.power)
    return [
        tag("line", x1=x, x2=x, y1=y, y2=TOP + TALL, class_="guide"),
        tag("line", x1=f"{LEFT}%", x2=x, y1=y, y2=y, class_="guide"),
        tag("circle", cx=x, cy=y, r=6, class_="mark"),
        tag("text", "guaranteed", x=x, y=y - 10, dx=8, class_="strong"),
    ]
