"""Judging: what a reader of a published table can recompute of its hidden cells, with the subtraction that does it.

The reader knows that every total is the sum of its parts, that counts are whole numbers and not negative, and, where
zeros are shown, that a hidden count is at least 1.  Intervals are the least and largest value among all tables that
agree with what is published.  Numbers that add up only up to rounding stand for all that are rounded to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from incrowd.core.words import counted
from incrowd.workflows.check.published.arrangement import ENDLESS, ROUNDED, Arranged
from incrowd.workflows.check.published.inference import Inference, intervals, plain
from incrowd.workflows.check.published.reading import NO_BOUND, PublishedCounts

SMALLEST = 3
"""The smallest count that may be shown where a table hides nothing and no other was asked for."""


@dataclass(frozen=True)
class HiddenCell:
    """A hidden cell: its labels, the mark in its place, what a reader can infer (None: no bound), and how."""

    place: str
    mark: str
    low: Fraction | None
    high: Fraction | None
    why: str | None = None

    @property
    def disclosed(self) -> bool:
        """Whether only one number is possible."""
        return self.low is not None and self.low == self.high

    @property
    def interval(self) -> str:
        """What a reader can infer, in words."""
        if self.low is None:
            return "any number" if self.high is None else f"at most {plain(self.high)}"
        if self.disclosed:
            return f"exactly {plain(self.low)}"
        return f"at least {plain(self.low)}" if self.high is None else f"{plain(self.low)} to {plain(self.high)}"

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        low, high = (None if end is None else float(end) for end in (self.low, self.high))
        return {"cell": self.place, "mark": self.mark, "low": low, "high": high, "why": self.why}


@dataclass(frozen=True)
class TableVerdict:
    """The hidden cells of a published table, the small counts that it shows, and sums that do not add up.

    `unit` is what all numbers are rounded to, if they add up only so.  `shares` are hidden numbers whose percentage is
    shown.
    """

    shape: tuple[int, ...]
    hidden: tuple[HiddenCell, ...]
    small: tuple[str, ...]
    smallest: int | None
    odd: tuple[str, ...]
    knows: tuple[str, ...]
    notes: tuple[str, ...]
    unit: Fraction | None = None
    shares: tuple[str, ...] = ()

    @property
    def disclosed(self) -> tuple[HiddenCell, ...]:
        """The hidden cells that can be recomputed."""
        return tuple(cell for cell in self.hidden if cell.disclosed)

    @property
    def passed(self) -> bool:
        """Whether no hidden cell can be recomputed, no small count is shown, and the sums could be used."""
        return not self.disclosed and not self.small and not self.odd and not self.shares

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        if self.passed and self.unit is not None and not self.hidden:
            return f"From this table alone, nobody can recompute a number that was rounded to {plain(self.unit)}."
        if self.passed:
            return (
                f"From this table alone, nobody can recompute a hidden cell ({counted(len(self.hidden), 'cell')})."
                if self.hidden
                else f"No cell is hidden, and no count from 1 to {(self.smallest or 1) - 1} is shown."
            )
        parts = []
        if self.disclosed:
            parts.append(f"{len(self.disclosed):,} of {counted(len(self.hidden), 'hidden cell')} can be recomputed")
        if self.shares:
            verb = "stands" if len(self.shares) == 1 else "stand"
            parts.append(f"{counted(len(self.shares), 'hidden number')} {verb} beside a percentage that is shown")
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
        rows += [(place, "the percentage beside it is shown") for place in self.shares]
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
            "percentages": list(self.shares),
            "small": list(self.small),
            "smallest": self.smallest,
            "odd": list(self.odd),
            "reader knows": list(self.knows),
            "notes": list(self.notes),
        }


def _width(cell: HiddenCell) -> Fraction:
    return Fraction(ENDLESS) if cell.high is None or cell.low is None else cell.high - cell.low


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
    limit, unit = _limit(arranged, smallest) if counts else None, None
    if odd and (rounded := arranged.rounded()) is not None:
        (unit, arranged), odd, limit = rounded, (), None
    hidden = () if odd else tuple(_hidden_cells(arranged))
    return TableVerdict(
        arranged.frame.shape,
        tuple(cell for cell in hidden if cell.mark != ROUNDED or cell.disclosed),
        tuple(arranged.small_counts(limit)) if limit is not None else (),
        limit,
        odd,
        _knowledge(table, unit, zeros=shown_zeros),
        (
            *arranged.table.notes,
            *([f"all numbers are multiples of {plain(unit)}, and add up only as such"] if unit else ()),
        ),
        unit,
        table.shares,
    )


def _knowledge(table: PublishedCounts, unit: Fraction | None, *, zeros: bool) -> tuple[str, ...]:
    """Return what a reader knows beside the numbers, in words."""
    sums = "every total is the sum of its parts"
    if unit is not None:
        sums += f", before all are rounded to {plain(unit)}"
    if table.signed:
        return (sums, "numbers can be negative")
    if not table.counts:
        return (sums, "no number is negative")
    counts = (sums, "counts are whole numbers, and not negative")
    return (*counts, "zeros are shown, so that a hidden count is at least 1") if zeros else counts


def _limit(arranged: Arranged, smallest: int | None) -> int | None:
    """Return the smallest count that may be shown: as asked for, as marks such as <5 say, or the usual one."""
    if smallest is not None:
        return smallest
    stated = arranged.high[arranged.published & ~arranged.visible & (arranged.high != NO_BOUND)]
    if len(stated):
        return int(stated.max()) + 1
    return None if np.any(arranged.published & ~arranged.visible) else SMALLEST


def _hidden_cells(arranged: Arranged) -> Iterator[HiddenCell]:
    """Yield every hidden cell with what can be inferred about it."""
    inference = Inference(arranged)
    inference.run()
    targets = np.flatnonzero((arranged.published & ~arranged.visible).ravel())
    low, high = intervals(arranged, inference, targets)
    for cell, least, most in zip(targets.tolist(), low.tolist(), high.tolist(), strict=True):
        why = inference.reasons.get(cell)
        if least == most and why is None:
            why = "all tables that agree with the published sums have this number here"
        far = arranged.far
        ends = [arranged.value(end, cell) for end in (least, most)]
        lower = None if -ends[0] >= far else ends[0]
        upper = None if most >= ENDLESS or ends[1] >= far else ends[1]
        yield HiddenCell(arranged.place(cell), str(arranged.marks.ravel()[cell]), lower, upper, why)
