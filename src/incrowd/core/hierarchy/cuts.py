"""Cuts: numbers between named points, where intervals of one width do not fit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.domain import DECLARED, Numbers, Provenance, Type
from incrowd.core.hierarchy.flat import holds, written
from incrowd.core.hierarchy.hierarchy import Hierarchy
from incrowd.core.reading import number_text, parse
from incrowd.core.rounding import Number, exact
from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class Cuts(Hierarchy):
    """Classes that begin at the given points, finest level first; each level keeps some points of the one below.

    >>> ages = Cuts(Numbers(0, 120), ((18, 40, 65), (18, 65)))
    >>> ages.labels(1), ages.labels(2)
    (('< 18', '[18, 40)', '[40, 65)', '>= 65'), ('< 18', '[18, 65)', '>= 65'))
    """

    domain: Numbers
    points: tuple[tuple[Number, ...], ...]
    provenance: Provenance = DECLARED

    def __post_init__(self) -> None:
        low, high = self.domain.bounds
        levels = [[exact(point, "a cut point") for point in points] for points in self.points]
        if not levels or not all(levels):
            raise InvalidParameter("cuts need at least one point on every level.")
        for points in levels:
            if any(a >= b for a, b in itertools.pairwise(points)):
                raise InvalidParameter(f"the cut points {_shown(points)} must grow from one to the next.")
            if any((low is not None and p <= low) or (high is not None and p > high) for p in points):
                raise InvalidParameter(
                    f"the cut points {_shown(points)} must lie above the low bound and within the high."
                )
            if self.domain.type is Type.INTEGER and any(p.denominator != 1 or abs(p) >= 2**61 for p in points):
                raise InvalidParameter(f"the cut points {_shown(points)} of an integer column must be whole.")
        for fine, coarse in itertools.pairwise(levels):
            if not set(coarse) < set(fine):
                raise InvalidParameter(
                    f"the cut points {_shown(coarse)} must be some, not all, of those one level below: {_shown(fine)}."
                )

    @property
    def depth(self) -> int:
        """How many levels are declared between the value itself and `*`."""
        return len(self.points)

    @property
    def rule(self) -> str:
        """The rule in a few words, for people."""
        return "cut at " + "; ".join(_shown(points) for points in self.points)

    def leaves(self, level: int) -> NDArray[np.float64] | None:
        """Return how many whole numbers each class holds, or what length of decimal numbers."""
        low = self.domain.bounds[0]
        if level == 0 or low is None:
            return super().leaves(level)
        points = self.points[level - 1] if level < self.height else ()
        return self.domain.spans([low, *(exact(point) for point in points)])

    def _stored(self, level: int) -> list[float]:
        as_stored = int if self.domain.type is Type.INTEGER else float
        return [as_stored(exact(point)) for point in self.points[level - 1]]

    def _members(self, level: int) -> pa.Array | None:
        if level == 0:
            return self.domain.members()
        points = self._stored(level)
        before = points[0] - 1 if self.domain.type is Type.INTEGER else math.nextafter(points[0], -math.inf)
        return pa.array([before, *points], self.domain.storage)

    def _lift(self, values: pa.Array, level: int) -> pa.Array:
        missing = values.is_null().to_numpy(zero_copy_only=False)
        numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
        where = np.searchsorted(np.array(self._stored(level)), numbers, side="right")
        return self._listed(level).take(pa.array(where, mask=missing))

    def _names(self, marks: pa.Array, level: int) -> pa.Array:
        return pa.array([None if mark is None else self._label(mark, level) for mark in marks.to_pylist()], pa.string())

    def _label(self, number: float, level: int) -> str:
        points = self._stored(level)
        place = sum(point <= number for point in points)
        if place == 0:
            return f"< {number_text(points[0])}"
        if place == len(points):
            return f">= {number_text(points[-1])}"
        return f"[{number_text(points[place - 1])}, {number_text(points[place])})"

    def _generalize(self, value: str, level: int) -> str | None:
        if level == 0:
            return written(value, self.domain)
        number = parse(value, self.domain.type)
        return self._label(number, level) if isinstance(number, int | float) and holds(self.domain, number) else None


def _shown(points: Sequence[Number]) -> str:
    return ", ".join(str(point) for point in points)
