"""Records: what rows add to statistics, in integers, each from its own codes and what was published before alone.

All rows with the same codes are one record with the number of them, as the engine counted them: nothing depends on the
order or the batches of rows, or on how many there are.  Every sum is one of integers that doubles hold exactly
(below 2^53), or of 64-bit integers, so no order of adding changes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.methods.shared.columns import row_limits

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.counts import Counts
    from incrowd.core.recoding import Classes
    from incrowd.core.table import Table

Integers = NDArray[np.int64]
_CHUNK = 2**14
_FEW = 2**18
_EXACT = 2**53


@dataclass(frozen=True, eq=False)
class Records:
    """Distinct records as keys, with how many rows are like each; `sizes` are the classes of the columns in order."""

    counts: Counts
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, table: Table, classes: Sequence[Classes], coins: Coins) -> Records:
        """Count the records of a table in one pass, at most so many rows of each person as the unit allows."""
        cells = Cells(tuple(each.recoding for each in classes))
        counts = table.engine.count(table.rows, cells, *row_limits(table, coins))
        return cls(counts, tuple(map(len, classes)))

    def pieces(self) -> Iterator[tuple[Integers, Integers]]:
        """Return the codes of some records at a time, a row each, and how many rows are like each."""
        return iter(self._held) if len(self.counts) <= _FEW else self._unpacked()

    @cached_property
    def _held(self) -> tuple[tuple[Integers, Integers], ...]:
        """All pieces, where they are few: they are read once for each round."""
        return tuple(self._unpacked())

    def _unpacked(self) -> Iterator[tuple[Integers, Integers]]:
        for start in range(0, len(self.counts), _CHUNK):
            codes = self.counts.layout.unpack(self.counts.keys[start : start + _CHUNK])
            yield np.stack(codes, axis=1).astype(np.int64), self.counts.counts[start : start + _CHUNK]


def added(places: Integers, amounts: Integers, size: int) -> Integers:
    """Return the sum of the amounts at each place, exactly.

    >>> added(np.array([0, 2, 0]), np.array([5, -1, 2]), 3).tolist()
    [7, 0, -1]
    """
    if int(np.abs(amounts).sum()) < _EXACT:
        return np.bincount(places, amounts, size).astype(np.int64)
    total = np.zeros(size, np.int64)
    np.add.at(total, places, amounts)
    return total


def crossed(left: Integers, right: Integers) -> Integers:
    """Return leftᵀ · right exactly: by doubles where every partial sum is below 2^53, else in 64-bit integers.

    >>> crossed(np.array([[1, 2]]), np.array([[3]])).tolist()
    [[3], [6]]
    """
    most = int(np.abs(left).max(initial=0)) * int(np.abs(right).sum(axis=0).max(initial=0))
    if most < _EXACT:
        return np.rint(left.T.astype(np.float64) @ right.astype(np.float64)).astype(np.int64)
    return left.T @ right


def clipped(vectors: Integers, square: int) -> Integers:
    """Return each vector, or if its squared length is above `square` a shorter one in about the same direction.

    A vector is multiplied by √square over its length and every number is cut towards zero: its length can only shrink.

    >>> clipped(np.array([[3, 4], [6, 8]]), 25).tolist()
    [[3, 4], [3, 4]]
    """
    lengths = (vectors * vectors).sum(axis=1)
    roots = np.sqrt(lengths.astype(np.float64)).astype(np.int64)
    roots += roots * roots < lengths
    radius = int(np.sqrt(float(square)))
    radius -= radius * radius > square
    shorter = np.sign(vectors) * (np.abs(vectors) * radius // np.maximum(1, roots)[:, None])
    return np.where((lengths > square)[:, None], shorter, vectors)
