"""Slices: a bounded range of numbers or days cut into a given number of pieces of equal length."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.domain import DECLARED, ENUMERABLE, Dates, Numbers, Provenance, Type
from incrowd.core.hierarchy.flat import written
from incrowd.core.hierarchy.hierarchy import ANY, Hierarchy, HierarchyRule, RuleKind
from incrowd.core.reading import number_text, parse
from incrowd.errors import InvalidParameter

_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class Slices(Hierarchy):
    """Pieces of equal length from the low bound to the high one, which belongs to the last piece.

    Whole numbers and days are dealt out as evenly as they can be: the sizes of two pieces differ by at most one.
    Decimal numbers are compared, as everywhere, with the doubles nearest to the ends of the pieces.  With `open_ends`
    the first and the last piece say in their labels that they hold the values beyond the bounds.

    >>> Slices(Numbers(0, 99), 4).labels(1)
    ('[0, 25)', '[25, 50)', '[50, 75)', '[75, 100)')
    >>> Slices(Numbers(0, 1, Type.DECIMAL), 2).labels(1)
    ('[0, 0.5)', '[0.5, 1]')
    >>> Slices(Dates("2024-01-01", "2024-01-06"), 3, open_ends=True).labels(1)
    ('2024-01-02 or earlier', '[2024-01-03, 2024-01-04]', '2024-01-05 or later')
    """

    depth = 1

    domain: Numbers | Dates
    pieces: int
    provenance: Provenance = DECLARED
    open_ends: bool = False

    def __post_init__(self) -> None:
        low, high = self.domain.bounds
        if low is None or high is None:
            raise InvalidParameter("only a range with a low and a high bound can be cut into pieces: declare both.")
        if not 1 <= self.pieces <= ENUMERABLE:
            raise InvalidParameter(f"a range is cut into 1 to {ENUMERABLE:,} pieces.")
        if self.whole and self.pieces > self.length:
            raise InvalidParameter(f"{int(self.length)} whole numbers or days cannot be cut into {self.pieces} pieces.")
        if not self.whole and (self.length <= 0 or np.any(np.diff(self.ends) <= 0)):
            raise InvalidParameter("the pieces are narrower than decimal numbers can tell apart: cut into fewer.")

    def with_open_ends(self) -> Slices:
        return replace(self, open_ends=True)

    @property
    def whole(self) -> bool:
        """Whether the values are whole numbers or days."""
        return isinstance(self.domain, Dates) or self.domain.type is Type.INTEGER

    @property
    def start(self) -> Fraction:
        """The low bound; a day is its number, counted from 1970."""
        return _number(self.domain.bounds[0])

    @property
    def length(self) -> Fraction:
        return _number(self.domain.bounds[1]) - self.start + int(self.whole)

    @cached_property
    def ends(self) -> NDArray[Any]:
        """Where the pieces begin, and last where the range ends, as stored; beyond the last whole number or day."""
        if self.whole:
            steps = np.arange(self.pieces + 1, dtype=object) * int(self.length) // self.pieces
            return np.asarray(steps + int(self.start)).astype(np.int64)
        return self.points(2 * step for step in range(self.pieces + 1))

    def points(self, halves: Iterable[int]) -> NDArray[np.float64]:
        """Return the doubles nearest to the places so many halves of a piece above the start.

        Python divides whole numbers with one correct rounding, so each place is rounded once.

        >>> Slices(Numbers("0.1", "0.5", Type.DECIMAL), 2).points([0, 1, 4]).tolist()
        [0.1, 0.2, 0.5]
        """
        half = self.length / (2 * self.pieces)
        below = math.lcm(self.start.denominator, half.denominator)
        first, width = int(self.start * below), int(half * below)
        return np.array([(first + number * width) / below for number in halves])

    @property
    def rule(self) -> HierarchyRule:
        return HierarchyRule(RuleKind.SLICES, size=self.pieces)

    def leaves(self, level: int) -> NDArray[np.float64] | None:
        if level == 0:
            return super().leaves(level)
        lengths: NDArray[np.float64] = np.diff(self.ends).astype(np.float64)
        return lengths if level == 1 else lengths.sum(keepdims=True)

    def _places(self, numbers: NDArray[Any]) -> NDArray[np.intp]:
        """Return in which piece each number of the range lies."""
        return np.searchsorted(self.ends[1:-1], numbers, side="right")

    def _lift(self, values: pa.Array, level: int) -> pa.Array:
        missing = values.is_null().to_numpy(zero_copy_only=False)
        stored = values.cast(pa.int32()) if isinstance(self.domain, Dates) else values
        places = self._places(stored.fill_null(0).to_numpy(zero_copy_only=False))
        return self._marks.take(pa.array(places, mask=missing))

    @cached_property
    def _marks(self) -> pa.Array:
        if isinstance(self.domain, Dates):
            return pa.array(self.ends[:-1].astype(np.int32), pa.int32()).cast(pa.date32())
        return pa.array(self.ends[:-1], self.domain.storage)

    def _members(self, level: int) -> pa.Array | None:
        return self._marks if level else self.domain.members()

    def _names(self, marks: pa.Array, level: int) -> pa.Array:
        numbers = [None if mark is None else _number(mark) for mark in marks.to_pylist()]
        stored = np.array([float(number or 0) for number in numbers])
        labels = [self._label(int(place)) for place in self._places(stored)]
        return pa.array([None if n is None else label for n, label in zip(numbers, labels, strict=True)], pa.string())

    def _label(self, place: int) -> str:
        here, there = self.ends[place : place + 2].tolist()
        if self.open_ends and place in (0, self.pieces - 1):
            return self._open_label(place, here, there)
        if isinstance(self.domain, Dates):
            return f"[{_day(here)}, {_day(there - 1)}]"
        closed = place == self.pieces - 1 and not self.whole
        return f"[{number_text(here)}, {number_text(there)}{']' if closed else ')'}"

    def _open_label(self, place: int, here: float, there: float) -> str:
        if self.pieces == 1:
            return ANY
        if isinstance(self.domain, Dates):
            return f"{_day(int(there) - 1)} or earlier" if place == 0 else f"{_day(int(here))} or later"
        return f"< {number_text(there)}" if place == 0 else f">= {number_text(here)}"

    def _generalize(self, value: str, level: int) -> str | None:
        stored = written(value, self.domain)
        if level == 0 or stored is None:
            return stored
        number = parse(value, Type.DATE if isinstance(self.domain, Dates) else self.domain.type)
        return self._label(sum(_number(end) <= _number(number) for end in self.ends[1:-1].tolist()))


def _number(value: Any) -> Fraction:
    """Return a value as a number; a day is its number, counted from 1970."""
    return Fraction(value.toordinal() - _EPOCH if isinstance(value, date) else value)


def _day(number: int) -> date:
    return date.fromordinal(number + _EPOCH)
