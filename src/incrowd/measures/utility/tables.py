"""Tables: how far the tables of one, two or more columns are from what they were.

*Total variation* ½ Σ |p − q| of the shares of all combinations of values: the share of rows that would have to move.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from incrowd.core.keys import Layout
from incrowd.measures.coded import Coded


@dataclass(frozen=True)
class TableDistance:
    """How far the table over some columns is from what it was."""

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
    """Return the distances of all tables of so many columns."""
    return tuple(table_distance(before, after, each) for each in combinations(range(len(before.names)), size))
