"""Strategies: integer matrices C; period t publishes Σ C[t, j]·x[j] plus fresh noise, and all else is arithmetic.

Source: Li, Miklau, Hay, McGregor & Rastogi 2015 (the matrix mechanism); Henzinger, Kalinin & Upadhyay 2025 (square
roots, and their normalized columns); Fichtenberger, Henzinger & Upadhyay 2023.  Noise is fresh in every period, so
nothing is stored or used twice; the literature's correlated noise has the same law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from incrowd.core.terms import KeyedText
from incrowd.errors import InvalidParameter

BITS = 12
"""Coefficients are multiples of 2^-12, written as whole numbers: rounding then loses less than 2e-6 of the variance."""
MOST_PERIODS = 1000
_FINE = 96  # binary digits of coefficients before they are rounded
Matrix = NDArray[np.int64]
Reals = NDArray[np.float64]


class NoiseStrategy(KeyedText):
    """How the periods before are mixed into what is published in a period."""

    INDEPENDENT = "independent", "independent noise on each period"
    NORMALIZED_ROOT = "normalized-root", "square root of totals, columns normalized"
    ROOT = "root", "square root of totals"
    WINDOW_ROOT = "window-root", "square root of windows"


@dataclass(frozen=True)
class ContributionPattern:
    """What one person can contribute: at most `rows` rows in each of at most `participations` periods, `apart` apart.

    `participations` None means every period.  With `withdrawals` each row can be taken back once, in a later period.

    >>> ContributionPattern(rows=1, participations=2, apart=12).most(60)
    2
    """

    rows: int
    participations: int | None = None
    apart: int = 1
    withdrawals: bool = False

    def __post_init__(self) -> None:
        if self.apart < 1 or (self.participations is not None and self.participations < 1):
            raise InvalidParameter("somebody takes part in at least one period, and periods are at least 1 apart.")

    def most(self, periods: int) -> int:
        """Return in how many of so many periods one person can take part."""
        fit = 1 + (periods - 1) // self.apart
        return fit if self.participations is None else min(fit, self.participations)


def _roots(periods: int) -> list[int]:
    """Return the coefficients of (1 − q)^(−1/2), times 2^96, rounded down: f_0 = 1, f_k = f_{k−1}·(1 − 1/(2k))."""
    return [(math.comb(2 * k, k) << _FINE) >> (2 * k) for k in range(periods)]


def _rounded(value: int, unit: int) -> int:
    """Return value/unit as the nearest whole number, halves upward."""
    return (2 * value + unit) // (2 * unit)


def _toeplitz(coefficients: list[int]) -> Matrix:
    size = len(coefficients)
    matrix = np.zeros((size, size), np.int64)
    for place, value in enumerate(coefficients):
        matrix[np.arange(place, size), np.arange(size - place)] = value
    return matrix


def _window_roots(periods: int, window: int) -> list[int]:
    """Return the coefficients of ((1 − q^w)/(1 − q))^(1/2), times 2^96: some are negative."""
    roots = _roots(periods)
    halves, half = [], 1 << _FINE  # of (1 − q^w)^(1/2): h_0 = 1, h_i = h_{i−1}·(i − 3/2)/i
    for place in range(1 + periods // window):
        halves.append(half)
        half = half * (2 * place - 1) // (2 * place + 2)
    return [
        sum(halves[place] * roots[k - window * place] for place in range(1 + k // window)) >> _FINE
        for k in range(periods)
    ]


@lru_cache(maxsize=32)
def matrix_of(strategy: NoiseStrategy, periods: int, window: int) -> Matrix:
    """Return the strategy as a lower triangular matrix of whole numbers, the same on every machine.

    >>> matrix_of(NoiseStrategy.ROOT, 4, 12)[:, 0].tolist()
    [4096, 2048, 1536, 1280]
    """
    if not 1 <= periods <= MOST_PERIODS:
        raise InvalidParameter(f"running counts have 1 to {MOST_PERIODS:,} periods: choose longer ones, or fewer.")
    unit = 1 << (_FINE - BITS)
    match strategy:
        case NoiseStrategy.INDEPENDENT:
            return np.eye(periods, dtype=np.int64) << BITS
        case NoiseStrategy.ROOT:
            return _toeplitz([_rounded(value, unit) for value in _roots(periods)])
        case NoiseStrategy.WINDOW_ROOT:
            return _toeplitz([_rounded(value, unit) for value in _window_roots(periods, window)])
    roots = _roots(periods)
    matrix = np.zeros((periods, periods), np.int64)
    norms, total = [], 0
    for value in roots:
        total += value * value
        norms.append(math.isqrt(total))
    for column in range(periods):
        norm = norms[periods - 1 - column]
        matrix[column:, column] = [_rounded(value << BITS, norm) for value in roots[: periods - column]]
    return matrix


def sensitivity(matrix: Matrix, pattern: ContributionPattern) -> int:
    """Return D: no person whom the pattern allows moves what is published by more than √D, in the Euclidean norm.

    Guarantee: a row moves what is published by a vector v: a column C_i, or C_i − C_j if it is taken back in a later
    period j.  All rows of a person move it by |Σ v|² ≤ m² Σ_{p,q} G(p, q), where the p-th participation is in a period
    of at least p·apart, two participations are at least |p − q|·apart periods apart, and G is the largest inner product
    of two vectors that this allows, or 0 if that is negative; one person's rows of a period may lie in several cells,
    which never makes it larger.  For non-increasing Toeplitz matrices without negative entries, and rows that stay,
    this is attained by taking part as early and as densely as allowed.

    >>> sensitivity(matrix_of(NoiseStrategy.INDEPENDENT, 12, 12), ContributionPattern(2)) == 12 * 4 << 24
    True
    """
    inner = matrix.T @ matrix
    if pattern.withdrawals:
        inner = _taken_back(inner)
    periods, apart = len(inner), pattern.apart
    most = pattern.most(periods)
    if most == periods:  # any set of periods: leaving out a pair never adds to the sum of those above 0
        return pattern.rows**2 * int(np.maximum(inner, 0).sum())
    total = 0
    later = _largest_later(inner)
    for gap in range(most):
        for first in range(most - gap):
            total += (1 if gap == 0 else 2) * max(0, int(later[first * apart, gap * apart]))
    return pattern.rows**2 * total


def _taken_back(inner: Matrix) -> Matrix:
    """Return for each pair of periods the largest inner product of what two rows move, each of which stays or goes.

    Of one row, every vector w is tried; with that of the other, which stays or goes in period a, the inner product is
    ⟨C_i, w⟩ or ⟨C_i, w⟩ − ⟨C_a, w⟩: the least ⟨C_a, w⟩ of later periods counts, if it is below 0.

    >>> _taken_back(np.array([[1, 0], [0, 1]])).tolist()
    [[2, 0], [0, 1]]
    """
    largest = np.empty_like(inner)
    for row, line in enumerate(inner):
        moved = np.concatenate([line[None, :], line - inner[row + 1 :]])
        gone = np.zeros_like(moved)
        gone[:, :-1] = np.minimum.accumulate(moved[:, :0:-1], axis=1)[:, ::-1]
        largest[row] = (moved - np.minimum(gone, 0)).max(axis=0)
    return largest


def _largest_later(inner: Matrix) -> Matrix:
    """Return for each (i, g) the largest inner product of columns a ≥ i and b ≥ a + g."""
    periods = len(inner)
    upper = np.full((periods, periods), np.iinfo(np.int64).min, np.int64)
    for gap in range(periods):
        upper[: periods - gap, gap] = np.diagonal(inner, gap)
    by_gap: Matrix = np.maximum.accumulate(upper[:, ::-1], axis=1)[:, ::-1]  # b may be further away
    largest: Matrix = np.maximum.accumulate(by_gap[::-1], axis=0)[::-1]  # a may be later
    return largest


@dataclass(frozen=True, eq=False)
class Estimates:
    """How the numbers of some periods are computed from what was published in them, and their variances.

    A row of `counts`, `totals` or `windows` gives one number; its variance is its squared norm times that of the noise.
    Periods that are missing were never published: nothing of them is in any number.
    """

    counts: Reals
    totals: Reals
    windows: Reals

    @classmethod
    def of(cls, matrix: Matrix, present: tuple[int, ...], window: int) -> Estimates:
        """Return the estimates of the periods that are present, counted from 0."""
        chosen = matrix[np.ix_(present, present)].astype(np.float64)
        counts: Reals = np.linalg.solve(chosen, np.eye(len(present))).astype(np.float64)
        totals: Reals = np.cumsum(counts, axis=0)
        numbers = np.array(present)
        inside = (numbers[:, None] - numbers[None, :] >= 0) & (numbers[:, None] - numbers[None, :] < window)
        return cls(counts, totals, inside.astype(np.float64) @ counts)

    def norms(self) -> dict[str, Reals]:
        """Return the Euclidean norms of the rows of each kind of number."""
        kinds = {"periods": self.counts, "totals": self.totals, "windows": self.windows}
        return {name: np.sqrt((rows * rows).sum(axis=1)) for name, rows in kinds.items()}
