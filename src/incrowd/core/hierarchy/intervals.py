"""Intervals: numbers in intervals of one width per level, each level's width a multiple of the one below."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.domain import DECLARED, ENUMERABLE, Numbers, Provenance, Type
from incrowd.core.hierarchy.flat import holds, written
from incrowd.core.hierarchy.grid import Grid
from incrowd.core.hierarchy.hierarchy import Hierarchy
from incrowd.core.reading import number_text, parse
from incrowd.core.rounding import Number, exact
from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class Intervals(Hierarchy):
    """Intervals `[low, high)` of the given widths, finest first, laid out from `origin` in both directions.

    The origin is the low bound of the domain where there is one, else 0.  With `open_ends` the first and the last
    interval say so in their labels: use it where values outside the bounds are moved to them.

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

    @property
    def depth(self) -> int:
        """How many levels are declared between the value itself and `*`."""
        return len(self.widths)

    @property
    def rule(self) -> str:
        """The rule in a few words, for people."""
        return "intervals of " + ", ".join(str(width) for width in self.widths)

    def leaves(self, level: int) -> NDArray[np.float64] | None:
        """Return how many whole numbers each class holds, or what length of decimal numbers."""
        steps = self._steps(level) if 0 < level <= self.depth else None
        if steps is not None:
            return self.domain.spans([self._start + step * exact(self.widths[level - 1]) for step in steps])
        low = self.domain.bounds[0]
        return self.domain.spans([low]) if level == self.height and low is not None else super().leaves(level)

    @property
    def _start(self) -> Fraction:
        return (self.domain.bounds[0] or Fraction(0)) if self.origin is None else exact(self.origin, "the origin")

    def _grid(self, level: int) -> Grid:
        return Grid(self._start, exact(self.widths[level - 1]), self.domain.type is Type.INTEGER)

    def _lift(self, values: pa.Array, level: int) -> pa.Array:
        missing = values.is_null().to_numpy(zero_copy_only=False)
        numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
        return pa.array(self._grid(level).below(numbers), self.domain.storage, mask=missing)

    def _names(self, marks: pa.Array, level: int) -> pa.Array:
        grid = self._grid(level)
        steps = (None if mark is None else grid.step(mark) for mark in marks.to_pylist())
        return pa.array([None if step is None else self._label(step, level) for step in steps], pa.string())

    def _label(self, step: int, level: int) -> str:
        grid = self._grid(level)
        here, there = number_text(grid.point(step)), number_text(grid.point(step + 1))
        first, last = self._ends(level) if self.open_ends else (None, None)
        if step in (first, last):
            return "any" if first == last else f"< {there}" if step == first else f">= {here}"
        return f"[{here}, {there})"

    def _ends(self, level: int) -> tuple[int | None, int | None]:
        """Return the steps of the first and the last interval, where the domain has a bound."""
        grid, stored = self._grid(level), int if self.domain.type is Type.INTEGER else float
        first, last = (None if end is None else grid.step(stored(end)) for end in self.domain.bounds)
        return first, last

    def _steps(self, level: int) -> range | None:
        first, last = self._ends(level)
        return None if first is None or last is None or last - first >= ENUMERABLE else range(first, last + 1)

    def _members(self, level: int) -> pa.Array | None:
        steps = self._steps(level) if level else None
        if steps is None:
            return self.domain.members() if level == 0 else None
        return pa.array([self._grid(level).point(step) for step in steps], self.domain.storage)

    def _generalize(self, value: str, level: int) -> str | None:
        if level == 0:
            return written(value, self.domain)
        number = parse(value, self.domain.type)
        if not isinstance(number, int | float) or not holds(self.domain, number):
            return None
        return self._label(self._grid(level).step(number), level)
