"""Propensity: how well a model tells released rows from original ones.

Both tables are stacked, and a logistic regression guesses of each row which it came from.  With c the share of released
rows, *pMSE* is the mean of (guess − c)²: 0 if they cannot be told apart, c(1 − c) if always.  A release that was drawn
from the same law has, on average, (k − 1)(1 − c)²c / N, with k parameters and N rows; the *ratio* to that is near 1.

Source: Woo, Reiter, Oganian & Karr 2009; Snoke, Raab, Nowok, Dibben & Slavkovic 2018 for what is expected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.coded import Coded
from incrowd.measures.score import Score
from incrowd.measures.utility.features import Features, Matrix

_ROUNDS = 50
_MOST = 20_000
_MEANS = "mean squared distance of a guess, whether a row is released or original, from the share of released rows"


@dataclass(frozen=True)
class Propensity:
    """pMSE, what is expected of a release from the same law, and the ratio; 1 is as good as it gets."""

    score: Score
    expected: float
    worst: float

    @property
    def ratio(self) -> float:
        """The score over what is expected."""
        return self.score.value / self.expected if self.expected else 0.0


def propensity(before: Coded, after: Coded) -> Propensity | None:
    """Return how well rows can be told apart, on at most 20,000 of each; None where one table has no rows."""
    one, other = before.picked(_MOST), after.picked(_MOST)
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
    """Return the coefficients of a logistic regression, with a ridge so small that only separable data feels it.

    >>> logistic(np.ones((4, 1)), np.array([0.0, 1.0, 1.0, 1.0])).round(3).tolist()
    [1.099]
    """
    ridge = 1e-6 * np.eye(design.shape[1])
    found = np.zeros(design.shape[1])
    for _ in range(_ROUNDS):
        mean = 1.0 / (1.0 + np.exp(-np.clip(design @ found, -30.0, 30.0)))
        slope = design.T @ (labels - mean) - ridge @ found
        bend = (design * (mean * (1.0 - mean))[:, None]).T @ design + ridge
        step = np.linalg.solve(bend, slope)
        found = found + step * min(1.0, 5.0 / max(1e-12, float(np.abs(step).max())))
        if float(np.abs(step).max()) < 1e-8:
            break
    return found


def _independent(design: Matrix) -> NDArray[np.bool_]:
    """Return which columns are no combination of those before them."""
    triangle = np.abs(np.diag(np.linalg.qr(design, mode="r")))
    kept = np.zeros(design.shape[1], np.bool_)
    kept[: len(triangle)] = triangle > 1e-9 * max(1.0, float(triangle.max(initial=0.0)))
    return kept
