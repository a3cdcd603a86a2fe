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
Σ h′²μ̂/π² + h″²μ̂²/(2π⁴).  The simplest model whose |B| is at most 1.96 standard deviations is used, else the one with
the least: the richest model, which nearly repeats the sample, has a small B whatever is true.  Where the table has too
many cells to sum over, sums over all cells of independent columns are estimated from cells drawn with the fitted
probabilities, and pairs are not fitted.

No model has an interval that covers the truth if the model is wrong, and the sample cannot show that.  The
intervals are those of `frequency_bounds`, which hold whatever the population is like.  A model whose estimate lies
outside is refuted: the nearest end of the interval replaces it.

Source: Skinner & Shlomo 2008, for τ₁, τ₂ and the criterion of least error, derived above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Codes, ranked
from incrowd.core.rounding import Number, exact
from incrowd.criteria.individual_risk import individual_risk
from incrowd.criteria.uniqueness.criterion import estimate_uniques
from incrowd.errors import InvalidParameter
from incrowd.measures.risk.frequency_bounds import frequency_bounds
from incrowd.measures.score import NORMAL_95, Score

Table = NDArray[np.float64]
Columns = Sequence[NDArray[np.integer]]
"""Tuples, column by column."""

_PAIR_CELLS = 2**20  # up to so many the model has all pairs of columns
_ROUNDS = 200  # of iterative proportional fitting, which converges geometrically
_CLOSE = 1e-8  # of all rows: margins are met
_DRAWN, _SEED = 200_000, 1  # cells are drawn where they are too many; a fixed seed, so that two runs agree
INDEPENDENT, PAIRS = "independent columns", "all pairs of columns"
_TAU1 = "expected number of unique rows of the sample that are unique in the population, by a log-linear model"
_TAU2 = "expected number of right guesses, one for each unique row of the sample, by a log-linear model"
_HOLDS = "at least 95 %, for any population of which this is a random sample"
_UNEXPLAINED = "all possible values: the class sizes are not those of a random sample of this rate"


@dataclass(frozen=True)
class LogLinearFit:
    """A log-linear model of a table: the fitted means of its unique rows, and its error in standard deviations."""

    model: str
    unique: Table
    error: float


@dataclass(frozen=True)
class LogLinearRisk:
    """τ₁ and τ₂ with the model they come from, and the error of every model that was tried.

    `refuted`: the model's estimates contradict the class sizes of the sample.
    """

    tau1: Score
    tau2: Score
    model: str
    errors: dict[str, float]
    refuted: bool = False


def poisson_risk(means: Sequence[float] | Table, sampled: Number) -> tuple[float, float]:
    """Return τ₁ and τ₂ for unique rows of the sample, from the fitted sample means of their cells.

    >>> [round(tau, 9) for tau in poisson_risk([0.01, 0.05, 0.2, 0.8], "0.05")]
    [1.23607118, 1.879337472]
    """
    pi = _share(sampled)
    rest = (1.0 - pi) * np.asarray(means, np.float64) / pi
    right = np.where(rest > 1e-12, -np.expm1(-rest) / np.maximum(rest, 1e-300), 1.0)
    return float(np.exp(-rest).sum()), float(right.sum())


def log_linear_risk(columns: Columns, counts: NDArray[np.int64], sampled: Number) -> LogLinearRisk:
    """Return the risk of the unique rows, from tuples column by column and how often each occurs.

    >>> sexes, zips = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> found = log_linear_risk([sexes, zips], np.array([6, 3, 2, 1]), "0.1")
    >>> found.model, round(found.tau1.value, 4)
    ('independent columns', 0.0001)
    """
    pi = _share(sampled)
    coded = [ranked(column)[0] for column in columns]
    shape = tuple(int(codes.max(initial=0)) + 1 for codes in coded)
    fits = [_independent(coded, counts, pi)]
    if len(shape) > 2 and math.prod(shape) <= _PAIR_CELLS:
        table = np.zeros(shape)
        np.add.at(table, tuple(coded), counts)
        fits.append(_pairs(table, pi))
    enough = [fit for fit in fits if abs(fit.error) <= NORMAL_95]
    best = enough[0] if enough else min(fits, key=lambda fit: abs(fit.error))
    bounds = frequency_bounds(counts, pi)
    values = poisson_risk(best.unique, sampled)
    interval = _HOLDS if bounds.possible else _UNEXPLAINED
    taus = [
        Score(name, float(np.clip(value, *ends)), means, *ends, interval)
        for name, value, ends, means in zip(
            ("tau1", "tau2"), values, (bounds.tau1, bounds.tau2), (_TAU1, _TAU2), strict=True
        )
    ]
    refuted = any(tau.value != value for tau, value in zip(taus, values, strict=True))
    return LogLinearRisk(taus[0], taus[1], best.model, {fit.model: fit.error for fit in fits}, refuted)


def _share(sampled: Number) -> float:
    pi = exact(sampled, "the share of the population that was sampled")
    if not 0 < pi <= 1:
        raise InvalidParameter("the share of the population that was sampled must be above 0 and at most 1.")
    return float(pi)


def _independent(coded: Sequence[Codes], counts: NDArray[np.int64], pi: float) -> LogLinearFit:
    """Fit independent columns; of a table with many cells, only those that occur are visited."""
    rows = float(counts.sum())
    shares = [np.bincount(codes, counts) / rows for codes in coded]
    means = rows * reduce(np.multiply, (share[codes] for share, codes in zip(shares, coded, strict=True)))
    if math.prod(len(share) for share in shares) <= _PAIR_CELLS:
        cells = rows * reduce(np.multiply.outer, shares).ravel()
        weights = np.ones(len(cells))
    else:
        chance = np.random.default_rng(_SEED)
        cells = rows * reduce(np.multiply, (share[chance.choice(len(share), _DRAWN, p=share)] for share in shares))
        weights = rows / cells / _DRAWN
    return LogLinearFit(INDEPENDENT, means[counts == 1], _error(counts, means, (cells, weights), pi))


def _pairs(table: Table, pi: float) -> LogLinearFit:
    means = proportional_fit(table, tuple(combinations(range(table.ndim), 2)))
    there = table > 0
    every = (means.ravel(), np.ones(means.size))
    return LogLinearFit(PAIRS, means[table == 1], _error(table[there], means[there], every, pi))


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


def _error(counts: Table | NDArray[np.int64], means: Table, every: tuple[Table, Table], pi: float) -> float:
    """Return the estimated error of τ₁ in standard deviations: from cells that occur, and all cells with weights."""
    slope, bend = _derivatives(means, pi)
    bias = -float((slope * counts + bend * (counts**2 - counts - 2.0 * counts * means) / 2.0).sum())
    cells, weights = every
    slope, bend = _derivatives(cells, pi)
    bias -= float((weights * (bend * cells**2 / 2.0 - slope * cells)).sum())
    variance = float((weights * (slope**2 * cells + bend**2 * cells**2 / 2.0)).sum())
    return bias / math.sqrt(variance) if variance > 0 else 0.0


def _derivatives(means: Table, pi: float) -> tuple[Table, Table]:
    """Return h′/π and h″/π² at fitted means."""
    lam = means / pi
    fading = np.exp(-lam)
    return (1.0 - lam) * fading, (lam - 2.0) * fading / pi


_UNIQUES = "estimated share of rows that are unique among {:,} people, by the model that Dankar's rule selects ({})"


def population_uniqueness(sizes: NDArray[np.int64], people: int) -> Score:
    """Return the share of rows that are unique in a population, by Dankar's rule.

    No model has a confidence interval that could be trusted: the interval is that of `frequency_bounds`, and includes
    the estimate.

    >>> found = population_uniqueness(np.repeat([1, 2, 3, 4], [50, 30, 15, 5]), 4000)
    >>> found.low <= found.value <= found.high
    True
    """
    if not len(sizes):
        raise InvalidParameter("a population cannot be estimated from a table without rows.")
    value, model = estimate_uniques(sizes, people, "dankar")
    rows = float(sizes.sum())
    bounds = frequency_bounds(sizes, rows / people)
    low, high = (end / rows for end in bounds.tau1)
    interval = _HOLDS if bounds.possible else _UNEXPLAINED
    means = _UNIQUES.format(people, model)
    return Score("population uniqueness", value, means, min(low, value), max(high, value), interval)


Numbers = NDArray[np.float64]
_LINKS = (
    "expected number of rows that are linked correctly, if everybody is linked at random within the class, by the "
    "model of Benedetti & Franconi; without an interval, because the model has none that covers the truth"
)


def expected_links(rows: NDArray[np.int64], weights: Numbers) -> Score:
    """Return the expected number of rows of a weighted sample that are linked correctly.

    >>> round(expected_links(np.array([1, 2]), np.array([10.0, 20.0])).value, 6)
    0.421211
    """
    return Score("expected links", float((rows * individual_risk(rows, weights)).sum()), _LINKS)
