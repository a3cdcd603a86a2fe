"""Variety: how many values a sensitive column shows in each group of rows that look alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.criteria.groups import Each, Groups


def distinct(groups: Groups) -> NDArray[np.int64]:
    """Return how many different values each group holds; the table is distinct l-diverse for the least of them.

    Source: Machanavajjhala, Gehrke, Kifer & Venkitasubramaniam 2006, the l-diversity principle in its simplest reading.

    >>> import pyarrow as pa
    >>> sick = Groups(np.array([0, 2]), np.array([0, 1, 1]), np.array([3, 1, 4]), pa.array(["flu", "gout"]))
    >>> distinct(sick).tolist()
    [2, 1]
    """
    return groups.total(np.ones(len(groups.counts), np.int64))


def entropy(groups: Groups) -> Each:
    """Return e to the entropy of each group: the number of equally frequent values with the same entropy.

    The table is entropy l-diverse for the least of them.  It is never above the number of distinct values.

    Source: Machanavajjhala, Gehrke, Kifer & Venkitasubramaniam 2006, Definition 4.1: −Σ p ln p ≥ ln l.

    >>> import pyarrow as pa
    >>> sick = Groups(np.array([0, 2]), np.array([0, 1, 1]), np.array([2, 2, 4]), pa.array(["flu", "gout"]))
    >>> entropy(sick).round(9).tolist()
    [2.0, 1.0]
    """
    shares = groups.shares()
    found: Each = np.exp(-groups.mean(shares * np.log(shares)))
    return found


def frequent(groups: Groups, harmful: NDArray[np.bool_], others: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each group how often its most frequent harmful value occurs, and its so many most frequent others.

    >>> import pyarrow as pa
    >>> sick = Groups(np.array([0]), np.array([0, 1, 2]), np.array([3, 1, 4]), pa.array(["flu", "gout", "healthy"]))
    >>> [found.tolist() for found in frequent(sick, np.array([True, True, False]), 1)]
    [[3], [4]]
    """
    lengths = np.diff(groups.starts, append=len(groups.counts))
    numbers = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((-groups.counts, numbers))
    rows, places = groups.counts[order], np.arange(len(order)) - np.repeat(groups.starts, lengths)
    hurting = np.where(harmful[groups.values[order]], rows, 0)
    most = np.maximum.reduceat(hurting, groups.starts) if len(lengths) else np.zeros(0, np.int64)
    chosen = (hurting > 0) & (hurting == most[numbers])
    first = np.full(len(lengths), len(order), np.int64)
    np.minimum.at(first, numbers[chosen], places[chosen])
    # One place further down where the chosen value is itself among the most frequent.
    reach = others + (first < others)
    counted = np.where((places < reach[numbers]) & (places != first[numbers]), rows, 0)
    return most, groups.total(counted)


def grassberger(numbers: NDArray[np.int64]) -> Each:
    """Return Grassberger's substitute for the logarithm of a count, which makes entropies of small samples less biased.

    It is ψ(m + 1/2) + ln 2 for the counts 2m and 2m + 1, with ψ the digamma function: −γ − ln 2 + 2 Σ 1/(2j − 1) over
    j ≤ m.  Beyond 100 the asymptotic series is used, whose next term is below 1e-15 there.

    Source: Grassberger 2003, equations 27 to 30.

    >>> grassberger(np.array([1, 2, 3])).round(6).tolist()
    [-1.270363, 0.729637, 0.729637]
    """
    halves = np.asarray(numbers) // 2
    sums = np.concatenate(([0.0], np.cumsum(2.0 / (2.0 * np.arange(1, 51) - 1.0))))
    small = sums[np.minimum(halves, 50)] - np.euler_gamma - np.log(2.0)
    inverse = 1.0 / np.maximum(halves, 1).astype(np.float64) ** 2
    large = np.log(2.0 * np.maximum(halves, 1)) + inverse * (1 / 24 - inverse * (7 / 960 - inverse * 31 / 8064))
    found: Each = np.where(halves <= 50, small, large)
    return found
