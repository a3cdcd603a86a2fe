"""Frontier: candidate releases of one table on a map of risk and loss, and which of them nobody should pass over.

A candidate is *on the frontier* if no other has less of one and no more of the other.  Which of these to take is a
choice of people: the map only shows which ones need not be discussed.

Source: Duncan, Keller-McNulty & Stokes 2001, the risk–utility map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from incrowd.drawing.charts import Area, picture, rounded_up, ticks, titles
from incrowd.drawing.markup import figure, table, tag


@dataclass(frozen=True)
class MappedRelease:
    """A release by name, with its risk and what it lost; None where that is not known."""

    name: str
    risk: float | None
    loss: float | None


@dataclass(frozen=True)
class Placed:
    """A candidate that has a place on the map, and whether it is on the frontier."""

    name: str
    risk: float
    loss: float
    best: bool


def placed(candidates: Sequence[MappedRelease]) -> tuple[Placed, ...]:
    """Return the candidates that have a place on the map, the least risky first.

    >>> places = [("a", 0.1, 0.5), ("b", 0.2, 0.4), ("c", 0.2, 0.6), ("d", None, 0.1)]
    >>> some = [MappedRelease(*each) for each in places]
    >>> [each.name for each in placed(some) if each.best]
    ['a', 'b']
    """
    known = [
        (each.name, each.risk, each.loss) for each in candidates if each.risk is not None and each.loss is not None
    ]
    found = [
        Placed(name, risk, loss, not any(_beats((r, lost), (risk, loss)) for _, r, lost in known))
        for name, risk, loss in known
    ]
    return tuple(sorted(found, key=lambda each: (each.risk, each.loss, each.name)))


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def risk_utility_map(candidates: Sequence[MappedRelease], risk: str, loss: str) -> Markup:
    """Return the map as a picture with its numbers; candidates without a place stand in the table alone."""
    found = placed(candidates)
    highest = rounded_up(max([each.risk for each in found], default=0.0) or 0.01)
    widest = rounded_up(max([each.loss for each in found], default=0.0) or 0.01)
    area = Area(0.0, widest, 0.0, highest)
    across, upward = ticks(widest, 5), ticks(highest, 5)
    drawn = [
        *area.across(across, [f"{value:g}" for value in across]),
        *area.upward(upward, [f"{value:g}" for value in upward]),
        *titles(loss, risk),
        *(part for each in found for part in _mark(each, area)),
    ]
    best = [each.name for each in found if each.best]
    where = "Each dot is a release; to the left less is lost, further down less is at risk."
    caption = f"{where} On the frontier: {', '.join(best) or 'none'}."
    numbers = table("Releases on the map", ["Release", risk, loss, "On the frontier"], _lines(candidates, found))
    return figure(picture(f"Map of risk and loss. {caption}", *drawn), caption, numbers)


def _mark(each: Placed, area: Area) -> list[Markup]:
    x, y = area.x(each.loss), area.y(each.risk)
    return [
        tag("circle", cx=x, cy=y, r=6, class_="mark" if each.best else "bar noisy"),
        tag("text", each.name, x=x, y=y - 10, class_="mid strong" if each.best else "mid faint"),
    ]


def _lines(candidates: Sequence[MappedRelease], found: Sequence[Placed]) -> list[list[str]]:
    best = {each.name: "yes" if each.best else "no" for each in found}
    spelled = [[each.name, _spelled(each.risk), _spelled(each.loss)] for each in candidates]
    return [[*line, best.get(line[0], "not on the map")] for line in spelled]


def _spelled(number: float | None) -> str:
    return "not counted" if number is None else f"{number:.4f}"
