"""Glyphs: twelve invented rows as small shapes, to show what a step does to a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from markupsafe import Markup

from incrowd.drawing.markup import tag

_ROWS = ("cd", "sl", "cl", "td", "sd", "cd", "cl", "sl", "cl", "sd", "cd", "sl")  # shape and shade of each row
_COLUMNS, _PITCH, _EDGE, _SIZE = 4, 24, 14, 7


@dataclass(frozen=True)
class Scene:
    """The rows that are present or just removed, and whether values are generalized and sorted."""

    present: tuple[int, ...]
    gone: tuple[int, ...] = ()
    crossed: tuple[int, ...] = ()
    coarse: bool = False
    ordered: bool = False

    def without(self, rows: tuple[int, ...], *, crossed: bool = False) -> Scene:
        """Return the scene in which some rows were just removed.

        >>> START.without((6,)).gone
        (6,)
        """
        left = tuple(row for row in self.present if row not in rows)
        left_now = tuple(row for row in rows if row in self.present)
        return replace(self, present=left, gone=() if crossed else left_now, crossed=left_now if crossed else ())


START = Scene(tuple(range(len(_ROWS))))
CHANGES: Mapping[str, Callable[[Scene], Scene]] = {
    "same": lambda scene: scene,
    "fewer": lambda scene: scene.without((6,)),
    "drawn": lambda scene: scene.without((5, 9)),
    "dropped": lambda scene: scene.without((3,), crossed=True),
    "coarser": lambda scene: replace(scene, coarse=True),
    "sorted": lambda scene: replace(scene, ordered=True),
}
"""The effect of a step on the rows, by the name of its glyph."""


def scenes(glyphs: Iterable[str | None]) -> Iterator[Markup | None]:
    """Yield the table at the start and after each step; None for a step without a glyph.

    >>> [scene and scene.count("<circle") for scene in scenes(["fewer", None])]
    [6, 6, None]
    """
    scene = START
    yield picture(scene)
    for glyph in glyphs:
        if glyph is None:
            yield None
        else:
            scene = CHANGES[glyph](replace(scene, gone=(), crossed=()))
            yield picture(scene)


def picture(scene: Scene) -> Markup:
    """Return the scene as a picture; it is hidden from screen readers, since the text beside it says the same."""
    order = sorted(scene.present, key=lambda row: _ROWS[row][0]) if scene.ordered else START.present
    places = {row: place for place, row in enumerate(order)}
    shapes = [_glyph(row, places[row], _shade(row, scene)) for row in scene.present]
    shapes += [_glyph(row, places[row], "ghost") for row in scene.gone]
    for row in scene.crossed:
        shapes += [_glyph(row, places[row], "plain"), _cross(places[row])]
    return tag("svg", *shapes, viewBox="0 0 100 76", class_="glyphs", aria_hidden="true", focusable="false")


def _shade(row: int, scene: Scene) -> str:
    return "plain" if scene.coarse else "dark" if _ROWS[row][1] == "d" else "light"


def _center(place: int) -> tuple[int, int]:
    return _EDGE + _PITCH * (place % _COLUMNS), _EDGE + _PITCH * (place // _COLUMNS)


def _glyph(row: int, place: int, kind: str) -> Markup:
    x, y = _center(place)
    match _ROWS[row][0]:
        case "c":
            return tag("circle", cx=x, cy=y, r=_SIZE, class_=kind)
        case "s":
            return tag("rect", x=x - _SIZE, y=y - _SIZE, width=2 * _SIZE, height=2 * _SIZE, class_=kind)
    points = f"{x},{y - _SIZE} {x + _SIZE},{y + _SIZE} {x - _SIZE},{y + _SIZE}"
    return tag("polygon", points=points, class_=kind)


def _cross(place: int) -> Markup:
    x, y = _center(place)
    reach = _SIZE + 3
    return tag("path", d=f"M{x - reach} {y - reach}l{2 * reach} {2 * reach}m0 {-2 * reach}l{-2 * reach} {2 * reach}")
