"""Inference: bounds of hidden cells, sum by sum and by programs, and the subtraction that leaves only one number."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, hstack, vstack

from incrowd.methods.tabulation.protected.attacker import Inconsistent, TableAttacker, never, spread
from incrowd.workflows.check.published.arrangement import ENDLESS, Arranged
from incrowd.workflows.check.published.reading import NO_BOUND, Whole

MOST_INTERVALS = 400
"""Hidden cells whose exact intervals are computed; of more, only whether they can be recomputed."""
_ROUNDS = 60  # of narrowing bounds by totals; then linear programs decide
_LISTED = 12


class Inference:
    """Bounds of all cells, narrowed sum by sum until nothing changes, and why some have only one number left."""

    def __init__(self, arranged: Arranged) -> None:
        self.arranged = arranged
        self.low = arranged.low.ravel().copy()
        self.high = np.where(arranged.high == NO_BOUND, ENDLESS, arranged.high).ravel()
        self.reasons: dict[int, str] = {}

    def run(self) -> None:
        """Narrow all bounds."""
        for _ in range(_ROUNDS):
            before = self.low.copy(), self.high.copy()
            for total, parts in self.arranged.sums:
                self._narrow(total, list(parts))
            if np.array_equal(before[0], self.low) and np.array_equal(before[1], self.high):
                return

    def _narrow(self, total: int, parts: list[int]) -> None:
        low, high = self.low[parts], np.minimum(self.high[parts], ENDLESS)
        least, most = int(low.sum()), int(high.sum())
        cells = np.array([total, *parts])
        bottom = np.array([least, *(self.low[total] - (most - high))])
        top = np.array([most, *(self.high[total] - (least - low))])
        top = np.where(top > ENDLESS // 2, ENDLESS, top)
        new_low, new_high = np.maximum(self.low[cells], bottom), np.minimum(self.high[cells], top)
        solved = (new_low == new_high) & (self.low[cells] < self.high[cells])
        if np.any(new_low > new_high):
            return  # no table agrees with all sums; the solver says so
        for cell in cells[solved].tolist():
            self.reasons[cell] = self._reason(cell, total, parts, int(new_low[cells == cell][0]))
        self.low[cells], self.high[cells] = new_low, new_high

    def _reason(self, cell: int, total: int, parts: list[int], value: int) -> str:
        """Return the sum that leaves only one number, in words."""
        others = [part for part in parts if part != cell]
        hidden = [part for part in parts if self.low[part] < self.high[part]]
        if any(other in hidden for other in others) or (cell != total and self.low[total] < self.high[total]):
            return self._reason_by_bounds(total, parts, hidden)
        numbers = [self._plain(other) for other in others]
        listed = numbers if len(numbers) <= _LISTED else [*numbers[:_LISTED], "…"]
        result = plain(self.arranged.value(value, cell))
        if cell == total:
            return f"{' + '.join(listed)} = {result}, the cells under it"
        return f"{' − '.join([self._plain(total), *listed])} = {result}, from {self._place(total)}"

    def _reason_by_bounds(self, total: int, parts: list[int], hidden: list[int]) -> str:
        """Return why bounds of several cells together leave only one number."""
        place = self.arranged.place(total)
        if self.low[total] < self.high[total] or len(hidden) == len(parts) == 1:
            return f"the bounds of the cells of {place} leave no other number"
        rest = int(self.low[total] - sum(int(self.low[part]) for part in parts if part not in hidden))
        end = "smaller" if rest == sum(int(self.low[part]) for part in hidden) else "larger"
        number = plain(Fraction(rest, self.arranged.table.scale))
        return f"the {len(hidden)} hidden cells of {place} add up to {number}: none can be {end}"

    def _plain(self, cell: int) -> str:
        number = self.arranged.value(int(self.low[cell]), cell)
        return plain(number) if number >= 0 else f"({plain(number)})"

    def _place(self, cell: int) -> str:
        return self.arranged.place(cell)


def intervals(arranged: Arranged, inference: Inference, targets: NDArray[np.intp]) -> tuple[Whole, Whole]:
    """Return the least and the largest number of some cells, over all tables that agree with what is published."""
    low, high = inference.low[targets].copy(), inference.high[targets].copy()
    undecided = np.flatnonzero(low < high)
    if not len(undecided):
        return low, high
    attacker, size = _attacker(arranged, inference)
    rows = arranged.frame.matrix[targets[undecided]]
    cells = csr_array(hstack([rows, csr_array((rows.shape[0], size - rows.shape[1]))]))
    few = len(undecided) <= MOST_INTERVALS
    try:
        least, most = spread(attacker, cells, never if few else _apart)
    except Inconsistent:
        return low, high
    if few:
        low[undecided] = np.maximum(low[undecided], least.astype(np.int64))
        # The solver's tables are cut off at 2^20 above twice all that is known: a cell beyond has no upper bound.
        bounded = most < 2**20 + attacker.values.max(initial=0)
        high[undecided] = np.minimum(high[undecided], np.where(bounded, most, ENDLESS).astype(np.int64))
    else:
        same = least == most
        low[undecided[same]] = high[undecided[same]] = least[same].astype(np.int64)
    return low, high


def _apart(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(high > low)


def _attacker(arranged: Arranged, inference: Inference) -> tuple[TableAttacker, int]:
    """Return who knows all bounds of cells, and the number of unknowns.

    A total between bounds is a sum with one unknown more: what it lacks of its upper bound.
    """
    frame = arranged.frame
    low, high = inference.low, np.where(inference.high >= ENDLESS, -1, inference.high)
    inner = np.ones(frame.size, np.bool_)
    inner[frame.leaves] = False
    exact = np.flatnonzero(low == high)
    bounded = np.flatnonzero(inner & (low < high) & (high >= 0))
    size = len(frame.leaves) + len(bounded)
    plain = hstack([frame.matrix[exact], csr_array((len(exact), len(bounded)))])
    slack = hstack([frame.matrix[bounded], eye_array(len(bounded), dtype=np.int8)])
    sums = csr_array(vstack([plain, slack]), dtype=np.int64)
    values = np.concatenate([low[exact], high[bounded]])
    lows = np.concatenate([low[frame.leaves], np.zeros(len(bounded), np.int64)])
    highs = np.concatenate([high[frame.leaves], high[bounded] - low[bounded]])
    return TableAttacker(sums, values, lows, highs), size


def plain(number: Fraction) -> str:
    """Return a number as people write it.

    >>> plain(Fraction(5, 2)), plain(Fraction(1234))
    ('2.5', '1,234')
    """
    return f"{number.numerator:,}" if number.denominator == 1 else f"{float(number):,g}"
