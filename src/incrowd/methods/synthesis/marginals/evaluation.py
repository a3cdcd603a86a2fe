"""Evaluation: rows as codes, and how far a finished table is from them, with noise from the same budget.

For a table over some columns the sum of |counts − expected counts| moves by at most the reach of a score.  So the sum
over all pairs moves by that times their number, and the errors of k tables, shown one by one, by that times √k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.methods.synthesis.marginals.budget import EVALUATION, Sensitivity, gaussian_scale
from incrowd.methods.synthesis.marginals.junction import Columns
from incrowd.methods.synthesis.marginals.model import Codes

_DENSE = 2**22  # cells compared at once: 32 MB


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Distinct rows as codes, a column each, with how often each occurs."""

    sizes: tuple[int, ...]
    codes: Codes
    times: NDArray[np.int64]

    @classmethod
    def once(cls, sizes: tuple[int, ...], codes: Codes) -> WeightedRows:
        """Take each row once."""
        return cls(sizes, codes, np.ones(codes.shape[1], np.int64))

    def table(self, columns: Columns) -> NDArray[np.int64]:
        """Return the counts over some columns; they are counted once.

        >>> WeightedRows((2, 2), np.array([[0, 1], [1, 1]]), np.array([5, 2])).table((1,)).tolist()
        [0, 7]
        """
        if columns not in self._tables:
            shape = tuple(self.sizes[column] for column in columns)
            counts = np.bincount(self.places(columns), self.times, math.prod(shape)).astype(np.int64).reshape(shape)
            counts.flags.writeable = False
            self._tables[columns] = counts
        return self._tables[columns]

    @cached_property
    def _tables(self) -> dict[Columns, NDArray[np.int64]]:
        return {}

    def places(self, columns: Columns) -> NDArray[np.int64]:
        """Return in which cell of the table over some columns each row is."""
        place = np.zeros(self.codes.shape[1], np.int64)
        for column in columns:
            place = place * self.sizes[column] + self.codes[column]
        return place

    def away(self, sample: WeightedRows, columns: Columns, total: int) -> int:
        """Return by how much counts differ from those of drawn rows, taken for so many, in all: a row moves it by 1."""
        own, other, cells = self.places(columns), sample.places(columns), math.prod(self.sizes[c] for c in columns)
        if cells > _DENSE:  # cells that are empty in both add nothing
            distinct, place = np.unique(np.concatenate((own, other)), return_inverse=True)
            own, other, cells = place[: len(own)], place[len(own) :], len(distinct)
        times = total / max(1, int(sample.times.sum()))
        expected = np.rint(np.bincount(other, sample.times, cells) * times).astype(np.int64)
        return int(np.abs(np.bincount(own, self.times, cells).astype(np.int64) - expected).sum())


_NORMAL = 1.959964  # the two-sided 95 % quantile of the normal law


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

    def tables(self, tables: Sequence[Columns], coins: Coins) -> TableErrors:
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
