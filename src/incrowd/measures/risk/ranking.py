"""Ranking: which columns, alone and together, tell rows apart.

*Distinction* is different tuples over rows; *separation* is the share of pairs of rows that differ somewhere in the
columns; *unique* is the share of rows that are alone.  All three grow with every column that is added.

Source: Motwani & Xu 2007 for distinction and separation; ARX shows the same two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from incrowd.core.counts import Counts
from incrowd.errors import InvalidParameter
from incrowd.measures.risk.sizes import Sizes


@dataclass(frozen=True)
class SetOfColumns:
    """Some columns, and how far they tell rows apart."""

    columns: tuple[str, ...]
    distinction: float
    separation: float
    unique: float


def ranking(counts: Counts, largest: int = 3) -> tuple[SetOfColumns, ...]:
    """Return all sets of up to so many columns, those that make the most rows unique first.

    >>> from incrowd.core.cells import Cells
    >>> from incrowd.core.schema import Column, Schema
    >>> from incrowd.engines.local.engine import LOCAL
    >>> from incrowd.engines.readers.sources import open_source
    >>> import pyarrow as pa
    >>> rows = open_source(pa.table({"sex": ["F", "F", "M"], "zip": ["1", "2", "2"]}))
    >>> found = ranking(LOCAL.count(rows, Cells.of(Schema((Column("sex"), Column("zip"))), {})))
    >>> [(each.columns, round(each.unique, 2), round(each.separation, 2)) for each in found]
    [(('sex', 'zip'), 1.0, 1.0), (('sex',), 0.33, 0.67), (('zip',), 0.33, 0.67)]
    """
    if largest < 1:
        raise InvalidParameter("sets of columns have at least one column.")
    return tuple(sorted(_sets(counts, largest), key=lambda each: (-each.unique, -each.separation, len(each.columns))))


def _sets(counts: Counts, largest: int) -> Iterator[SetOfColumns]:
    rows = max(1, counts.total)
    for size in range(1, min(largest, len(counts.names)) + 1):
        for columns in combinations(counts.names, size):
            sizes = Sizes(counts.marginal(columns).counts)
            same = sizes.discernibility() - sizes.rows  # ordered pairs of different rows that agree
            yield SetOfColumns(
                columns, sizes.classes / rows, 1.0 - same / max(1, rows * (rows - 1)), sizes.unique / rows
            )
