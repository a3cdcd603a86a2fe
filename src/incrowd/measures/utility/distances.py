"""Distances: how far shares, tables and dependencies of columns are from the original.

With shares p before and q after, *total variation* is ½ Σ |p − q|, the share of rows that would have to change;
*Hellinger's distance* is √(1 − Σ √(pq)), which weighs rare values more; the *earth mover's* distance is how far rows
would have to move on average, as a share of the column's range, where values have an order.

*Mutual information* is Σ p log₂(p / (p₁p₂)) bits; *Cramér's V* is √(φ² / (min(r, c) − 1)) over r by c values that
occur, with φ² = Σ (p − p₁p₂)²/(p₁p₂); the *correlation* is Pearson's, of numbers and days.

Source: Rubner, Tomasi & Guibas 2000 for the earth mover's distance; on a line it is the area between cumulated shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Layout
from incrowd.measures.coded import Coded

Shares = NDArray[np.float64]


@dataclass(frozen=True)
class MarginalDistance:
    """How far one column is from the original; the last is None where values have no order."""

    name: str
    variation: float
    hellinger: float
    mover: float | None


def variation(p: Shares, q: Shares) -> float:
    """Return the total variation distance.

    >>> variation(np.array([0.5, 0.5]), np.array([0.75, 0.25]))
    0.25
    """
    return float(np.abs(p - q).sum() / 2.0)


def hellinger(p: Shares, q: Shares) -> float:
    """Return Hellinger's distance.

    >>> hellinger(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    1.0
    """
    return float(np.sqrt(max(0.0, 1.0 - float(np.sqrt(p * q).sum()))))


def mover(p: Shares, q: Shares, positions: Shares) -> float:
    """Return the earth mover's distance over the range of the positions; values without a position are omitted.

    >>> mover(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), np.array([0.0, 5.0, 10.0]))
    0.5
    """
    present = np.flatnonzero(np.isfinite(positions))
    order = present[np.argsort(positions[present], kind="stable")]
    span = float(positions[order[-1]] - positions[order[0]]) if len(order) else 0.0
    one, other = p[order], q[order]
    if span <= 0 or one.sum() <= 0 or other.sum() <= 0:
        return 0.0
    apart = np.cumsum(one / one.sum() - other / other.sum())[:-1]
    return float((np.abs(apart) * np.diff(positions[order])).sum() / span)


def marginal_distance(name: str, p: Shares, q: Shares, positions: Shares | None) -> MarginalDistance:
    """Return all three for one column."""
    return MarginalDistance(
        name, variation(p, q), hellinger(p, q), None if positions is None else mover(p, q, positions)
    )


@dataclass(frozen=True)
class TableDistance:
    """How far the table over some columns is from the original, as total variation."""

    columns: tuple[str, ...]
    variation: float


def table_distance(before: Coded, after: Coded, columns: tuple[int, ...]) -> TableDistance:
    """Return the distance of the tables over some columns.

    >>> one, other = (Coded(("a",), np.array([[0, 1]]), np.array(w), (2,), (None,)) for w in ([1.0, 1.0], [3.0, 1.0]))
    >>> table_distance(one, other, (0,))
    TableDistance(columns=('a',), variation=0.25)
    """
    layout = Layout(tuple(before.sizes[column] for column in columns))
    sides = [
        layout.pack([np.ascontiguousarray(table.codes[column], np.int32) for column in columns])
        for table in (before, after)
    ]
    shares = [table.weights / max(table.rows, 1e-300) for table in (before, after)]
    _, places = np.unique(np.concatenate(sides), return_inverse=True)
    apart = np.bincount(places, np.concatenate([shares[0], -shares[1]]))
    names = tuple(before.names[column] for column in columns)
    return TableDistance(names, float(np.abs(apart).sum() / 2.0))


def table_distances(before: Coded, after: Coded, size: int) -> tuple[TableDistance, ...]:
    """Return the distances of all tables of `size` columns."""
    return tuple(table_distance(before, after, columns) for columns in combinations(range(len(before.names)), size))


_CELLS = 2**24  # of a pair of columns: 128 MB; larger pairs are skipped


@dataclass(frozen=True)
class Dependency:
    """Dependencies of two columns, before and after; correlations only of numbers and days."""

    columns: tuple[str, str]
    information: tuple[float, float]
    cramer: tuple[float, float]
    correlation: tuple[float, float] | None


def mutual_information(pairs: Shares) -> float:
    """Return the mutual information of two columns in bits, from the shares of their pairs of values.

    >>> mutual_information(np.array([[0.5, 0.0], [0.0, 0.5]]))
    1.0
    """
    met = np.nonzero(pairs > 0)
    shares, product = pairs[met], pairs.sum(axis=1)[met[0]] * pairs.sum(axis=0)[met[1]]
    return max(0.0, float((shares * np.log2(shares / product)).sum()))


def cramers_v(pairs: Shares) -> float:
    """Return Cramér's V: 0 for independent columns, 1 where one determines the other.

    >>> cramers_v(np.array([[0.5, 0.0], [0.0, 0.5]])), cramers_v(np.full((2, 2), 0.25))
    (1.0, 0.0)
    """
    pairs = pairs[pairs.sum(axis=1) > 0][:, pairs.sum(axis=0) > 0]
    if min(pairs.shape) < 2:
        return 0.0
    product = pairs.sum(axis=1, keepdims=True) * pairs.sum(axis=0, keepdims=True)
    apart = pairs - product
    apart *= apart
    apart /= product
    return float(min(1.0, np.sqrt(apart.sum() / (min(pairs.shape) - 1))))


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
    """Return every pair of released columns; where no released table has both, their dependency is 0.

    >>> both = Coded(("a", "b"), np.array([[0, 1], [0, 1]]), np.ones(2), (2, 2), (None, None))
    >>> dependencies(both, [both.only([0]), both.only([1])])[0].information
    (1.0, 0.0)
    """
    released = [name for table in after for name in table.names]
    pairs = []
    for names in combinations([name for name in before.names if name in released], 2):
        one, other = (before.place(name) for name in names)
        if before.sizes[one] * before.sizes[other] > _CELLS:
            continue
        table = next((candidate for candidate in after if set(names) <= set(candidate.names)), None)
        pairs.append(Dependency(names, *_both(before, table, one, other)))
    return tuple(pairs)


Pair = tuple[float, float]


def _both(before: Coded, after: Coded | None, one: int, other: int) -> tuple[Pair, Pair, Pair | None]:
    """Return the dependencies of two columns before and after: 0 where no released table has both."""
    places = None if after is None else (after.place(before.names[one]), after.place(before.names[other]))
    now, then = _of_pairs(before, one, other), (0.0, 0.0)
    if after is not None and places is not None:
        then = _of_pairs(after, *places)
    information, cramer = (now[0], then[0]), (now[1], then[1])
    if before.positions[one] is None or before.positions[other] is None:
        return information, cramer, None
    later = 0.0 if after is None or places is None else _related(after, *places)
    return information, cramer, (_related(before, one, other), later)


def _of_pairs(table: Coded, one: int, other: int) -> Pair:
    pairs = table.pair(one, other)
    return mutual_information(pairs), cramers_v(pairs)


def _related(table: Coded, one: int, other: int) -> float:
    return correlation(table.numbers(one), table.numbers(other), table.weights)
