"""Nearest: the published rows that are most like a person in some columns.

The distance is Gower's: over the columns, the sum of how far apart two values are.  Numbers and days are as far apart
as their difference over the range of all; a range holds what lies in it; other labels are 0 away if they cover the
value, else 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.attacks.candidates import Codes, ColumnMatch, distinct
from incrowd.attacks.cover import ends_of, numbers

_CELLS = 1 << 22
Numbers = NDArray[np.float64]


def nearest(columns: Sequence[ColumnMatch], neighbors: int) -> Codes:
    """Return for each person the places of the nearest distinct published rows, the nearest first.

    Among rows equally far the order of their labels decides, never where they stand.
    """
    rows, _ = distinct([each.labels.codes for each in columns])
    people, person_of = distinct([each.values.codes for each in columns])
    apart = [_Apart.of(each) for each in columns]
    wanted = min(neighbors, len(rows))
    found = np.zeros((len(people), wanted), np.int64)
    step = max(1, _CELLS // max(1, len(rows)))
    for start in range(0, len(people), step):
        block = people[start : start + step]
        far = np.zeros((len(block), len(rows)))
        for column, distances in enumerate(apart):
            far += distances.between(block[:, column], rows[:, column])
        found[start : start + step] = _least(far, wanted)
    return found[person_of]


def nearest_rows(part: Sequence[ColumnMatch], whole: Sequence[ColumnMatch], neighbors: int) -> Codes:
    """Return for each person the published rows nearest in a part of the columns; among equals, by the whole record."""
    _, which = distinct([each.labels.codes for each in part])
    order = np.lexsort([*(each.labels.codes for each in reversed(list(whole))), which])
    first = order[np.searchsorted(which[order], np.arange(int(which.max()) + 1))]
    return first[nearest(part, neighbors)]


def _least(far: Numbers, wanted: int) -> Codes:
    if wanted == 1:
        return np.asarray(far.argmin(axis=1)[:, None], np.int64)
    edge = np.partition(far, wanted - 1, axis=1)[:, wanted - 1 : wanted]
    near = np.where(far <= edge, far, np.inf)
    return np.asarray(np.argsort(near, axis=1, kind="stable")[:, :wanted], np.int64)


@dataclass(frozen=True, eq=False)
class _Apart:
    """How far apart values and labels of one column are: numbers by their difference, others by whether they fit."""

    column: ColumnMatch
    values: Numbers
    low: Numbers
    high: Numbers

    @classmethod
    def of(cls, column: ColumnMatch) -> _Apart:
        each = numbers(column.labels.texts).tolist()
        pairs = [ends_of(label) or (number, number) for label, number in zip(column.labels.texts, each, strict=True)]
        low, high = np.array(pairs, float).reshape(-1, 2).T
        return cls(column, numbers(column.values.texts), low, high)

    @cached_property
    def reach(self) -> float | None:
        """The range of all numbers, or None if this is no column of numbers."""
        if np.isfinite(self.values).mean() <= 0.5 or np.isfinite(self.low).mean() <= 0.5:
            return None
        every = np.concatenate([self.values, self.low, self.high])
        return float(np.nanmax(every) - np.nanmin(every)) or 1.0

    def between(self, values: Codes, labels: Codes) -> Numbers:
        """Return the distance of each value from each label, from their codes."""
        if self.reach is not None:
            value, low, high = self.values[values][:, None], self.low[labels][None, :], self.high[labels][None, :]
            far = np.maximum(0.0, np.maximum(low - value, value - high)) / self.reach
            return np.asarray(np.nan_to_num(far, nan=1.0))
        known, back = np.unique(values, return_inverse=True)
        apart = np.ones((len(known), len(self.low)))
        for place, value in enumerate(known):
            apart[place, self.column.cover.labels_of(int(value))] = 0.0
        return np.asarray(apart[back][:, labels])
