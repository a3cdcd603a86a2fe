"""Diversity: how many values a sensitive column shows in each group of rows that look alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.groups import Each, Groups


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
