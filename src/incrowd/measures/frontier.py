"""Frontier: candidate releases of one table on a map of risk and information loss, and the best among them.

A candidate is *on the frontier* if no other has less of one and no more of the other.  People choose among these; the
map only shows which candidates are worse than another.

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
    """A release by name, with its risk and its information loss; None where unknown."""

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
    >>> some = [MappedRelease(*place) for place in places]
    >>> [place.name for place in placed(some) if place.best]
    ['a', 'b']
    """
    located = [
        (candidate.name, candidate.risk, candidate.loss)
        for candidate in candidates
        if candidate.risk is not None and candidate.loss is not None
    ]
    places = [
        Placed(name, risk, loss, not any(_beats((r, lost), (risk, loss)) for _, r, lost in located))
        for name, risk, loss in located
    ]
    return tuple(sorted(places, key=lambda candidate: (candidate.risk, candidate.loss, candidate.name)))


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def risk_utility_map(candidates: Sequence[MappedRelease], risk: str, loss: str) -> Markup:
    """Return the map as a picture with its numbers; candidates without a place are in the table only."""
    places = placed(candidates)
    highest = rounded_up(max([place.risk for place in places], default=0.0) or 0.01)
    widest = rounded_up(max([place.loss for place in places], default=0.0) or 0.01)
    area = Area(0.0, widest, 0.0, highest)
    across, upward = ticks(widest, 5), ticks(highest, 5)
    marks = [
        *area.across(across, [f"{value:g}" for value in across]),
        *area.upward(upward, [f"{value:g}" for value in upward]),
        *titles(loss, risk),
        *(part for place in places for part in _mark(place, area)),
    ]
    best = [place.name for place in places if place.best]
    where = "Each dot is a release; further left it loses less information, further down its risk is lower."
    caption = f"{where} On the frontier: {', '.join(best) or 'none'}."
    numbers = table("Releases on the map", ["Release", risk, loss, "On the frontier"], _lines(candidates, places))
    return figure(picture(f"Map of risk and information loss. {caption}", *marks), caption, numbers)


def _mark(place: Placed, area: Area) -> list[Markup]:
    x, y = area.x(place.loss), area.y(place.risk)
    return [
        tag("circle", cx=x, cy=y, r=6, class_="mark" if place.best else "bar noisy"),
        tag("text", place.name, x=x, y=y - 10, class_="mid strong" if place.best else "mid faint"),
    ]


def _lines(candidates: Sequence[MappedRelease], places: Sequence[Placed]) -> list[list[str]]:
    best = {candidate.name: "yes" if candidate.best else "no" for candidate in places}
    spelled = [[candidate.name, _spelled(candidate.risk), _spelled(candidate.loss)] for candidate in candidates]
    return [[*line, best.get(line[0], "not on the map")] for line in spelled]


def _spelled(number: float | None) -> str:
    return "not counted" if number is None else f"{number:.4f}"
