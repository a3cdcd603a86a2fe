"""Tuples: the classes of a table at some rungs, each by one of its members, and how many rows it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Codes

_DENSE = 8
"""Sums are stored for every possible key while there are at most this many times more keys than cells."""


@dataclass(frozen=True, eq=False)
class Spread:
    """How the rows of a sensitive column spread: cells (tuple, value), sorted, each with its rows."""

    owners: Codes
    values: Codes
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tuples:
    """Equivalence classes: for each the finest codes of one of its tuples, column by column, and its rows.

    A recoding maps the class as it maps that tuple, so codes of any rung are one lookup away.  `population` counts the
    people of a larger table in each class, if there is one.

    >>> both = Tuples(np.array([[0, 1]], np.int32), np.array([3, 4]))
    >>> both.rows, len(both)
    (7, 2)
    """

    codes: NDArray[np.int32]
    sizes: NDArray[np.int64]
    population: NDArray[np.int64] | None = None
    spreads: Mapping[str, Spread] = field(default_factory=lambda: MappingProxyType({}))

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.sizes.sum())

    def merged(self, ids: Codes, first: Codes) -> Tuples:
        """Return coarser classes: the class of each tuple, and for each class one of its tuples.

        Only sizes are added up here; cells of sensitive columns keep their tuples and are added up where they are read.
        """
        sizes = sum_by_class(ids, self.sizes, len(first))
        people = None if self.population is None else sum_by_class(ids, self.population, len(first))
        return Tuples(np.take(self.codes, first, axis=1), sizes, people)


def sum_by_class(ids: Codes, numbers: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Return the sum over each class, exact up to 2^53.

    >>> sum_by_class(np.array([0, 1, 0], np.int32), np.array([1, 2, 3]), 2).tolist()
    [4, 2]
    """
    return np.asarray(np.bincount(ids, numbers, classes).astype(np.int64))


def merged_spread(spread: Spread, ids: Codes, classes: int, values: int) -> Spread:
    """Return how a sensitive column spreads over coarser classes, sorted by class and value.

    >>> spread = Spread(np.array([0, 1, 1], np.int32), np.array([5, 5, 7], np.int32), np.array([1, 2, 3]))
    >>> merged = merged_spread(spread, np.array([0, 0], np.int32), 1, 8)
    >>> merged.values.tolist(), merged.counts.tolist()
    ([5, 7], [3, 3])
    """
    room, keys = classes * values, _keys(spread, ids, classes, values)
    kind = keys.dtype
    if room <= _DENSE * len(keys) + 1024:
        totals = np.bincount(keys, spread.counts, room)
        met = np.flatnonzero(totals > 0).astype(kind)
        counts = totals[met].astype(np.int64)
    else:
        met, places = np.unique(keys, return_inverse=True)
        counts = np.bincount(places, spread.counts, len(met)).astype(np.int64)
    owners: NDArray[Any] = met // kind.type(values)
    return Spread(owners.astype(np.int32), (met - owners * kind.type(values)).astype(np.int32), counts)


def spread_table(spread: Spread, ids: Codes, classes: int, values: int) -> NDArray[np.float64] | None:
    """Return a table of counts, a line for each class and a column for each value; None if mostly zeros.

    >>> spread = Spread(np.array([0, 1, 1], np.int32), np.array([0, 0, 1], np.int32), np.array([1, 2, 3]))
    >>> spread_table(spread, np.array([0, 0], np.int32), 1, 2).tolist()
    [[3.0, 3.0]]
    """
    room = classes * values
    if room > _DENSE * len(spread.counts) + 1024:
        return None
    rows = np.bincount(_keys(spread, ids, classes, values), spread.counts, room).astype(np.float64, copy=False)
    return rows.reshape(classes, values)


def _keys(spread: Spread, ids: Codes, classes: int, values: int) -> NDArray[Any]:
    """Return one number for each cell: that of its class and value after merging."""
    kind = np.dtype(np.int32 if classes * values < 2**31 else np.int64)  # half the memory to walk through, mostly
    keys: NDArray[Any] = ids[spread.owners].astype(kind)
    keys *= kind.type(values)
    keys += spread.values
    return keys
