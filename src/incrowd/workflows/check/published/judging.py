"""Judging: what a reader of a published table can recompute of its hidden cells, with the subtraction that does it.

The reader knows that every total is the sum of its parts, that counts are whole numbers and not negative, and, where
zeros are shown, that a hidden count is at least 1.  Intervals are the least and largest value among all tables that
agree with what is published.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, hstack, vstack

from incrowd.core.words import counted
from incrowd.methods.tabulation.protected.attacker import Inconsistent, TableAttacker, never, spread
from incrowd.methods.tabulation.protected.frame import TableFrame
from incrowd.workflows.check.published.lines import Lines
from incrowd.workflows.check.published.reading import NO_BOUND, PublishedCounts, Whole

SMALLEST = 3
"""The smallest count that may be shown where a table hides nothing and no other was asked for."""
MOST_INTERVALS = 400
"""Hidden cells whose exact intervals are computed; of more, only whether they can be recomputed."""
_ENDLESS = 2**40  # stands for no bound; sums of a million of them stay below 2⁶³
_ROUNDS = 60  # of narrowing bounds by totals; then linear programs decide
_LISTED = 12


@dataclass(frozen=True)
class HiddenCell:
    """A hidden cell: its labels, the mark in its place, what a reader can infer (None: no upper bound), and how."""

    place: str
    mark: str
    low: Fraction
    high: Fraction | None
    why: str | None = None

    @property
    def disclosed(self) -> bool:
        """Whether only one number is possible."""
        return self.low == self.high

    @property
    def interval(self) -> str:
        """What a reader can infer, in words."""
        if self.disclosed:
            return f"exactly {_plain(self.low)}"
        return f"at least {_plain(self.low)}" if self.high is None else f"{_plain(self.low)} to {_plain(self.high)}"

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        high = None if self.high is None else float(self.high)
        return {"cell": self.place, "mark": self.mark, "low": float(self.low), "high": high, "why": self.why}


@dataclass(frozen=True)
class TableVerdict:
    """The hidden cells of a published table, the small counts that it shows, and sums that do not add up."""

    shape: tuple[int, ...]
    hidden: tuple[HiddenCell, ...]
    small: tuple[str, ...]
    smallest: int | None
    odd: tuple[str, ...]
    knows: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def disclosed(self) -> tuple[HiddenCell, ...]:
        """The hidden cells that can be recomputed."""
        return tuple(cell for cell in self.hidden if cell.disclosed)

    @property
    def passed(self) -> bool:
        """Whether no hidden cell can be recomputed, no small count is shown, and the sums could be used."""
        return not self.disclosed and not self.small and not self.odd

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        if self.passed:
            return (
                f"From this table alone, nobody can recompute a hidden cell ({counted(len(self.hidden), 'cell')})."
                if self.hidden
                else f"No cell is hidden, and no count from 1 to {(self.smallest or 1) - 1} is shown."
            )
        parts = []
        if self.disclosed:
            parts.append(f"{len(self.disclosed):,} of {counted(len(self.hidden), 'hidden cell')} can be recomputed")
        if self.small:
            verb = "shows" if len(self.small) == 1 else "show"
            parts.append(f"{counted(len(self.small), 'cell')} {verb} a count below {self.smallest}")
        if self.odd:
            verb, owner = ("does", "its") if len(self.odd) == 1 else ("do", "their")
            parts.append(
                f"{counted(len(self.odd), 'total')} {verb} not equal the sum of {owner} parts, so nothing is proved"
            )
        return f"Do not publish this: {', and '.join(parts)}."

    def reasons(self) -> tuple[tuple[str, str], ...]:
        """Return cell and reason: what is disclosed, small counts, odd sums, then all intervals, narrow ones first."""
        rows = [(cell.place, f"{cell.interval}: {cell.why}") for cell in self.disclosed]
        rows += [(place, f"a count below {self.smallest} is shown") for place in self.small]
        rows += [(place, "its parts do not add up to it") for place in self.odd]
        return (*rows, *((cell.place, f"{cell.interval} ({cell.mark})") for cell in self._open))

    @property
    def _open(self) -> list[HiddenCell]:
        return sorted((cell for cell in self.hidden if not cell.disclosed), key=_width)

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return {
            "passed": self.passed,
            "sentence": self.sentence,
            "shape": list(self.shape),
            "hidden": [cell.to_json() for cell in self.hidden],
            "small": list(self.small),
            "smallest": self.smallest,
            "odd": list(self.odd),
            "reader knows": list(self.knows),
            "notes": list(self.notes),
        }


def _width(cell: HiddenCell) -> Fraction:
    return Fraction(_ENDLESS) if cell.high is None else cell.high - cell.low


def _plain(number: Fraction) -> str:
    return f"{number.numerator:,}" if number.denominator == 1 else f"{float(number):,g}"


def judge_published(table: PublishedCounts, smallest: int | None = None, *, zeros: bool | None = None) -> TableVerdict:
    """Return what a reader can infer about the hidden cells of a table.

    `smallest` is the smallest count that may be shown; by default what marks such as <5 say.  `zeros` is whether zeros
    are shown as such; by default they are if the table shows one.
    """
    arranged = Arranged.of(table)
    odd = arranged.odd_sums()
    if arranged.table.dashes.any():
        dashless = arranged.without_dashes()
        if odd or not dashless.odd_sums():
            arranged, odd = dashless, dashless.odd_sums()
        else:
            arranged = arranged.with_dashes_hidden()
    counts = arranged.table.counts
    shown_zeros = bool(np.any(arranged.low[arranged.visible] == 0)) if zeros is None else zeros
    arranged = arranged.from_least(1 if counts and shown_zeros else 0)
    limit = _limit(arranged, smallest) if counts else None
    hidden = () if odd else tuple(_hidden_cells(arranged))
    knows = ["every total is the sum of its parts"]
    knows += ["counts are whole numbers, and not negative"] if counts else ["no number is negative"]
    knows += ["zeros are shown, so that a hidden count is at least 1"] if counts and shown_zeros else []
    return TableVerdict(
        arranged.frame.shape,
        hidden,
        tuple(arranged.small_counts(limit)) if limit is not None else (),
        limit,
        odd,
        tuple(knows),
        arranged.table.notes,
    )


def _limit(arranged: Arranged, smallest: int | None) -> int | None:
    """Return the smallest count that may be shown: as asked for, as marks such as <5 say, or the usual one."""
    if smallest is not None:
        return smallest
    stated = arranged.high[arranged.published & ~arranged.visible & (arranged.high != NO_BOUND)]
    if len(stated):
        return int(stated.max()) + 1
    return None if np.any(arranged.published & ~arranged.visible) else SMALLEST


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

    @classmethod
    def of(cls, table: PublishedCounts) -> Arranged:
        """Arrange a table by the totals in each of its axes."""
        axes, places = [], []
        for number, (name, labels) in enumerate(zip(table.axes, table.labels, strict=True)):
            low, high = (np.moveaxis(part, number, 0).reshape(len(labels), -1) for part in (table.low, table.high))
            axis, lines = Lines(name, labels, low, high).axis()
            axes.append(axis)
            places.append(np.array([-1 if line is None else line for line in lines]))
        grid = np.ix_(*places)
        there = reduce(np.logical_and.outer, [line >= 0 for line in places])
        low, high = np.where(there, table.low[grid], 0), np.where(there, table.high[grid], NO_BOUND)
        dashes = there & table.dashes[grid]
        return cls(table, TableFrame(tuple(axes)), low, high, table.marks[grid], there, dashes)

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
            low=np.where(self.dashes, 0, self.low),
            high=np.where(self.dashes, 0, self.high),
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
        raised = finest.reshape(self.frame.shape) & ~self.visible & (self.low < least)
        return replace(self, low=np.where(raised, least, self.low))

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
        low, high = self.low.ravel(), np.where(self.high == NO_BOUND, _ENDLESS, self.high).ravel()
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

    def value(self, number: int) -> Fraction:
        """Return a number of the arrays as the table has it."""
        return Fraction(number, self.table.scale)


def _hidden_cells(arranged: Arranged) -> Iterator[HiddenCell]:
    """Yield every hidden cell with what can be inferred about it."""
    inference = Inference(arranged)
    inference.run()
    targets = np.flatnonzero((arranged.published & ~arranged.visible).ravel())
    low, high = _intervals(arranged, inference, targets)
    for cell, least, most in zip(targets.tolist(), low.tolist(), high.tolist(), strict=True):
        why = inference.reasons.get(cell)
        if least == most and why is None:
            why = "all tables that agree with the published sums have this number here"
        upper = None if most >= _ENDLESS else arranged.value(most)
        mark = str(arranged.marks.ravel()[cell])
        yield HiddenCell(arranged.place(cell), mark, arranged.value(least), upper, why)


class Inference:
    """Bounds of all cells, narrowed sum by sum until nothing changes, and why some have only one number left."""

    def __init__(self, arranged: Arranged) -> None:
        self.arranged = arranged
        self.low = arranged.low.ravel().copy()
        self.high = np.where(arranged.high == NO_BOUND, _ENDLESS, arranged.high).ravel()
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
        low, high = self.low[parts], np.minimum(self.high[parts], _ENDLESS)
        least, most = int(low.sum()), int(high.sum())
        cells = np.array([total, *parts])
        bottom = np.array([least, *(self.low[total] - (most - high))])
        top = np.array([most, *(self.high[total] - (least - low))])
        top = np.where(top > _ENDLESS // 2, _ENDLESS, top)
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
        numbers = [_plain(self.arranged.value(int(self.low[other]))) for other in others]
        listed = numbers if len(numbers) <= _LISTED else [*numbers[:_LISTED], "…"]
        result = _plain(self.arranged.value(value))
        if cell == total:
            return f"{' + '.join(listed)} = {result}, the cells under it"
        whole = _plain(self.arranged.value(int(self.low[total])))
        return f"{' − '.join([whole, *listed])} = {result}, from {self._place(total)}"

    def _reason_by_bounds(self, total: int, parts: list[int], hidden: list[int]) -> str:
        """Return why bounds of several cells together leave only one number."""
        place = self.arranged.place(total)
        if self.low[total] < self.high[total] or len(hidden) == len(parts) == 1:
            return f"the bounds of the cells of {place} leave no other number"
        rest = int(self.low[total] - sum(int(self.low[part]) for part in parts if part not in hidden))
        end = "smaller" if rest == sum(int(self.low[part]) for part in hidden) else "larger"
        number = _plain(self.arranged.value(rest))
        return f"the {len(hidden)} hidden cells of {place} add up to {number}: none can be {end}"

    def _place(self, cell: int) -> str:
        return self.arranged.place(cell)


def _intervals(arranged: Arranged, inference: Inference, targets: NDArray[np.intp]) -> tuple[Whole, Whole]:
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
        high[undecided] = np.minimum(high[undecided], np.where(bounded, most, _ENDLESS).astype(np.int64))
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
    low, high = inference.low, np.where(inference.high >= _ENDLESS, NO_BOUND, inference.high)
    inner = np.ones(frame.size, np.bool_)
    inner[frame.leaves] = False
    exact = np.flatnonzero(low == high)
    bounded = np.flatnonzero(inner & (low < high) & (high != NO_BOUND))
    size = len(frame.leaves) + len(bounded)
    plain = hstack([frame.matrix[exact], csr_array((len(exact), len(bounded)))])
    slack = hstack([frame.matrix[bounded], eye_array(len(bounded), dtype=np.int8)])
    sums = csr_array(vstack([plain, slack]), dtype=np.int64)
    values = np.concatenate([low[exact], high[bounded]])
    lows = np.concatenate([low[frame.leaves], np.zeros(len(bounded), np.int64)])
    highs = np.concatenate([high[frame.leaves], high[bounded] - low[bounded]])
    return TableAttacker(sums, values, lows, highs), size
