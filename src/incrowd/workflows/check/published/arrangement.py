"""Arrangement: a published table with every total above its parts, exact, between bounds, or rounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.tabulation.protected.frame import TableFrame
from incrowd.workflows.check.published.lines import Lines
from incrowd.workflows.check.published.reading import NO_BOUND, PublishedCounts, Whole

ENDLESS = 2**45
"""Stands for no bound; sums of all cells of a table stay below 2⁶³."""
ROUNDED = "rounded"
"""The mark of a number that stands for all that are rounded to it."""
_UNITS = (1000, 100, 50, 25, 20, 10, 5, 3)
"""What counts are rounded to, the largest first."""


@dataclass(frozen=True, eq=False)
class Arranged:
    """A published table with every total above its parts: bounds of all cells, published or not, and their marks."""

    table: PublishedCounts
    frame: TableFrame
    low: Whole
    high: Whole
    marks: NDArray[np.object_]
    published: NDArray[np.bool_]
    dashes: NDArray[np.bool_]
    start: Whole
    """What was added to each cell so that none is negative."""

    @classmethod
    def of(cls, table: PublishedCounts) -> Arranged:
        """Arrange a table by the totals in each of its axes."""
        axes, places, notes = [], [], table.notes
        for number, (name, labels) in enumerate(zip(table.axes, table.labels, strict=True)):
            low, high = (np.moveaxis(part, number, 0).reshape(len(labels), -1) for part in (table.low, table.high))
            axis, lines = Lines(name, labels, low, high).axis()
            axes.append(axis)
            places.append(np.array([-1 if line is None else line for line in lines]))
            over = [label.strip() for place, label in enumerate(labels) if place not in lines]
            notes += (f"not examined, since they overlap with other lines: {', '.join(over)}",) if over else ()
        grid = np.ix_(*places)
        there = reduce(np.logical_and.outer, [line >= 0 for line in places])
        low, high = np.where(there, table.low[grid], 0), np.where(there, table.high[grid], NO_BOUND)
        there &= ~table.absent[grid]
        dashes, frame = there & table.dashes[grid], TableFrame(tuple(axes))
        start = np.zeros(frame.shape, np.int64)
        if table.signed:
            far = 8 * int(np.abs(low[there & (low == high)]).sum()) + 2**10
            start = frame.totals(np.full(frame.leaf_shape, min(far, ENDLESS)))
            low, high = np.maximum(low + start, 0), np.where(high == NO_BOUND, NO_BOUND, high + start)
        if max(int(start.max()), int(high.max())) > ENDLESS // 4:
            raise InvalidParameter("the numbers are too large to be examined exactly: write them in thousands.")
        return cls(replace(table, notes=notes), frame, low, high, table.marks[grid], there, dashes, start)

    @property
    def visible(self) -> NDArray[np.bool_]:
        """Which cells show their number."""
        return np.asarray(self.published & (self.low == self.high) & ~self.dashes)

    def without_dashes(self) -> Arranged:
        """Return the table with zeros for dashes, and for cells that a long table does not list."""
        note = "dashes and cells that are not listed are read as zero: all sums agree with it"
        return replace(
            self,
            table=replace(self.table, notes=(*self.table.notes, note)),
            low=np.where(self.dashes, self.start, self.low),
            high=np.where(self.dashes, self.start, self.high),
            dashes=np.zeros_like(self.dashes),
        )

    def with_dashes_hidden(self) -> Arranged:
        """Return the table with a hidden number for each dash."""
        note = "dashes and cells that are not listed are read as hidden: as zeros, sums would not add up"
        table = replace(self.table, notes=(*self.table.notes, note))
        return replace(self, table=table, dashes=np.zeros_like(self.dashes))

    def from_least(self, least: int) -> Arranged:
        """Return the table where a hidden finest cell is at least so large."""
        finest = np.zeros(self.frame.size, np.bool_)
        finest[self.frame.leaves] = True
        raised = finest.reshape(self.frame.shape) & self.published & ~self.visible & (self.low < least)
        return replace(self, low=np.where(raised, least, self.low))

    def rounded(self) -> tuple[Fraction, Arranged] | None:
        """Return the table of all numbers that are rounded to those shown, with the unit, if those add up; else None.

        Numbers are rounded to the nearest multiple if that suffices, else to one of the two around them.
        """
        seen = self.low[self.visible] - self.start[self.visible]
        divisor = int(np.gcd.reduce(seen)) if len(seen) else 0
        whole = self.table.scale == 1
        unit = next((unit for unit in _UNITS if divisor and divisor % unit == 0), 0) if whole else 1
        for reach in (unit, 2 * (unit - 1)) if whole else (unit,):  # in halves
            least = 2 * self.low - np.where(self.visible, reach, 0)
            least = least if self.table.signed else np.maximum(least, 0)
            most = 2 * np.where(self.high == NO_BOUND, 0, self.high) + np.where(self.visible, reach, 0)
            if whole:
                least, most = -(-least // 2), most // 2
            table = replace(self.table, scale=self.table.scale * (1 if whole else 2))
            other = replace(
                self,
                table=table,
                low=least,
                high=np.where(self.high == NO_BOUND, NO_BOUND, most),
                marks=np.where(self.visible, ROUNDED, self.marks),
                start=self.start * (1 if whole else 2),
            )
            if unit and not other.odd_sums():
                return Fraction(unit, self.table.scale), other
        return None

    @property
    def far(self) -> Fraction:
        """A bound so far from all numbers shown says nothing: hidden numbers can be negative."""
        return Fraction(int(self.start.ravel()[self.frame.leaves[0]]), 4 * self.table.scale) or Fraction(ENDLESS)

    @cached_property
    def sums(self) -> list[tuple[int, tuple[int, ...]]]:
        """Every total with the cells right under it, by their numbers."""
        sums = []
        for number, axis in enumerate(self.frame.axes):
            others = [range(size) if other != number else (0,) for other, size in enumerate(self.frame.shape)]
            for node, children in enumerate(axis.children):
                for place in product(*others) if children else ():
                    cells = [self._number(place, number, line) for line in (node, *children)]
                    sums.append((cells[0], tuple(cells[1:])))
        return sums

    def _number(self, place: Sequence[int], axis: int, line: int) -> int:
        where = [line if number == axis else value for number, value in enumerate(place)]
        return int(np.ravel_multi_index(where, self.frame.shape))

    def odd_sums(self) -> tuple[str, ...]:
        """Return the totals whose parts cannot add up to them."""
        low, high = self.low.ravel(), np.where(self.high == NO_BOUND, ENDLESS, self.high).ravel()
        return tuple(
            self.place(total)
            for total, parts in self.sums
            if low[list(parts)].sum() > high[total] or high[list(parts)].sum() < low[total]
        )

    def small_counts(self, limit: int) -> Iterator[str]:
        """Yield the cells that show a count above zero and below a limit."""
        for cell in np.flatnonzero((self.visible & (self.low > 0) & (self.low < limit)).ravel()).tolist():
            yield self.place(cell)

    def place(self, cell: int) -> str:
        """Return the labels of a cell."""
        where = np.unravel_index(cell, self.frame.shape)
        return ", ".join(str(axis.labels[int(line)]) for axis, line in zip(self.frame.axes, where, strict=True))

    def value(self, number: int, cell: int) -> Fraction:
        """Return the number of a cell as the table has it."""
        return Fraction(int(number) - int(self.start.ravel()[cell]), self.table.scale)
