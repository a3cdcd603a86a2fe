"""Intervals: numbers in intervals of one width per level, or between named points where one width does not fit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.domain import DECLARED, ENUMERABLE, Numbers, Provenance, Type
from incrowd.core.hierarchy.flat import holds, written
from incrowd.core.hierarchy.hierarchy import ANY, Hierarchy, HierarchyRule, RuleKind
from incrowd.core.reading import number_text, parse
from incrowd.core.rounding import Number, exact
from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class NumberGrid:
    """The points origin + step · width; for whole numbers exactly, else each rounded once to the nearest double.

    Numbers and points are both doubles nearest to what was written, and are compared as such: 0.3 written in a file
    is at, not below, the third point of a grid of width 0.1.
    """

    origin: Fraction
    width: Fraction
    whole: bool

    def point(self, step: int) -> float:
        """Return one point, as it is stored.

        >>> NumberGrid(Fraction(0), Fraction(1, 10), whole=False).point(3)
        0.3
        """
        if self.whole:
            return self.origin.numerator + step * self.width.numerator
        return float(self.origin + step * self.width)

    def step(self, number: float) -> int:
        """Return the step of the last point that is not above a number.

        The exact step is not above; the next point is, unless rounding puts it on the number.

        >>> NumberGrid(Fraction(0), Fraction(1, 10), whole=False).step(0.3)
        3
        """
        if self.whole and isinstance(number, int):
            return (number - self.origin.numerator) // self.width.numerator
        step = math.floor((Fraction(number) - self.origin) / self.width)
        return step + (self.point(step + 1) <= number)

    def below(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return for each number the last point that is not above it.

        >>> NumberGrid(Fraction(10), Fraction(5), whole=True).below(np.array([9, 10, 17])).tolist()
        [5, 10, 15]
        """
        if self.whole:
            whole = numbers.astype(np.int64)
            width, origin = int(self.width), int(self.origin)
            return np.asarray(whole - (whole % width - origin % width) % width)
        # The step found in floating point may be one off, so the points around it decide; where points lie closer
        # than doubles do, every number is one.
        with np.errstate(over="ignore"):
            near = np.floor((numbers.astype(np.float64) - float(self.origin)) / float(self.width))
        apart = np.abs(near) < 2.0**53
        steps, where = np.unique(np.where(apart, near, 0.0), return_inverse=True)
        around = np.array([[self.point(int(step) + more) for more in (-1, 0, 1)] for step in steps])
        before, at, after = around.reshape(-1, 3)[where].T
        points = np.where(numbers < at, before, np.where(numbers >= after, after, at))
        return np.where(apart, points, numbers)


@dataclass(frozen=True)
class Intervals(Hierarchy):
    """Intervals `[low, high)` of the given widths, finest first, laid out from `origin` in both directions.

    The origin is the low bound of the domain where there is one, else 0.  With `open_ends` the first and the last
    interval say so in their labels: a column whose values outside the bounds are moved to them sees to it.

    >>> ages = Intervals(Numbers(10, 60), (10, 20), open_ends=True)
    >>> ages.labels(2)
    ('< 30', '[30, 50)', '>= 50')
    >>> ages.generalize("47", 1)
    '[40, 50)'
    """

    domain: Numbers
    widths: tuple[Number, ...]
    origin: Number | None = None
    open_ends: bool = False
    provenance: Provenance = DECLARED

    def __post_init__(self) -> None:
        widths = [exact(width, "the width of an interval") for width in self.widths]
        if not widths or min(widths) <= 0:
            raise InvalidParameter("intervals need at least one width, and every width is above 0.")
        for fine, coarse in itertools.pairwise(widths):
            if coarse <= fine or (coarse / fine).denominator != 1:
                raise InvalidParameter(
                    f"intervals of width {coarse} do not consist of intervals of width {fine}: "
                    "take multiples, from narrow to wide."
                )
        if self.domain.type is Type.INTEGER:
            for number in (*widths, self._start):
                if number.denominator != 1 or abs(number) >= 2**61:
                    raise InvalidParameter(
                        f"intervals of an integer column have whole widths and a whole origin below 2^61, not {number}."
                    )

    def with_open_ends(self) -> Intervals:
        return replace(self, open_ends=True)

    @property
    def depth(self) -> int:
        return len(self.widths)

    @property
    def rule(self) -> HierarchyRule:
        return HierarchyRule.by_level(RuleKind.INTERVALS, self.widths)

    def leaves(self, level: int) -> NDArray[np.float64] | None:
        steps = self._steps(level) if 0 < level <= self.depth else None
        if steps is not None:
            return self.domain.spans([self._start + step * exact(self.widths[level - 1]) for step in steps])
        low = self.domain.bounds[0]
        return self.domain.spans([low]) if level == self.height and low is not None else super().leaves(level)

    @property
    def _start(self) -> Fraction:
        return (self.domain.bounds[0] or Fraction(0)) if self.origin is None else exact(self.origin, "the origin")

    def _grid(self, level: int) -> NumberGrid:
        return NumberGrid(self._start, exact(self.widths[level - 1]), self.domain.type is Type.INTEGER)

    def _lift(self, values: pa.Array, level: int) -> pa.Array:
        missing = values.is_null().to_numpy(zero_copy_only=False)
        numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
        return pa.array(self._grid(level).below(numbers), self.domain.storage, mask=missing)

    def _names(self, marks: pa.Array, level: int) -> pa.Array:
        grid, ends = self._grid(level), self._open(level)
        steps = (None if mark is None else grid.step(mark) for mark in marks.to_pylist())
        return pa.array([None if step is None else _label(grid, step, ends) for step in steps], pa.string())

    def _ends(self, level: int) -> tuple[int | None, int | None]:
        """Return the steps of the first and the last interval, where the domain has a bound."""
        grid, stored = self._grid(level), int if self.domain.type is Type.INTEGER else float
        first, last = (None if end is None else grid.step(stored(end)) for end in self.domain.bounds)
        return first, last

    def _open(self, level: int) -> tuple[int | None, int | None]:
        """Return the steps of those intervals whose labels say that they are open."""
        return self._ends(level) if self.open_ends else (None, None)

    def _steps(self, level: int) -> range | None:
        first, last = self._ends(level)
        return None if first is None or last is None or last - first >= ENUMERABLE else range(first, last + 1)

    def _members(self, level: int) -> pa.Array | None:
        steps = self._steps(level) if level else None
        if steps is None:
            return self.domain.members() if level == 0 else None
        grid = self._grid(level)
        return pa.array([grid.point(step) for step in steps], self.domain.storage)

    def _generalize(self, value: str, level: int) -> str | None:
        if level == 0:
            return written(value, self.domain)
        number = parse(value, self.domain.type)
        if not isinstance(number, int | float) or not holds(self.domain, number):
            return None
        grid = self._grid(level)
        return _label(grid, grid.step(number), self._open(level))


def _label(grid: NumberGrid, step: int, ends: tuple[int | None, int | None]) -> str:
    """Return the label of one interval; the first and the last of `ends` say that they are open."""
    here, there = number_text(grid.point(step)), number_text(grid.point(step + 1))
    first, last = ends
    if step in ends:
        return ANY if first == last else f"< {there}" if step == first else f">= {here}"
    return f"[{here}, {there})"


@dataclass(frozen=True)
class Cuts(Hierarchy):
    """Classes that begin at the given points, finest level first; each level keeps some points of the one below.

    Each of the `spikes` is a class of its own on every level: a value that very many have, such as 0.

    >>> ages = Cuts(Numbers(0, 120), ((18, 40, 65), (18, 65)))
    >>> ages.labels(1), ages.labels(2)
    (('< 18', '[18, 40)', '[40, 65)', '>= 65'), ('< 18', '[18, 65)', '>= 65'))
    >>> Cuts(Numbers(0, 900), ((100,),), spikes=(0, 500)).labels(1)
    ('<= 0', '[1, 100)', '[100, 500)', '500', '>= 501')
    """

    domain: Numbers
    points: tuple[tuple[Number, ...], ...]
    provenance: Provenance = DECLARED
    spikes: tuple[Number, ...] = ()

    def __post_init__(self) -> None:
        low, high = self.domain.bounds
        if any(not holds(self.domain, float(exact(spike, "a spike"))) for spike in self.spikes):
            raise InvalidParameter(f"the spikes {_joined(self.spikes)} must be numbers within the bounds.")
        levels = [[exact(point, "a cut point") for point in points] for points in self.points]
        if not levels or not all(levels):
            raise InvalidParameter("cuts need at least one point on every level.")
        for points in levels:
            if any(a >= b for a, b in itertools.pairwise(points)):
                raise InvalidParameter(f"the cut points {_joined(points)} must grow from one to the next.")
            if any((low is not None and p <= low) or (high is not None and p > high) for p in points):
                raise InvalidParameter(
                    f"the cut points {_joined(points)} must lie above the low bound and within the high."
                )
            if self.domain.type is Type.INTEGER and any(p.denominator != 1 or abs(p) >= 2**61 for p in points):
                raise InvalidParameter(f"the cut points {_joined(points)} of an integer column must be whole.")
        for fine, coarse in itertools.pairwise(levels):
            if not set(coarse) < set(fine):
                raise InvalidParameter(
                    f"the cut points {_joined(coarse)} must be some, not all, of those a level below: {_joined(fine)}."
                )

    @property
    def depth(self) -> int:
        return len(self.points)

    @property
    def rule(self) -> HierarchyRule:
        levels = (tuple(sorted({*map(exact, points), *map(exact, self.spikes)})) for points in self.points)
        return HierarchyRule(RuleKind.CUTS, tuple(tuple(map(str, points)) for points in levels))

    def leaves(self, level: int) -> NDArray[np.float64] | None:
        low = self.domain.bounds[0]
        if level == 0 or low is None:
            return super().leaves(level)
        points = self._stored(level) if level < self.height else ()
        return self.domain.spans([low, *(exact(point) for point in points)])

    def _stored(self, level: int) -> list[float]:
        as_stored = int if self.domain.type is Type.INTEGER else float
        points = [as_stored(exact(point)) for point in self.points[level - 1]]
        if not self.spikes:
            return points
        low, high = (None if end is None else as_stored(end) for end in self.domain.bounds)
        own = [as_stored(exact(spike)) for spike in self.spikes]
        after = [spike + 1 if isinstance(spike, int) else just_above(spike) for spike in own]
        every = sorted({*points, *own, *after})
        return [point for point in every if (low is None or point > low) and (high is None or point <= high)]

    def _alone(self, number: float) -> str | None:
        """Return the label of a spike: a class that holds one value, and at a bound what lies beyond it, too."""
        own = [spike for spike in self.spikes if float(exact(spike)) == number]
        if not own:
            return None
        text = number_text(number)
        return f"<= {text}" if exact(own[0]) == self.domain.bounds[0] else text

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
        low = self.domain.bounds[0]
        if place == 0:
            first = None if low is None else self._alone(float(low))
            return first or f"< {number_text(points[0])}"
        start = self._after(points[place - 1])
        if place == len(points):
            return f">= {number_text(points[-1])}" if start is None else f"> {start}"
        opening = f"[{number_text(points[place - 1])}" if start is None else f"({start}"
        return self._alone(points[place - 1]) or f"{opening}, {number_text(points[place])})"

    def _after(self, point: float) -> str | None:
        """Return the spike after which a class of decimals starts, if it does."""
        own = () if self.domain.type is Type.INTEGER else self.spikes
        return next((number_text(float(exact(s))) for s in own if just_above(float(exact(s))) == point), None)

    def _generalize(self, value: str, level: int) -> str | None:
        if level == 0:
            return written(value, self.domain)
        number = parse(value, self.domain.type)
        return self._label(number, level) if isinstance(number, int | float) and holds(self.domain, number) else None


def just_above(number: float) -> float:
    """Return the next double, or after 0 a number so small that no data has it."""
    return math.nextafter(number, math.inf) if number else 1e-300


def _joined(points: Sequence[Number]) -> str:
    return ", ".join(str(point) for point in points)


def spiked(hierarchy: Intervals | Cuts, spikes: tuple[Number, ...]) -> Cuts:
    """Return intervals between bounds, or cuts, with a class for each spike.

    >>> spiked(Intervals(Numbers(0, 19), (10,)), (0,)).labels(1)
    ('<= 0', '[1, 10)', '>= 10')
    """
    if isinstance(hierarchy, Cuts):
        more = tuple(spike for spike in spikes if exact(spike) not in map(exact, hierarchy.spikes))
        return replace(hierarchy, spikes=(*hierarchy.spikes, *more))
    levels = [hierarchy.members(level) for level in range(1, hierarchy.depth + 1)]
    if any(members is None for members in levels):
        raise InvalidParameter("spikes stand beside intervals between declared bounds: declare both bounds.")
    points = (tuple(members.to_pylist()[1:]) for members in levels if members is not None)
    return Cuts(hierarchy.domain, tuple(own for own in points if own), hierarchy.provenance, spikes)
