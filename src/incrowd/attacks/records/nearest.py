"""Attacks by the nearest published row: linkability and inference.

The distance is Gower's: over the columns, the sum of how far apart two values are.  Numbers and days are as far apart
as their difference over the range of all.  A range is 0 away from what lies in it.  Other labels are 0 away if they
cover the value, else 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.candidates import Codes, ColumnMatch, distinct
from incrowd.attacks.cover import ends_of, numbers
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.trial import Trial
from incrowd.errors import InvalidParameter

_FEW = 4
"""Distances of numbers are computed once for equal pairs where these are at most a quarter of all."""
_CELLS = 1 << 22  # distances in memory at a time: 32 MB
Numbers = NDArray[np.float64]


def nearest(columns: Sequence[ColumnMatch], neighbors: int) -> Codes:
    """Return for each person the places of the nearest distinct published rows, the nearest first.

    Among rows equally far the order of their labels decides, never their position.
    """
    return _searched(columns, neighbors)[0]


def nearest_distances(columns: Sequence[ColumnMatch], neighbors: int) -> Numbers:
    """Return for each person how far the nearest distinct published rows are, the nearest first."""
    return _searched(columns, neighbors)[1]


def _searched(columns: Sequence[ColumnMatch], neighbors: int) -> tuple[Codes, Numbers]:
    """Return the places of the nearest distinct rows and how far they are, block by block of people."""
    rows, _ = distinct([column.labels.codes for column in columns])
    people, person_of = distinct([column.values.codes for column in columns])
    apart = [_Apart.of(column) for column in columns]
    number = min(neighbors, len(rows))
    places, distances = np.zeros((len(people), number), np.int64), np.zeros((len(people), number))
    step = max(1, _CELLS // max(1, len(rows)))
    for start in range(0, len(people), step):
        block = people[start : start + step]
        far = np.zeros((len(block), len(rows)))
        for column, between in enumerate(apart):
            far += between.between(block[:, column], rows[:, column])
        near = _least(far, number)
        places[start : start + step] = near
        distances[start : start + step] = np.take_along_axis(far, near, axis=1)
    return places[person_of], distances[person_of]


def nearest_rows(part: Sequence[ColumnMatch], whole: Sequence[ColumnMatch], neighbors: int) -> Codes:
    """Return for each person the published rows nearest in a part of the columns; among equals, by the whole record."""
    _, which = distinct([column.labels.codes for column in part])
    order = np.lexsort([*(column.labels.codes for column in reversed(list(whole))), which])
    first = order[np.searchsorted(which[order], np.arange(int(which.max()) + 1))]
    return first[nearest(part, neighbors)]


def _least(far: Numbers, number: int) -> Codes:
    if number == 1:
        return np.asarray(far.argmin(axis=1)[:, None], np.int64)
    edge = np.partition(far, number - 1, axis=1)[:, number - 1 : number]
    owner, place = np.nonzero(far <= edge)
    order = np.lexsort((place, far[owner, place], owner))
    first = np.searchsorted(owner, np.arange(len(far)))
    return np.asarray(place[order][first[:, None] + np.arange(number)], np.int64)


@dataclass(frozen=True, eq=False)
class _Apart:
    """How far apart values and labels of one column are: numbers by their difference, others by whether they fit."""

    column: ColumnMatch
    values: Numbers
    low: Numbers
    high: Numbers

    @classmethod
    def of(cls, column: ColumnMatch) -> _Apart:
        label_numbers = numbers(column.labels.texts).tolist()
        pairs = [
            ends_of(label) or (number, number) for label, number in zip(column.labels.texts, label_numbers, strict=True)
        ]
        low, high = np.array(pairs, float).reshape(-1, 2).T
        return cls(column, numbers(column.values.texts), low, high)

    @cached_property
    def reach(self) -> float | None:
        """The range of all numbers, or None if most values are not numbers."""
        if np.isfinite(self.values).mean() <= 0.5 or np.isfinite(self.low).mean() <= 0.5:
            return None
        every = np.concatenate([self.values, self.low, self.high])
        return float(np.nanmax(every) - np.nanmin(every)) or 1.0

    def between(self, values: Codes, labels: Codes) -> Numbers:
        """Return the distance of each value from each label, from their codes."""
        distinct_values, back = np.unique(values, return_inverse=True)
        if self.reach is not None:
            if _FEW * len(distinct_values) * len(self.low) > len(values) * len(labels):
                return self._far(values, labels)
            return np.asarray(self._far(distinct_values, np.arange(len(self.low)))[back][:, labels])
        apart = np.ones((len(distinct_values), len(self.low)))
        for place, value in enumerate(distinct_values):
            apart[place, self.column.cover.labels_of(int(value))] = 0.0
        return np.asarray(apart[back][:, labels])

    def _far(self, values: Codes, labels: Codes) -> Numbers:
        value, low, high = self.values[values][:, None], self.low[labels][None, :], self.high[labels][None, :]
        far = np.maximum(0.0, np.maximum(low - value, value - high)) / (self.reach or 1.0)
        return np.asarray(np.nan_to_num(far, nan=1.0))


def linkability(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Join two halves of people's records through the published row that is nearest to each half.

    Knows: of a person the known columns; of the same person, among others, the remaining published columns, without a
    name.  Success: a published row is among the nearest to both halves.  Baseline: the halves of two published rows
    chosen at random.  For tables whose rows are real people's and for synthetic ones.

    Meaningless where few distinct rows were published: everybody's halves meet there, also those of the control group.

    Source: Opinion 05/2014 of the Article 29 Working Party; Giomi, Boenisch, Wehmeyer & Tasnádi 2023 (anonymeter).
    """
    trial = Trial.of(published, knowledge, control)
    if not trial.rest:
        raise InvalidParameter("linkability needs a second half: leave a published column out of the known ones.")
    halves = [trial.columns(names) for names in (trial.known_columns, trial.rest)]
    codes = [distinct([column.labels.codes for column in half])[1] for half in halves]
    width = int(codes[1].max()) + 1
    pairs = codes[0] * width + codes[1]
    near = [nearest(half, 1)[:, 0] for half in halves]
    hits = np.isin(near[0] * width + near[1], pairs)
    some = [np.sort(half)[knowledge.chance.integers(0, len(half), len(hits))] for half in codes]
    baseline = np.isin(some[0] * width + knowledge.chance.permutation(some[1]), pairs)
    story: tuple[str, ...] = ()
    if (person := trial.victim(hits)) is not None:
        story = (
            f"One party knows of a person: {trial.person_text(person, trial.known_columns)}.",
            f"Another has, without a name: {trial.person_text(person, trial.rest)}.",
            "One published row is among the nearest to both halves: the two conclude that it is the same person.",
        )
    return trial.finding("linkability", Risk.LINKABILITY, hits, baseline, story)


def inference(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Take the secret of the nearest published row as the person's.

    Knows: some columns of a person.  Success: the secret of the published row nearest in these columns is the person's
    (numbers within the slack of the secret, if it has one; a masked number if at most 1 % of the people have one that
    is nearer to it).  Baseline: the secret of a published row chosen at random.  For tables whose rows are real
    people's and for synthetic ones.

    Meaningless without a control group: what follows from the known columns for everybody is not a secret of the people
    in the data.

    Source: Opinion 05/2014 of the Article 29 Working Party; Giomi, Boenisch, Wehmeyer & Tasnádi 2023 (anonymeter).
    """
    trial = Trial.of(published, knowledge, control)
    *columns, secret = trial.columns([*(name for name in trial.known_columns if name != trial.secret), trial.secret])
    rows = nearest_rows(columns, [*columns, secret], 1)[:, 0]
    hits = secret.fits(secret.labels.codes[rows])
    some = np.sort(secret.labels.codes)[knowledge.chance.integers(0, published.table.num_rows, len(hits))]
    story = trial.story(
        hits, lambda person: [f"The nearest published row has {trial.row_text(int(rows[person]), (trial.secret,))}."]
    )
    return trial.finding("inference", Risk.INFERENCE, hits, secret.fits(some), story)
