"""The bins of a histogram: a cross of columns at levels, fixed by the declaration before a row is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.domain import Text
from incrowd.core.schema import Schema
from incrowd.core.steps.bins import BinColumn
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.partition import MOST_BINS, OccupiedBins
from incrowd.methods.shared.columns import bin_column, row_limits

if TYPE_CHECKING:
    from fractions import Fraction

    from incrowd.core.coins import Coins
    from incrowd.core.table import Table


LISTED = 10**7
"""Up to so many bins a histogram lists all of them; beyond, those that are not zero."""

COUNT, EXACT = "count", "exact"


@dataclass(frozen=True)
class BinPartition:
    """The bins over some columns at their levels.

    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.schema import Column
    >>> schema = Schema((Column("sex", hierarchy=Flat(Categories(("F", "M")))), Column("zip")))
    >>> BinPartition.of(schema, ("sex",), {}).size      # F, M, other and missing
    4
    >>> BinPartition.of(schema, ("sex", "zip"), {"zip": 1}).columns()[1].labels
    ('*',)
    """

    cells: Cells

    @classmethod
    def of(cls, schema: Schema, columns: tuple[str, ...], levels: Mapping[str, int]) -> BinPartition:
        """Return the bins of these columns, of all released ones if none is named; refuse what was drafted from rows.

        Bins that were found by looking at rows show rows by their very existence, whatever is done to their counts.
        """
        extra = [name for name in levels if columns and name not in columns]
        if extra:
            raise InvalidParameter(f"a level is given for {extra[0]!r}, which the histogram does not count by.")
        cells = Cells.of(schema, levels, columns or None)
        for name in cells.names:
            if name in (COUNT, EXACT):
                raise InvalidParameter(f"a histogram has a column {name!r} of its own: leave that column out.")
            if name in schema.drafted:
                raise InvalidParameter(
                    f"the values of {name!r} were drafted from rows, so its bins would show rows. Where the same is "
                    'public, write public: "source" there; or leave the column out.'
                )
        _refuse_names(cells)
        return cls(cells)

    @property
    def size(self) -> int | None:
        """How many bins there are, or None if some column is at an open level."""
        return self.cells.size

    @property
    def listed(self) -> bool:
        """Whether all bins are listed in what is released."""
        return self.size is not None and self.size <= LISTED

    def closed_size(self, instead: str) -> int:
        """Return how many bins there are, or refuse an open level with the way out."""
        for recoding in self.cells.recodings:
            if recoding.classes is None:
                raise InvalidParameter(
                    f"the bins of {recoding.column.name!r} at level {recoding.level} are not known before rows are "
                    "read, so empty ones cannot get noise, and a bin that is listed only when someone is in it shows "
                    f"that person. Declare its categories or bounds, choose a higher level, or {instead}."
                )
        size = self.cells.size
        if size is None:
            raise AssertionError("every column is at a closed level")
        return size

    def drawn_over(self) -> BinPartition:
        """Return the bins, or refuse more than noise can be drawn over: before a row is read or anything charged."""
        if self.size is not None and self.size > MOST_BINS:
            raise InvalidParameter(
                f"{self.size:.3g} bins are too many for noise on every one of them, and 2^46 are the most: choose "
                "higher levels or fewer columns, or use method suppressed-histogram."
            )
        return self

    def columns(self) -> tuple[BinColumn, ...]:
        """Return the bins as certificates state them: the labels of each column in order, None for missing values.

        Long lists are stated by their number and the SHA-256 of their JSON text.
        """
        return tuple(bin_column(recoding.column.name, recoding.classes) for recoding in self.cells.recodings)

    def count(self, table: Table, coins: Coins, rate: Fraction | None, at_least: int = 1) -> Counts:
        """Count the rows of each bin in one pass: of each person as many as the unit allows, of these a sample."""
        filters = [*row_limits(table, coins)]
        if rate is not None:
            filters.append(coins.sample(rate))
        return table.engine.count(table.rows, self.cells, *filters, at_least=at_least).at_least(at_least)

    def occupied(self, counts: Counts) -> OccupiedBins:
        """Return the bins of a closed partition that hold something."""
        return OccupiedBins(counts.keys.astype(np.int64), counts.counts, self.cells.layout.size)

    def labeled(self, places: NDArray[np.int64], counts: NDArray[np.int64]) -> pa.Table:
        """Return bins of a closed partition as a table: labels, then the count."""
        classes = [recoding.classes for recoding in self.cells.recodings]
        closed = tuple(column for column in classes if column is not None)
        return Counts(closed, places, counts).to_table(COUNT)


def rounded(counts: NDArray[np.int64], base: int) -> NDArray[np.int64]:
    """Return each count as the nearest multiple of `base`, halves upward.

    >>> rounded(np.array([0, 2, 3, 7, 8]), 5).tolist()
    [0, 0, 5, 5, 10]
    """
    return counts if base == 1 else (counts + base // 2) // base * base


def adding_up(noisy: NDArray[np.int64], base: int = 1) -> NDArray[np.int64]:
    """Return the multiples of `base` nearest to noisy counts that are not negative and have the same sum.

    The sum is that of the counts rounded to multiples, or 0 if that is negative.  Every count above 0 falls by the same
    amount, the smallest of them by one multiple more where it cannot be divided.  It reads noisy counts alone.

    Source: Wang, Lopuhaä-Zwakenberg, Li, Skoric & Li 2020, Locally Differentially Private Frequency Estimation with
    Consistency (Norm-Sub).

    >>> adding_up(np.array([8, 2, -2, 5, 3, 1])).tolist()
    [8, 1, 0, 5, 3, 0]
    """
    counts = rounded(noisy, base) // base
    total = int(counts.sum())
    if total <= 0:
        return np.zeros_like(noisy)
    order = np.argsort(-counts, kind="stable")
    sizes = np.arange(1, len(counts) + 1)
    above = np.cumsum(counts[order]) - total
    last = int(np.flatnonzero(counts[order] > above // sizes)[-1])
    share, rest = divmod(int(above[last]), last + 1)
    published = np.zeros_like(noisy)
    published[order[: last + 1]] = counts[order[: last + 1]] - share
    published[order[last + 1 - rest : last + 1]] -= 1
    return published * base


def _refuse_names(cells: Cells) -> None:
    for recoding in cells.recodings:
        if recoding.level == 0 and recoding.column.pseudonymous:
            raise InvalidParameter(
                f"the column {recoding.column.name!r} has a pseudonym: level 0 would release the name behind it."
            )
        if recoding.level == 0 and isinstance(recoding.column.domain, Text):
            raise InvalidParameter(
                f"the bins of {recoding.column.name!r} would be labeled with free text. List its categories, give it a "
                "hierarchy and a level above 0, or leave it out of columns."
            )
