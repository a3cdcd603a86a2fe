"""Workload: the error of counts on the release instead of the original.

Each query asks which share of the rows lies in a range of an ordered column, or has one of some values of another, in
one, two or three columns together.  Queries are made once, from the domains alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.coded import Coded
from incrowd.measures.score import Score

_QUESTIONS = 300  # random ranges, the same for both tables: their mean error is stable
_COLUMNS = 3  # of a range; more columns leave few rows
_SEED = 20120  # fixed, so that two measurements agree
_MEANS = "mean over {} counts of the difference between the released and the original share of rows"


@dataclass(frozen=True)
class RangeQuestion:
    """A query: which values of some columns count."""

    columns: tuple[int, ...]
    values: tuple[NDArray[np.bool_], ...]

    def share(self, table: Coded) -> float:
        """Return the share of rows that have such values in all columns."""
        masks = (values[table.codes[column]] for column, values in zip(self.columns, self.values, strict=True))
        inside = reduce(np.logical_and, masks)
        return float(table.weights[inside].sum() / max(table.rows, 1e-300))


def questions(table: Coded, number: int = _QUESTIONS) -> Iterator[RangeQuestion]:
    """Yield queries on the columns of a table, the same for every table with the same values."""
    chance, ranks = np.random.default_rng(_SEED), list(map(_ranks, table.positions))
    for _ in range(number):
        size = int(chance.integers(1, min(_COLUMNS, len(table.names)) + 1))
        columns = tuple(int(column) for column in np.sort(chance.choice(len(table.names), size, replace=False)))
        yield RangeQuestion(columns, tuple(_values(table.sizes[place], ranks[place], chance) for place in columns))


def _ranks(positions: NDArray[np.float64] | None) -> NDArray[np.intp] | None:
    """Return the place of each value in their order; what is missing comes last."""
    return None if positions is None else np.argsort(np.argsort(positions, kind="stable"), kind="stable")


def _values(size: int, ranks: NDArray[np.intp] | None, chance: np.random.Generator) -> NDArray[np.bool_]:
    """Return some of a column's values: a range where there is an order, half of them at random otherwise."""
    if ranks is None:
        chosen = chance.random(size) < 0.5
        chosen[int(chance.integers(size))] = True
        return chosen
    low, high = np.sort(chance.integers(size, size=2))
    return np.asarray((ranks >= low) & (ranks <= high))


def workload_error(before: Coded, after: Coded, chosen: Iterable[RangeQuestion] | None = None) -> Score:
    """Return the mean absolute error of the shares, with its range over the queries.

    >>> half = Coded(("sex",), np.array([[0, 1]]), np.array([1.0, 1.0]), (2,), (None,))
    >>> workload_error(half, half).value
    0.0
    """
    asked_questions = questions(before) if chosen is None else chosen
    errors = np.array([abs(question.share(before) - question.share(after)) for question in asked_questions])
    means, ends = _MEANS.format(len(errors)), np.quantile(errors, (0.025, 0.975))
    value = float(errors.mean())
    low, high = min(float(ends[0]), value), max(float(ends[1]), value)
    return Score("workload error", value, means, low, high, "contains 95 % of the queries")
