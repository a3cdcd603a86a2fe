"""Attacker: everything that agrees with what was published, and how far apart a cell's least and largest value are.

A table that somebody could hold true is a vector of whole numbers, one for each finest cell, between stated bounds,
that has every published number.  Two such tables are a proof that a cell stays open between them, which anyone can
check by adding up: bounds of linear programs are only used to find them, and where a solver's answer is not whole it is
asked again for one that is.

Source: Fischetti & Salazar 2001 for the attacker's two programs; Hundepool et al. 2012, section 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from incrowd.methods.tabulation.protected.frame import Flags, TableFrame, Whole, union

Ends = NDArray[np.float64]
Enough = Callable[[Ends, Ends], Flags]
"""Whether the least and the largest value that were found for each cell are far enough from each other."""

_ROUNDS = 24


class Inconsistent(Exception):
    """No table agrees with all that was published."""


@dataclass(frozen=True, eq=False)
class TableAttacker:
    """Somebody who knows sums of unknown whole numbers, each of which lies between bounds (−1: no upper one).

    `floors` are further sums, of which they know that each is 1 at least.
    """

    sums: csr_array
    values: Whole
    low: Whole
    high: Whole
    floors: csr_array | None = None

    @classmethod
    def of(cls, matrix: csr_array, values: Whole, bounds: tuple[Whole, Whole] | None = None) -> TableAttacker:
        """Return who knows that so many sums of finest cells have these values, and that no cell is negative."""
        size = matrix.shape[1]
        low, high = bounds or (np.zeros(size, np.int64), np.full(size, -1, np.int64))
        return cls(matrix, values, low, high)

    @cached_property
    def fixed(self) -> tuple[Flags, Whole]:
        """Which unknowns have only one value because they are published themselves, and that value."""
        alone = np.flatnonzero(np.diff(self.sums.indptr) == 1)
        which, what = np.zeros(self.sums.shape[1], np.bool_), np.zeros(self.sums.shape[1], np.int64)
        atoms = self.sums.indices[self.sums.indptr[alone]]
        which[atoms], what[atoms] = True, self.values[alone]
        if np.any(what[atoms] != self.values[alone]):
            raise Inconsistent
        return which, what

    @cached_property
    def open(self) -> tuple[csr_array, Whole, NDArray[np.intp]]:
        """What is known of the unknowns that are left: sums, values, and which they are."""
        which, what = self.fixed
        left = np.flatnonzero(~which)
        rest = self.values - self.sums @ what
        part = self.sums[:, left]
        rows = np.flatnonzero(np.diff(part.indptr))
        if np.any(rest[np.diff(part.indptr) == 0] != 0):
            raise Inconsistent
        return part[rows], rest[rows], left

    def extreme(self, objective: NDArray[Any], *, whole: bool) -> Whole | None:
        """Return a table with the least value of an objective; None if the solver's is not whole and need not be.

        A value without a bound is cut off far above everything that is known.
        """
        matrix, values, left = self.open
        table = self.fixed[1].copy()
        if len(left):
            most = int(self.values.max(initial=0)) * 2 + 2**20
            high = np.where(self.high[left] < 0, most, self.high[left])
            sums = [LinearConstraint(matrix, values, values)] if len(values) else []
            if self.floors is not None:
                sums.append(LinearConstraint(self.floors[:, left], 1 - self.floors @ table, np.inf))
            for integral in (False, True) if whole else (False,):
                solution = milp(
                    objective[left],
                    constraints=sums,
                    bounds=Bounds(self.low[left], high),
                    integrality=np.full(len(left), int(integral)),
                )
                if solution.x is None:
                    raise Inconsistent
                table[left] = np.rint(solution.x).astype(np.int64)
                if self.agrees(table):
                    return table
            return None
        return table if self.agrees(table) else None

    def agrees(self, table: Whole) -> bool:
        """Whether a table has all that is known, in exact whole numbers.

        >>> from scipy.sparse import csr_array
        >>> known = TableAttacker.of(csr_array(np.array([[1, 1]])), np.array([5]))
        >>> known.agrees(np.array([2, 3])), known.agrees(np.array([6, -1]))
        (True, False)
        """
        inside = (table >= self.low) & ((self.high < 0) | (table <= self.high))
        above = self.floors is None or bool(np.all(self.floors @ table >= 1))
        return bool(above and inside.all() and np.array_equal(self.sums @ table, self.values))


@dataclass(frozen=True, eq=False)
class Together:
    """Published tables side by side: the numbers of each, which of its cells are seen, and their cells in one cross."""

    frames: tuple[TableFrame, ...]
    seen: Sequence[tuple[Whole, Flags]]
    cross: TableFrame
    published: dict[int, int]
    empty: NDArray[np.intp]

    @classmethod
    def of(cls, frames: tuple[TableFrame, ...], seen: Sequence[tuple[Whole, Flags]]) -> Together:
        """Return tables side by side, or refuse those that contradict each other in a cell that they share."""
        cross, parts = union(frames)
        published: dict[int, int] = {}
        empty: set[int] = set()
        for part, (values, visible) in zip(parts, seen, strict=True):
            visible_cells = visible.ravel()
            empty |= set(part[~visible_cells].tolist())
            for cell, value in zip(part[visible_cells].tolist(), values.ravel()[visible_cells].tolist(), strict=True):
                if published.setdefault(cell, value) != value:
                    raise Inconsistent
        if empty & published.keys():
            raise Inconsistent
        return cls(frames, seen, cross, published, np.array(sorted(empty), np.intp))

    @property
    def unknowns(self) -> int:
        """How many finest cells no table shows."""
        return int((~np.isin(self.cross.leaves, list(self.published))).sum())

    def reader(self, least: int, *, signed: bool = False) -> TableAttacker:
        """Return who knows all published cells, and the least number that an empty one can have.

        Of numbers that can be negative a reader knows no least one; all are counted from one that is low enough.
        """
        cells = np.array(sorted(self.published), np.intp)
        values = np.array([self.published[cell] for cell in cells.tolist()], np.int64)
        low = np.where(np.isin(self.cross.leaves, self.empty), least, 0).astype(np.int64)
        bounds = (low, np.full(len(low), -1, np.int64))
        if signed:
            start = np.full(len(low), 2 * int(np.abs(values).max(initial=0)) + 2, np.int64)
            values = values + (self.cross.matrix @ start)[cells]
        attacker = TableAttacker.of(self.cross.matrix[cells], values, bounds)
        inner = np.setdiff1d(self.empty, self.cross.leaves)
        return replace(attacker, floors=self.cross.matrix[inner]) if least and len(inner) else attacker


def never(low: Ends, high: Ends) -> Flags:
    """Return no cell as open wide enough: the extremes of all are then computed."""
    return np.zeros(len(np.minimum(low, high)), np.bool_)


def spread(
    attacker: TableAttacker, cells: csr_array, enough: Enough, tables: Sequence[Whole] = ()
) -> tuple[Ends, Ends]:
    """Return values that some cells have in tables the attacker cannot tell apart, far apart enough where possible.

    A cell for which even the extremes are not enough has its true least and largest value.  `tables` are some that are
    known to agree.

    >>> from incrowd.methods.tabulation.protected.frame import TableAxis
    >>> sex = TableFrame((TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)),))
    >>> seen = Together.of((sex,), [(np.array([5, 0, 0]), np.array([True, False, False]))])
    >>> spread(seen.reader(0), sex.matrix[[1]], never)
    (array([0.]), array([5.]))
    """
    low, high = np.full(cells.shape[0], np.inf), np.full(cells.shape[0], -np.inf)

    def learn(table: Whole | None) -> None:
        if table is not None:
            seen = cells @ table
            np.minimum(low, seen, out=low)
            np.maximum(high, seen, out=high)

    for table in tables:
        learn(table)
    _sweep(attacker, cells, lambda: ~enough(low, high), learn)
    for cell in range(cells.shape[0]):
        row = np.asarray(cells[[cell]].todense(), np.float64).ravel()
        for sign in (1, -1):
            if not enough(low, high)[cell]:
                learn(attacker.extreme(sign * row, whole=True))
    return low, high


def _sweep(
    attacker: TableAttacker, cells: csr_array, unmet: Callable[[], Flags], learn: Callable[[Whole | None], None]
) -> None:
    """Push many cells at once, half of them up and half down, in ever new halves, as long as that meets some more."""
    idle = 0
    for number in range(_ROUNDS):
        left = unmet()
        if left.sum() < 4 or idle > 3:
            return
        signs = np.array([(place * (2 * number + 1) * 0x9E3779B1 >> 7).bit_count() % 2 for place in range(len(left))])
        objective = cells.T @ np.where(left, 2 * signs - 1, 0)
        for sign in (1, -1):
            learn(attacker.extreme(sign * objective.astype(np.float64), whole=False))
        idle = 0 if unmet().sum() < left.sum() else idle + 1


_NARROWINGS = 50


def narrowed(frame: TableFrame, cells: Whole, visible: Flags, least: int = 0) -> tuple[Whole, Whole]:
    """Return for each cell bounds that every table with these published cells keeps; there may be narrower ones.

    `least` is the least number that an empty cell can have.

    >>> from incrowd.methods.tabulation.protected.frame import TableAxis
    >>> sex = TableFrame((TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)),))
    >>> low, high = narrowed(sex, np.array([9, 4, 0]), np.array([True, True, False]))
    >>> low.tolist(), high.tolist()
    ([9, 4, 5], [9, 4, 5])
    """
    most = int(cells[visible].max(initial=0))
    low, high = np.where(visible, cells, least), np.where(visible, cells, most)
    for _ in range(_NARROWINGS):
        before = (low, high)
        for number in range(len(frame.axes)):
            low, high = _along(frame, number, low, high)
        if np.array_equal(before[0], low) and np.array_equal(before[1], high):
            break
    return low, high


def _along(frame: TableFrame, number: int, low: Whole, high: Whole) -> tuple[Whole, Whole]:
    """Compare every line of an axis with the lines under it."""
    low, high = np.moveaxis(low, number, 0).copy(), np.moveaxis(high, number, 0).copy()
    for node, children in enumerate(frame.axes[number].children):
        if children:
            under = list(children)
            least, largest = low[under].sum(0), high[under].sum(0)
            low[node], high[node] = np.maximum(low[node], least), np.minimum(high[node], largest)
            low[under] = np.maximum(low[under], low[node] - (largest - high[under]))
            high[under] = np.minimum(high[under], high[node] - (least - low[under]))
    return np.moveaxis(low, 0, number), np.moveaxis(high, 0, number)
