"""Evaluation: how far a finished table is from the rows, said with noise that is paid from the same budget.

For a table over some columns the sum of |counts − expected counts| moves by at most the reach of a score.  So the sum
over all pairs moves by that times their number, and the errors of k tables, shown one by one, by that times √k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from incrowd.core.coins import Coins
from incrowd.methods.synthesis.marginals.budget import EVALUATION, Sensitivity, gaussian_scale
from incrowd.methods.synthesis.marginals.junction import Columns
from incrowd.methods.synthesis.marginals.weighted_rows import WeightedRows

_NORMAL = 1.959964


@dataclass(frozen=True)
class Evaluation:
    """The mean error of all pairs of columns, measured with noise of a scale; the margin holds in 19 of 20 cases."""

    error: float
    margin: float
    scale: Fraction


@dataclass(frozen=True)
class TableErrors:
    """The error of each of several tables, all measured with noise of one scale; each is within the margin, mostly.

    Any one of them is in 19 of 20 cases.
    """

    tables: tuple[Columns, ...]
    errors: tuple[float, ...]
    margin: float
    scale: Fraction


@dataclass(frozen=True, eq=False)
class Evaluator:
    """The rows beside a finished table that stands for so many rows, the budget of all, how far a unit reaches."""

    rows: WeightedRows
    synthetic: WeightedRows
    total: int
    rho: Fraction
    reach: Sensitivity

    def mean(self, coins: Coins) -> Evaluation:
        """Say how far all pairs of columns are from those of the rows, on average."""
        pairs: list[Columns] = [*combinations(range(len(self.rows.sizes)), 2)] or [(0,)]
        scale = gaussian_scale(self.rho * EVALUATION, 1, Sensitivity((len(pairs) * self.reach.score) ** 2, 1))
        noisy = sum(map(self.away, pairs)) + coins.gaussian(scale, 1).tolist()[0]
        return Evaluation(self.share(noisy, len(pairs)), self.margin(scale, len(pairs)), scale)

    def each(self, tables: Sequence[Columns], coins: Coins) -> TableErrors:
        """Say of each of some tables how far it is from that of the rows."""
        scale = gaussian_scale(self.rho * EVALUATION, len(tables), Sensitivity(self.reach.score**2, 1))
        noise = coins.gaussian(scale, len(tables)).tolist()
        errors = tuple(self.share(self.away(table) + more) for table, more in zip(tables, noise, strict=True))
        return TableErrors(tuple(tables), errors, self.margin(scale), scale)

    def away(self, table: Columns) -> int:
        """Return by how many rows a table differs, each counted twice: where it is and where it should be."""
        return self.rows.away(self.synthetic, table, self.total)

    def share(self, away: int, tables: int = 1) -> float:
        """Return what so many rows in so many tables are as a share, which lies between 0 and 1."""
        return min(1.0, max(0.0, away / (2.0 * tables * max(1, self.total))))

    def margin(self, scale: Fraction, tables: int = 1) -> float:
        """Return within which share noise stays in 19 of 20 cases at least; it is whole, so its bound is rounded up."""
        return math.ceil(_NORMAL * float(scale)) / (2.0 * tables * max(1, self.total))
