"""Population: risks of a population that are estimated from a sample of it.

`population_uniqueness` compares the models of `criteria/uniqueness`; `expected_links` uses the weights of a survey;
`log_linear_risk` estimates how many unique rows of a sample are unique in the population, or are guessed correctly.

Rows of a cell are Poisson with a mean μ that a log-linear model of the sample gives; with a share π of the population
sampled, the population of the cell is Poisson with λ = μ/π.  Summed over the unique rows of the sample,

    τ₁ = Σ exp(−(1 − π)λ)                        expected rows that are unique in the population too,
    τ₂ = Σ (1 − exp(−(1 − π)λ)) / ((1 − π)λ)     expected right guesses, one for each of them.

Two models are tried: independent columns, and all pairs of columns (fitted by iterative proportions).  Too simple a
model gives rare cells wrong means; too rich a model follows the sample.  With h(λ) = πλ·exp(−λ), the part
of a cell in τ₁, the error of the fitted sum is, up to the third order,

    B = −Σ { h′(λ̂)(f − μ̂)/π + h″(λ̂)((f − μ̂)² − f)/(2π²) }    over all cells,

because f − μ̂ and (f − μ̂)² − f have the means π(λ − λ̂) and π²(λ − λ̂)².  Under the model its variance is
Σ h′²μ̂/π² + h″²μ̂²/(2π⁴), and the model with the least |B| in standard deviations is used.

Source: Skinner & Shlomo 2008, for τ₁, τ₂ and the criterion of least error, derived above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from incrowd.core.rounding import Number, exact
from incrowd.criteria.individual_risk import individual_risk
from incrowd.criteria.uniqueness.criterion import Estimator, estimate_uniques
from incrowd.errors import InvalidParameter
from incrowd.measures.score import Score, around

Table = NDArray[np.float64]
Columns = Sequence[NDArray[np.integer]]
"""Tuples, column by column."""

_CELLS = 2**22  # of a log-linear model: 32 MB
_PAIR_CELLS = 2**20  # up to so many the model has all pairs of columns
_ROUNDS = 200  # of iterative proportional fitting, which converges geometrically
_CLOSE = 1e-8  # of all rows: margins are met
INDEPENDENT, PAIRS = "independent columns", "all pairs of columns"
_TAU1 = "expected number of unique rows of the sample that are unique in the population, by a log-linear model"
_TAU2 = "expected number of right guesses, one for each unique row of the sample, by a log-linear model"


@dataclass(frozen=True)
class LogLinearFit:
    """A log-linear model of a table: its fitted means, and its error in standard deviations."""

    model: str
    means: Table
    error: float


@dataclass(frozen=True)
class LogLinearRisk:
    """τ₁ and τ₂ with the model they come from, and the error of every model that was tried."""

    tau1: Score
    tau2: Score
    model: str
    errors: dict[str, float]


def poisson_risk(means: Sequence[float] | Table, sampled: Number) -> tuple[Score, Score]:
    """Return τ₁ and τ₂ for unique rows of the sample, from the fitted sample means of their cells.

    >>> tau1, tau2 = poisson_risk([0.01, 0.05, 0.2, 0.8], "0.05")
    >>> round(tau1.value, 9), round(tau2.value, 9)
    (1.23607118, 1.879337472)
    """
    pi = _share(sampled)
    rest = (1.0 - pi) * np.asarray(means, np.float64) / pi
    alone = np.exp(-rest)
    right = np.where(rest > 1e-12, -np.expm1(-rest) / np.maximum(rest, 1e-300), 1.0)
    scores = [
        around(name, float(chances.sum()), float(np.sqrt((chances * (1.0 - chances)).sum())), means_)
        for name, chances, means_ in (("tau1", alone, _TAU1), ("tau2", right, _TAU2))
    ]
    return scores[0], scores[1]


def log_linear_risk(columns: Columns, counts: NDArray[np.int64], sampled: Number) -> LogLinearRisk:
    """Return the risk of the unique rows, from tuples column by column and how often each occurs.

    >>> sexes, zips = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> found = log_linear_risk([sexes, zips], np.array([6, 3, 2, 1]), "0.1")
    >>> found.model, round(found.tau1.value, 4)
    ('independent columns', 0.0001)
    """
    pi = _share(sampled)
    table = _table(columns, counts)
    fits = [_fit(INDEPENDENT, table, pi)]
    if table.ndim > 2 and table.size <= _PAIR_CELLS:
        fits.append(_fit(PAIRS, table, pi))
    best = min(fits, key=lambda fit: abs(fit.error))
    tau1, tau2 = poisson_risk(best.means[table == 1], sampled)
    return LogLinearRisk(tau1, tau2, best.model, {fit.model: fit.error for fit in fits})


def _share(sampled: Number) -> float:
    pi = exact(sampled, "the share of the population that was sampled")
    if not 0 < pi <= 1:
        raise InvalidParameter("the share of the population that was sampled must be above 0 and at most 1.")
    return float(pi)


def _table(columns: Columns, counts: NDArray[np.int64]) -> Table:
    coded = [np.unique(column, return_inverse=True) for column in columns]
    shape = tuple(len(values) for values, _ in coded)
    cells = int(np.prod(np.array(shape, np.float64)))
    if cells > _CELLS:
        raise InvalidParameter(
            f"a log-linear model of {len(columns)} columns has {cells:,} cells, more than {_CELLS:,}: use fewer "
            f"columns or "
            "coarser values."
        )
    table = np.zeros(shape)
    np.add.at(table, tuple(places for _, places in coded), counts)
    return table


def _fit(model: str, table: Table, pi: float) -> LogLinearFit:
    size = 1 if model == INDEPENDENT else 2
    means = proportional_fit(table, tuple(combinations(range(table.ndim), size)))
    return LogLinearFit(model, means, _error(table, means, pi))


def proportional_fit(table: Table, margins: Sequence[tuple[int, ...]]) -> Table:
    """Return the maximum-likelihood table with the same margins over these axes.

    Source: Deming & Stephan 1940, iterative proportional fitting.

    >>> proportional_fit(np.array([[6.0, 3], [2, 1]]), [(0,), (1,)]).tolist()
    [[6.0, 3.0], [2.0, 1.0]]
    """
    fitted = np.full(table.shape, table.sum() / table.size)
    axes = [tuple(axis for axis in range(table.ndim) if axis not in margin) for margin in margins]
    targets = [table.sum(axis=away, keepdims=True) for away in axes]
    for _ in range(_ROUNDS):
        moved = 0.0
        for away, target in zip(axes, targets, strict=True):
            now = fitted.sum(axis=away, keepdims=True)
            moved = max(moved, float(np.abs(now - target).max()))
            fitted = fitted * np.divide(target, now, out=np.zeros_like(now), where=now > 0)
        if moved <= _CLOSE * max(1.0, float(table.sum())):
            break
    return fitted


def _error(table: Table, means: Table, pi: float) -> float:
    """Return the estimated error of τ₁ in standard deviations."""
    lam = means / pi
    fading = np.exp(-lam)
    slope, bend = (1.0 - lam) * fading, (lam - 2.0) * fading / pi  # h′/π and h″/π²
    apart = table - means
    bias = -float((slope * apart + bend * (apart**2 - table) / 2.0).sum())
    variance = float((slope**2 * means + bend**2 * means**2 / 2.0).sum())
    return bias / np.sqrt(variance) if variance > 0 else 0.0


_UNIQUES = "estimated share of rows that are unique among {:,} people, by the model that Dankar's rule selects ({})"


def population_uniqueness(sizes: NDArray[np.int64], people: int) -> Score:
    """Return the share of rows that are unique in a population, by Dankar's rule; the interval spans all models.

    No model has a confidence interval that could be trusted; the range of their answers replaces it.

    >>> found = population_uniqueness(np.repeat([1, 2, 3, 4], [50, 30, 15, 5]), 4000)
    >>> found.low <= found.value <= found.high
    True
    """
    if not len(sizes):
        raise InvalidParameter("a population cannot be estimated from a table without rows.")
    estimates = {name: estimate_uniques(sizes, people, name) for name in get_args(Estimator)}
    value, model = estimates["dankar"]
    values = [share for share, _ in estimates.values()]
    means = _UNIQUES.format(people, model)
    return Score("population uniqueness", value, means, min(values), max(values), "lowest and highest of the models")


Numbers = NDArray[np.float64]
_LINKS = "expected number of rows that are linked correctly, if everybody is linked at random within the class"


def expected_links(rows: NDArray[np.int64], weights: Numbers) -> Score:
    """Return the expected number of rows of a weighted sample that are linked correctly.

    >>> round(expected_links(np.array([1, 2]), np.array([10.0, 20.0])).value, 6)
    0.421211
    """
    risk = individual_risk(rows, weights)
    error = float(np.sqrt((rows * risk * (1.0 - risk)).sum()))
    return around("expected links", float((rows * risk).sum()), error, _LINKS)
