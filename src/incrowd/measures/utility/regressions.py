"""Regressions on both tables: coefficients compared, and how well a model distinguishes released from original rows.

The *overlap* of two 95 % intervals is the mean of what they share over the length of each: 1 if they are equal, 0 if
they are disjoint.  The *distance* is how far the coefficient moved, in standard errors of the original one.

*Propensity*: both tables are stacked, and a logistic regression estimates for each row whether it is released.  With c
the share of released rows, *pMSE* is the mean of (estimate − c)²: 0 if rows cannot be distinguished, c(1 − c) if
always.  A release from the same distribution has, on average, (k − 1)(1 − c)²c / N, with k parameters and N rows; the
*ratio* to that is near 1.

Source: Karr, Kohnen, Oganian, Reiter & Sanil 2006 for overlaps; Woo, Reiter, Oganian & Karr 2009 and Snoke, Raab,
Nowok, Dibben & Slavkovic 2018 for propensity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.measures.coded import Coded
from incrowd.measures.score import NORMAL_95, Score

Matrix = NDArray[np.float64]
_VALUES = 20  # each is a column of the regression; rarer values are put together


class Features:
    """How columns become numbers: ordered ones scaled, of the others the most frequent values one by one.

    Means and frequent values of one table are used for all.

    >>> table = Coded(("sex",), np.array([[0, 0, 1]]), np.ones(3), (2,), (None,))
    >>> Features(table, [0]).of(table).tolist()
    [[0.0], [0.0], [1.0]]
    """

    def __init__(self, table: Coded, columns: Sequence[int]) -> None:
        self._columns = [self._column(table, column) for column in columns]

    def of(self, table: Coded) -> Matrix:
        """Return a line for each tuple; the most frequent value of a column is where all its features are 0."""
        return np.hstack([values[table.codes[column]] for column, values in self._columns])

    @property
    def width(self) -> int:
        """How many features there are."""
        return sum(values.shape[1] for _, values in self._columns)

    @staticmethod
    def _column(table: Coded, column: int) -> tuple[int, Matrix]:
        shares, positions = table.marginal(column), table.positions[column]
        if positions is None:
            frequent = np.argsort(-shares, kind="stable")[1 : _VALUES + 1]
            return column, (np.arange(table.sizes[column])[:, None] == frequent[None, shares[frequent] > 0]).astype(
                float
            )
        present = np.isfinite(positions)
        inside = np.where(present, positions, 0.0)
        weight = shares * present / max(float((shares * present).sum()), 1e-300)
        mean = float((weight * inside).sum())
        spread = float(np.sqrt((weight * (inside - mean) ** 2).sum())) or 1.0
        scaled = np.where(present, (inside - mean) / spread, 0.0)[:, None]
        absent = (~present).astype(float)[:, None]
        return column, np.hstack([scaled, absent]) if shares[~present].sum() > 0 else scaled


_REGRESSION_ROWS = 50_000  # evenly spaced rows: fewer is faster, more is finer


@dataclass(frozen=True)
class CoefficientEstimate:
    """A coefficient with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Coefficient:
    """A coefficient before and after, with how far the intervals overlap and how far it moved."""

    before: CoefficientEstimate
    after: CoefficientEstimate

    @property
    def overlap(self) -> float:
        """How far the two intervals overlap, from 0 to 1."""
        one, other = self.before, self.after
        shared = min(one.high, other.high) - max(one.low, other.low)
        lengths = (one.high - one.low, other.high - other.low)
        if shared < 0 or min(lengths) <= 0:
            return 0.0 if shared < 0 or max(lengths) > 0 else 1.0
        return float(sum(shared / length for length in lengths) / 2.0)

    @property
    def distance(self) -> float:
        """How far it moved, in standard errors of the original one."""
        error = (self.before.high - self.before.low) / (2.0 * NORMAL_95)
        return abs(self.after.value - self.before.value) / error if error > 0 else 0.0


def least_squares(design: Matrix, target: NDArray[np.float64]) -> tuple[CoefficientEstimate, ...]:
    """Return the coefficients of a linear regression with their intervals, the constant first.

    >>> [round(each.value, 6) for each in least_squares(np.array([[0.0], [1], [2]]), np.array([1.0, 3, 5]))]
    [1.0, 2.0]
    """
    whole = np.hstack([np.ones((len(design), 1)), design])
    products = whole.T @ whole
    inverse = np.linalg.pinv(products, hermitian=True)
    coefficients = inverse @ whole.T @ target
    residuals = target - whole @ coefficients
    variance = float(residuals @ residuals) / max(1, len(target) - np.linalg.matrix_rank(products, hermitian=True))
    errors = NORMAL_95 * np.sqrt(np.maximum(variance * np.diag(inverse), 0.0))
    return tuple(
        CoefficientEstimate(float(b), float(b - e), float(b + e)) for b, e in zip(coefficients, errors, strict=True)
    )


def coefficients(before: Coded, after: Coded, target: str) -> tuple[Coefficient, ...]:
    """Return the regression of one ordered column on all others, before and after, without the constant."""
    place = before.place(target)
    if before.positions[place] is None:
        raise InvalidParameter(f"{target!r} has neither numbers nor days: a regression needs one of those.")
    others = [column for column in range(len(before.names)) if column != place]
    if not others:
        return ()
    features, fits = Features(before, others), []
    for table in (before.picked(_REGRESSION_ROWS), after.picked(_REGRESSION_ROWS)):
        values = table.numbers(place)
        present = np.isfinite(values)
        if np.count_nonzero(present) <= features.width + 1:
            return ()
        rows = table if present.all() else table.some(present)
        fits.append(least_squares(features.of(rows), values[present]))
    return tuple(Coefficient(one, other) for one, other in zip(fits[0][1:], fits[1][1:], strict=True))


_ROUNDS = 50  # of Newton's method, which converges in a few rounds or not at all
_PROPENSITY_ROWS = 20_000  # of each table; more is slower
_MEANS = "mean squared distance of the estimated probability that a row is released from the share of released rows"


@dataclass(frozen=True)
class Propensity:
    """pMSE, its expected value for a release from the same distribution, and their ratio; 1 is ideal."""

    score: Score
    expected: float
    worst: float

    @property
    def ratio(self) -> float:
        """The score over its expected value."""
        return self.score.value / self.expected if self.expected else 0.0


def propensity(before: Coded, after: Coded) -> Propensity | None:
    """Return how well rows can be distinguished, on at most 20,000 of each; None where one table has no rows."""
    one, other = before.picked(_PROPENSITY_ROWS), after.picked(_PROPENSITY_ROWS)
    if not len(one) or not len(other):
        return None
    features = Features(before, range(len(before.names)))
    table = np.vstack([features.of(one), features.of(other)])
    return pmse(table, np.repeat([0.0, 1.0], [len(one), len(other)]))


def pmse(table: Matrix, released: NDArray[np.float64]) -> Propensity:
    """Return pMSE from features and which rows are released.

    >>> alike = pmse(np.tile([[0.0], [1.0]], (50, 1)), np.repeat([0.0, 1.0], 50))
    >>> round(alike.score.value, 12), alike.expected
    (0.0, 0.00125)
    """
    design = np.hstack([np.ones((len(table), 1)), table])
    design = design[:, _independent(design)]
    guesses = 1.0 / (1.0 + np.exp(-np.clip(design @ logistic(design, released), -30.0, 30.0)))
    share, rows = float(released.mean()), len(released)
    apart = (guesses - share) ** 2
    value, error = float(apart.mean()), float(apart.std() / np.sqrt(rows))
    expected = (design.shape[1] - 1) * (1.0 - share) ** 2 * share / rows
    low, high = max(0.0, value - 1.96 * error), value + 1.96 * error
    return Propensity(Score("pMSE", value, _MEANS, low, high, "normal, 95 %"), expected, share * (1.0 - share))


def logistic(design: Matrix, labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the coefficients of a logistic regression, with a ridge so small that it matters for separable data alone.

    >>> logistic(np.ones((4, 1)), np.array([0.0, 1.0, 1.0, 1.0])).round(3).tolist()
    [1.099]
    """
    ridge = 1e-6 * np.eye(design.shape[1])
    coefficients = np.zeros(design.shape[1])
    for _ in range(_ROUNDS):
        mean = 1.0 / (1.0 + np.exp(-np.clip(design @ coefficients, -30.0, 30.0)))
        slope = design.T @ (labels - mean) - ridge @ coefficients
        bend = (design * (mean * (1.0 - mean))[:, None]).T @ design + ridge
        step = np.linalg.solve(bend, slope)
        coefficients = coefficients + step * min(1.0, 5.0 / max(1e-12, float(np.abs(step).max())))
        if float(np.abs(step).max()) < 1e-8:
            break
    return coefficients


def _independent(design: Matrix) -> NDArray[np.bool_]:
    """Return which columns are not linear combinations of those before them."""
    triangle = np.abs(np.diag(np.linalg.qr(design, mode="r")))
    independent = np.zeros(design.shape[1], np.bool_)
    independent[: len(triangle)] = triangle > 1e-9 * max(1.0, float(triangle.max(initial=0.0)))
    return independent
