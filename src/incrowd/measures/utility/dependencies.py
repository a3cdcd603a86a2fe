"""Dependencies: what two columns say about each other, before and after.

*Mutual information* is Σ p log₂(p / (p₁p₂)) bits; *Cramér's V* is √(φ² / (min(r, c) − 1)) over r by c values that
occur, with φ² = Σ (p − p₁p₂)²/(p₁p₂); the *correlation* is Pearson's, of numbers and days.  All are taken of each table
as it stands, and compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.coded import Coded

Shares = NDArray[np.float64]
_CELLS = 2**24


@dataclass(frozen=True)
class Dependency:
    """Two columns, and what they say about each other: before and after; correlations only of numbers and days."""

    columns: tuple[str, str]
    information: tuple[float, float]
    cramer: tuple[float, float]
    correlation: tuple[float, float] | None


def mutual_information(pairs: Shares) -> float:
    """Return what two columns say about each other, in bits, from the shares of their pairs of values.

    >>> mutual_information(np.array([[0.5, 0.0], [0.0, 0.5]]))
    1.0
    """
    product = pairs.sum(axis=1, keepdims=True) * pairs.sum(axis=0, keepdims=True)
    met = pairs > 0
    return max(0.0, float((pairs[met] * np.log2(pairs[met] / product[met])).sum()))


def cramers_v(pairs: Shares) -> float:
    """Return Cramér's V: 0 for independent columns, 1 where one decides the other.

    >>> cramers_v(np.array([[0.5, 0.0], [0.0, 0.5]])), cramers_v(np.full((2, 2), 0.25))
    (1.0, 0.0)
    """
    pairs = pairs[pairs.sum(axis=1) > 0][:, pairs.sum(axis=0) > 0]
    if min(pairs.shape) < 2:
        return 0.0
    product = pairs.sum(axis=1, keepdims=True) * pairs.sum(axis=0, keepdims=True)
    return float(min(1.0, np.sqrt(((pairs - product) ** 2 / product).sum() / (min(pairs.shape) - 1))))


def correlation(x: Shares, y: Shares, weights: Shares) -> float:
    """Return Pearson's correlation of rows that have both; 0 where one of them does not vary.

    >>> round(correlation(np.array([1.0, 2, 3]), np.array([2.0, 4, 6]), np.ones(3)), 12)
    1.0
    """
    both = np.isfinite(x) & np.isfinite(y)
    x, y, w = x[both], y[both], weights[both] / max(weights[both].sum(), 1e-300)
    x, y = x - (w * x).sum(), y - (w * y).sum()
    spread = float(np.sqrt((w * x * x).sum() * (w * y * y).sum()))
    return float(np.clip((w * x * y).sum() / spread, -1.0, 1.0)) if spread > 1e-300 else 0.0


def dependencies(before: Coded, after: Sequence[Coded]) -> tuple[Dependency, ...]:
    """Return every pair of columns of the tables after; two columns that no table has both say nothing there.

    >>> both = Coded(("a", "b"), np.array([[0, 1], [0, 1]]), np.ones(2), (2, 2), (None, None))
    >>> dependencies(both, [both.only([0]), both.only([1])])[0].information
    (1.0, 0.0)
    """
    shown = [name for table in after for name in table.names]
    found = []
    for names in combinations([name for name in before.names if name in shown], 2):
        one, other = (before.place(name) for name in names)
        if before.sizes[one] * before.sizes[other] > _CELLS:
            continue
        table = next((each for each in after if set(names) <= set(each.names)), None)
        found.append(Dependency(names, *_both(before, table, one, other)))
    return tuple(found)


Pair = tuple[float, float]


def _both(before: Coded, after: Coded | None, one: int, other: int) -> tuple[Pair, Pair, Pair | None]:
    """Return what two columns say about each other before and after: nothing where no table has both."""
    pairs, names = before.pair(one, other), (before.names[one], before.names[other])
    places = None if after is None else (after.place(names[0]), after.place(names[1]))
    shown = None if after is None or places is None else after.pair(*places)
    information, cramer = ((f(pairs), 0.0 if shown is None else f(shown)) for f in (mutual_information, cramers_v))
    if before.positions[one] is None or before.positions[other] is None:
        return information, cramer, None
    later = 0.0 if after is None or places is None else _related(after, *places)
    return information, cramer, (_related(before, one, other), later)


def _related(table: Coded, one: int, other: int) -> float:
    return correlation(table.numbers(one), table.numbers(other), table.weights)
