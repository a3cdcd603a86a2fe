"""Streaming: a model from a fresh secret sample of rows in each round; only the sample is ever held."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from incrowd.accounting.accountant import epsilon as epsilon_of
from incrowd.core.cells import Cells
from incrowd.core.coins import check_scale
from incrowd.core.loss import Gaussian, Sampled
from incrowd.core.loss import Sequence as Rounds
from incrowd.core.steps.step import fold
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.fits import Floats, Scores
from incrowd.methods.learning.shared.growth import with_target
from incrowd.methods.learning.shared.statistics import RESIDUAL, SCORE, Integers, Records, added, noisy, residuals
from incrowd.methods.learning.shared.tree_steps import SampleGradients
from incrowd.methods.shared.columns import row_limits

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.recoding import Classes
    from incrowd.core.table import RowFilter, Table
    from incrowd.core.unit import Unit

FINE = 32
"""What a residual of 1 is in integers here; a row that is counted adds as much."""
_SAMPLE = 20_000  # rows of a sample: enough that a round is not mostly noise, few enough that the rate saves budget
# passes over each column; each round is a pass over all rows, which takes time
_EPOCHS, _ROUNDS, _MOST_ROUNDS = 10, 200, 2000
_DOUBT = 2.0  # post-processing: how much a round trusts noisy counts
_NEAR = 128
"""Scales are searched to one part in so many."""


@dataclass(frozen=True, eq=False)
class SampledRecords:
    """Rows of which fresh samples are counted; of each person the same row is kept in every round."""

    table: Table
    classes: tuple[Classes, ...]
    limits: tuple[RowFilter, ...]

    @classmethod
    def of(cls, table: Table, classes: Sequence[Classes], coins: Coins) -> SampledRecords:
        """Return the rows of a table, of which none is read yet."""
        return cls(table, tuple(classes), row_limits(table, coins))

    def sample(self, rate: Fraction, coins: Coins) -> Records:
        """Count a fresh secret sample, in one pass over the rows; its coins are used once."""
        cells = Cells(tuple(item.recoding for item in self.classes))
        counts = self.table.engine.count(self.table.rows, cells, *self.limits, coins.sample(rate))
        return Records(counts, tuple(map(len, self.classes)))


def rate_of(expected_rows: int | None, delta: Fraction | None) -> Fraction:
    """Return the rate of the samples, by about how many rows there are."""
    if expected_rows is None or delta is None:
        raise InvalidParameter(
            "stream needs a delta, such as 1e-6, and expected_rows: about how many rows there are, a public number."
        )
    return Fraction(1, min(1000, max(4, expected_rows // _SAMPLE)))


def sampled_sums(
    width: tuple[int, int], budget: tuple[Fraction, Fraction], rate: Fraction, unit: Unit
) -> tuple[SampleGradients]:
    """Return gradients of samples that cost ε at δ, for so many columns and outputs."""
    rounds = rounds_of(*width)
    fold((SampleGradients(rounds, rate, FINE, Fraction(1)),), unit)  # which refuses people with several rows
    return (SampleGradients(rounds, rate, FINE, quietest(*budget, rate, rounds)),)


def rounds_of(columns: int, outputs: int) -> int:
    """Return how many rounds there are: one to count each column, then some for each column and output.

    >>> rounds_of(8, 1), rounds_of(64, 10)
    (88, 1344)
    """
    epochs = max(2, min(_EPOCHS, _ROUNDS // (columns * outputs)))
    rounds = columns * (1 + epochs * outputs)
    if rounds > _MOST_ROUNDS:
        raise InvalidParameter(
            f"these columns and classes need {rounds:,} rounds over all rows, and {_MOST_ROUNDS:,} are allowed: name "
            "fewer columns, or use another model."
        )
    return rounds


@lru_cache(maxsize=16)
def quietest(epsilon: Fraction, delta: Fraction, rate: Fraction, rounds: int) -> Fraction:
    """Return a scale of noise, a whole number, with which all rounds cost at most ε at δ, and little less.

    Noise is never narrower than one row, which no model needs: then the rounds cost less than ε.
    """

    def cost(scale: int) -> float:
        loss = Rounds((Sampled(rate, Gaussian(Fraction(scale), FINE)),) * rounds)
        return epsilon_of(loss, delta).value

    if cost(FINE) <= epsilon:
        return Fraction(FINE)
    low, high = FINE, _first_scale(epsilon, delta, rate, rounds)
    while cost(high) > epsilon:
        low, high = high, 2 * high
        check_scale(Fraction(high))
    while high - low > 1 + high // _NEAR:
        middle = round(math.sqrt(low * high))
        low, high = (low, middle) if cost(middle) <= epsilon else (middle, high)
    return Fraction(high)


def _first_scale(epsilon: Fraction, delta: Fraction, rate: Fraction, rounds: int) -> int:
    """Return about the scale, as if all losses together were normal."""
    scale = Fraction(FINE * float(rate) * math.sqrt(2.0 * rounds * math.log(1.0 / delta))) / epsilon
    check_scale(scale)
    return max(FINE + 1, math.ceil(scale))


@dataclass(frozen=True, eq=False)
class SampleDescent:
    """How samples are followed: how many classes the target has, the outputs, and the residuals of a turn.

    `curvature` says how fast residuals change with scores at most: a step is divided by it.
    """

    classes: int
    outputs: int
    residuals: Callable[[Records, Integers, tuple[int, int]], Integers]
    curvature: float

    def follow(
        self, sizes: Sequence[int], rows: SampledRecords, step: SampleGradients, coins: Coins
    ) -> tuple[Floats, Floats, float]:
        """Return the scores of all classes, noisy counts of them, and about how many rows there are.

        Each column is counted, then columns and outputs take turns to follow their residuals; the mean of the last half
        of the way is taken.
        """
        noise, starts = float(step.scale / step.residual), np.cumsum([0, *sizes])
        flat, mean = (np.zeros((starts[-1], self.outputs)) for _ in range(2))
        counts = np.concatenate(
            [
                noisy(column_counts(rows.sample(step.rate, coins), self.classes, place), step.scale, coins) / FINE
                for place in range(len(sizes))
            ]
        )
        pace = np.maximum(counts, 0.0) * self.curvature + _DOUBT * noise
        turns = [(place, output) for place in range(len(sizes)) for output in range(self.outputs)]
        epochs = (step.rounds // len(sizes) - 1) // self.outputs
        for epoch in range(epochs):
            for place, output in turns:
                part = slice(starts[place], starts[place + 1])
                scores = Scores(np.zeros(self.outputs), flat).rounded
                sums = self.residuals(rows.sample(step.rate, coins), scores[1], (place, output))
                flat[part, output] += noisy(sums, step.scale, coins) / FINE / pace[part]
            if epoch >= epochs // 2:
                mean += np.clip(flat, -8.0, 8.0) / (epochs - epochs // 2)
        return mean, counts, _rows(counts, sizes) / float(step.rate)


def _rows(counts: Floats, sizes: Sequence[int]) -> float:
    sums = np.add.reduceat(counts, np.cumsum([0, *sizes])[:-1])
    weights = 1.0 / np.array(sizes, np.float64)
    return float(max(0.0, weights @ sums / weights.sum()))


def column_counts(records: Records, outputs: int, column: int) -> Integers:
    """Return how many rows have each class of a column, each of them as `FINE`."""
    size = records.sizes[column]
    total = np.zeros(size, np.int64)
    for codes, times, _ in with_target(records, outputs):
        total += FINE * added(codes[:, column], times, size)
    return total


def column_residuals(records: Records, outputs: int, scores: Integers, turn: tuple[int, int]) -> Integers:
    """Return the sum of residuals of one output for each class of one column, each from −`FINE` to `FINE`."""
    column, output = turn
    starts, size = np.cumsum([0, *records.sizes[:-1]])[:-1], records.sizes[column]
    total, unit = np.zeros(size, np.int64), RESIDUAL // FINE
    for codes, times, target in with_target(records, outputs):
        errors = residuals(scores[codes + starts].sum(axis=1), target)[:, output]
        total += added(codes[:, column], (errors + unit // 2) // unit * times, size)
    return total


def number_residuals(records: Records, units: Integers, scores: Integers, column: int) -> Integers:
    """Return the sum of residuals of a number for each class of one column, each cut to −`FINE` to `FINE`.

    `units` has the number of each class of the target in units of `SCORE`.
    """
    starts, size = np.cumsum([0, *records.sizes[:-1]])[:-1], records.sizes[column]
    total = np.zeros(size, np.int64)
    for codes, times, target in with_target(records, len(units)):
        off = units[target] - scores[codes + starts].sum(axis=(1, 2))
        errors = np.clip((off * FINE + SCORE // 2) // SCORE, -FINE, FINE)
        total += added(codes[:, column], errors * times, size)
    return total
