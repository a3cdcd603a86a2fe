"""Accuracy: how exact each column of an answer will be, before a row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from incrowd.queries.measuring.estimates import NO_INTERVAL, Reading
from incrowd.queries.measuring.picks import Pick
from incrowd.queries.measuring.presenting import COMPUTED
from incrowd.queries.measuring.statistics import Of, Statistic, count_of
from incrowd.queries.question import Aggregate, OutputColumn, Question

SIZES = (10, 100, 1000, 10_000)
"""For groups of so many rows the error of means is told."""


@dataclass(frozen=True)
class Expected:
    """The half-width of the 95 % interval of an output: one for all, or one for each of some sizes of a group."""

    output: str
    half_width: float | None = None
    by_size: tuple[tuple[int, float], ...] = ()
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the plain form.

        >>> Expected("n", 3.0).to_json()
        {'output': 'n', 'half_width': 3.0}
        """
        plain: dict[str, Any] = {"output": self.output}
        plain |= {} if self.half_width is None else {"half_width": self.half_width}
        plain |= {"by_size": [list(pair) for pair in self.by_size]} if self.by_size else {}
        return plain | ({"note": self.note} if self.note else {})


def expected_of(question: Question, reading: Reading | None, picks: tuple[Pick, ...]) -> tuple[Expected, ...]:
    """Return for each output how exact it will be; keys are exact and left out."""
    aggregates = {each.name: each for each in question.aggregates}
    notes = {pick.aggregate.name: pick.note for pick in picks}
    keys = {key.name for key in question.keys}
    return tuple(
        _expected(output, aggregates, reading, notes)
        for output in question.outputs
        if output.aggregate is not None or output.expression.unalias().name not in keys
    )


def _expected(
    output: OutputColumn, aggregates: dict[str, Aggregate], reading: Reading | None, notes: dict[str, str]
) -> Expected:
    aggregate = aggregates.get(output.aggregate or "")
    if aggregate is None:
        return Expected(output.name, note=COMPUTED)
    if aggregate.name in notes or reading is None:
        return Expected(output.name, note=notes.get(aggregate.name, ""))
    half = reading.half_width(aggregate)
    if half is not None:
        return Expected(output.name, half)
    sizes = tuple((size, _at(reading, aggregate, size)) for size in SIZES)
    known = all(math.isfinite(width) for _, width in sizes)
    return Expected(output.name, by_size=sizes) if known else Expected(output.name, note=NO_INTERVAL)


def _at(reading: Reading, aggregate: Aggregate, size: int) -> float:
    """Return half the interval of a group of `size` rows whose values balance around the middle of their range."""
    vector = np.zeros((1, len(reading.statistics.all)), dtype=np.int64)
    wanted = Statistic(Of.ROWS) if aggregate.value is None else count_of(aggregate.value)
    if wanted in reading.statistics.all:
        vector[0, reading.statistics.place(wanted)] = round(size * (reading.rate or 1))
    interval = reading.of(aggregate, vector).interval
    return math.inf if interval is None else float((interval.high - interval.low)[0] / 2.0)
