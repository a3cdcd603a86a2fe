"""PointGrid: a public box of numbers and days, cut into cells of equal sides before a row is read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.domain import Dates, Numbers, Type
from incrowd.core.hierarchy.slices import Slices
from incrowd.core.keys import Codes
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Missing, Outside
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.points.steps import FINE, Placement, Side


@dataclass(frozen=True)
class GridAxis:
    """One coordinate: a column between its declared bounds, in pieces; the length of the whole is its unit.

    Whole numbers and days each own one unit of length, so that n of them are n long.

    >>> age = GridAxis.of(Column("age", type=Type.INTEGER, hierarchy=Slices(Numbers(0, 99), 1)), 10)
    >>> age.centers[:2].tolist(), age.reach(Placement.CENTERS), age.reach(Placement.UNIFORM)
    ([4.5, 14.5], Fraction(9, 200), Fraction(9, 100))
    """

    column: Column

    @classmethod
    def of(cls, column: Column, pieces: int) -> GridAxis:
        """Return a column as a coordinate in so many pieces, or in as many as it has whole numbers or days.

        A row without a value here is left out, unless the column says what stands in for it; a value beyond a bound
        is moved to it, or its row is left out, as declared.  Each row is decided by what it holds alone.
        """
        if not isinstance(column.domain, Numbers | Dates):
            raise InvalidParameter(f"{column.name!r} has no place on a grid: points have numbers or dates.")
        if None in column.domain.bounds:
            raise InvalidParameter(
                f"{column.name!r} needs bounds: the box is public, and is never fitted to the rows. "
                "Declare the lowest and the highest value that there could be."
            )
        if column.days is not None:
            raise InvalidParameter(
                f"points lie on any day of a cell, so the declared days of {column.name!r} would not hold: leave out "
                "weekdays, last_of and days_off, or choose the method marginals."
            )
        if column.rule_outside is Outside.OTHER:
            raise InvalidParameter(
                f"'other' has no place on a grid: let outside of {column.name!r} be 'ends' or 'drop'."
            )
        whole = Slices(column.domain, 1)
        cut = Slices(column.domain, min(pieces, int(whole.length)) if whole.whole else pieces, column.domain.provenance)
        missing = Missing.DROP if column.fill is None else column.fill
        return cls(Column(column.name, column.role, column.type, cut, missing, column.rule_outside))

    @property
    def slices(self) -> Slices:
        """The pieces."""
        if not isinstance(self.column.hierarchy, Slices):
            raise TypeError("an axis is made by GridAxis.of")
        return self.column.hierarchy

    def reach(self, place: Placement) -> Fraction:
        """Return how far, at most, a point lies from the value it stands for, in units of the whole length.

        Half a piece for centers and a piece for uniform points; of m whole numbers the outermost are m − 1 apart.
        The middle of an even number of days is a day before it.  Ends and centers of decimal numbers are doubles
        nearest to the true ones: two such roundings are added.
        """
        slices = self.slices
        if not slices.whole:
            largest = max(abs(float(end)) for end in slices.ends[[0, -1]])
            exactly = Fraction(1, slices.pieces) / (2 if place is Placement.CENTERS else 1)
            return exactly + Fraction(math.ulp(largest)) / slices.length
        apart = -(-slices.length // slices.pieces) - 1
        if place is Placement.UNIFORM:
            return apart / slices.length
        return (Fraction((apart + 1) // 2) if self.column.type is Type.DATE else Fraction(apart, 2)) / slices.length

    def storage(self, place: Placement) -> pa.DataType:
        """Return the Arrow type of the released coordinate; the center of whole numbers need not be whole."""
        centered = self.column.type is Type.INTEGER and place is Placement.CENTERS
        return pa.float64() if centered else self.column.type.storage

    @cached_property
    def centers(self) -> NDArray[Any]:
        """The center of each piece, as stored: decimal numbers, or days counted from 1970."""
        ends, pieces = self.slices.ends, self.slices.pieces
        if self.column.type is Type.DATE:
            return np.asarray(ends[:-1] + (ends[1:] - 1 - ends[:-1]) // 2, np.int32)
        if self.slices.whole:
            return np.asarray((ends[:-1] + (ends[1:] - 1)) / 2.0)
        return self.slices.points(2 * piece + 1 for piece in range(pieces))

    def codes(self, values: pa.Array) -> Codes:
        """Return in which piece each released coordinate lies; none is missing, and all are inside the bounds."""
        numbers = values.cast(pa.int32()) if pa.types.is_date(values.type) else values
        places = np.searchsorted(self.slices.ends[1:-1], numbers.to_numpy(zero_copy_only=False), side="right")
        return np.asarray(places, np.int32)

    def inside(self, codes: Codes, offsets: NDArray[Any]) -> NDArray[Any]:
        """Return the points at these offsets in their pieces; of whole numbers as many as the piece holds, else FINE.

        The result depends on piece and offset alone, and rounding never takes it out of its piece.
        """
        ends = self.slices.ends
        if self.slices.whole:
            return np.asarray(ends[codes] + offsets)
        low, high = ends[codes], ends[codes + 1]
        last = codes == self.slices.pieces - 1
        highest = np.where(last, high, np.nextafter(high, -np.inf))
        return np.asarray(np.clip(low + (high - low) * ((offsets + 0.5) / FINE), low, highest))


@dataclass(frozen=True)
class PointGrid:
    """A box in cells, as a point in it is described by one piece of every axis.

    >>> x = Column("x", type=Type.DECIMAL, hierarchy=Slices(Numbers(0, 1, Type.DECIMAL), 1))
    >>> grid = PointGrid.of([x, Column("y", type=x.type, hierarchy=x.hierarchy)], 4)
    >>> grid.size, round(float(grid.reach_squared(Placement.CENTERS)), 6)   # (1/8)² + (1/8)²
    (16, 0.03125)
    """

    axes: tuple[GridAxis, ...]

    @classmethod
    def of(cls, columns: Iterable[Column], pieces: int) -> PointGrid:
        """Return the grid of these columns, every side in so many pieces."""
        return cls(tuple(GridAxis.of(column, pieces) for column in columns))

    @classmethod
    def laid(cls, sides: Iterable[Side]) -> PointGrid:
        """Lay the grid of these sides again; what becomes of missing values and of values outside is not read back."""
        axes = []
        for side in sides:
            ends = (side.low, side.high)
            domain = Dates(*ends) if side.type is Type.DATE else Numbers(*ends, side.type)
            axes.append(GridAxis.of(Column(side.column, type=side.type, hierarchy=Slices(domain, 1)), side.pieces))
        return cls(tuple(axes))

    def sides(self) -> tuple[Side, ...]:
        """Return the sides as certificates state them: enough to lay the same grid again."""
        return tuple(
            Side(
                axis.column.name,
                axis.column.type,
                str(axis.column.domain.bounds[0]),  # type: ignore[union-attr]
                str(axis.column.domain.bounds[1]),  # type: ignore[union-attr]
                axis.slices.pieces,
                axis.column.rule_outside,
                axis.column.fill,
            )
            for axis in self.axes
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(axis.column.name for axis in self.axes)

    @cached_property
    def cells(self) -> Cells:
        """The cells, for counting."""
        return Cells(tuple(Recoding(axis.column, 1) for axis in self.axes))

    @property
    def size(self) -> int:
        """How many cells there are."""
        return math.prod(axis.slices.pieces for axis in self.axes)

    def reach_squared(self, place: Placement) -> Fraction:
        """Return the square of how far a point lies at most from what it stands for, in units of the box."""
        return sum((axis.reach(place) ** 2 for axis in self.axes), Fraction(0))
