"""Sketch: how many different tuples there are and how many occur once, in memory that does not grow with the rows.

Each value of a column becomes 64 scattered bits, the same in every batch and every run, and a tuple the sum of the bits
of its columns, each hashed with a salt of its own (tabulation hashing); two tuples share their bits with a chance of
about 2^-64.  Tuples are kept by their bits, each with its number of rows.  When there are too many, only those whose
bits lie in the lower half are kept, then in the lower quarter, and so on: a fair sample of the *tuples*, each still
counted in full.  So the numbers are exact while the tuples fit, and unbiased estimates after that; a sample of the rows
would make nearly every tuple look unique.

Source: Gibbons 2001, distinct sampling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.core.fingerprints import Bits
from incrowd.core.keys import grouped


@dataclass(frozen=True)
class TupleSpread:
    """What a sketch found out about the tuples of `rows` rows; `margin` is two standard errors of the unique share.

    `most` is the number of rows of the most frequent tuple, among those that are kept.
    """

    rows: int
    distinct: int
    unique: int
    exact: bool
    margin: float
    most: int = 0

    @property
    def unique_share(self) -> float:
        """The share of rows that are alone with their tuple."""
        return min(1.0, self.unique / self.rows) if self.rows else 0.0


class Sketch:
    """Tuples, added by their bits batch by batch.

    >>> sketch = Sketch(capacity=1000)
    >>> sketch.add(np.array([5, 5, 9], np.uint64))
    >>> sketch.spread()
    TupleSpread(rows=3, distinct=2, unique=1, exact=True, margin=0.0, most=2)
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._rows = 0
        self._halvings = 0
        self._keys = np.zeros(0, np.uint64)
        self._counts = np.zeros(0, np.int64)
        self._waiting: list[Bits] = []
        self._room = capacity

    def add(self, bits: Bits) -> None:
        """Count one row for each element."""
        self._rows += len(bits)
        if self._halvings:
            bits = bits[bits < np.uint64(2 ** (64 - self._halvings))]
        self._waiting.append(bits)
        self._room -= len(bits)
        if self._room < 0:
            self._condense()

    def merge(self, other: Sketch) -> None:
        """Count the rows of another sketch too: the same comes out as if all had been added to one of this capacity.

        A tuple that one of the two still keeps at the coarser of their two fractions was counted in full by both; and
        each kept no coarser fraction than its own tuples needed, which are some of all.

        >>> one, two, both = Sketch(2), Sketch(2), Sketch(2)
        >>> for part, bits in ((one, [5, 2**63]), (two, [5, 9, 2**63 + 1])):
        ...     part.add(np.array(bits, np.uint64))
        ...     both.add(np.array(bits, np.uint64))
        >>> one.merge(two)
        >>> one.spread() == both.spread()
        True
        """
        self._condense()
        keys, counts = other.content
        self._rows += other.rows
        self._halvings = max(self._halvings, other.halvings)
        self._include(keys, counts)

    @property
    def rows(self) -> int:
        """How many rows were added."""
        return self._rows

    @property
    def halvings(self) -> int:
        """How often the tuples that are kept were halved."""
        return self._halvings

    @property
    def content(self) -> tuple[Bits, NDArray[np.int64]]:
        """The tuples that are kept, in order, and how many rows each has."""
        self._condense()
        return self._keys, self._counts

    def spread(self) -> TupleSpread:
        """Return what is known now."""
        self._condense()
        scale = 2**self._halvings
        once = int(np.count_nonzero(self._counts == 1))
        error = 2.0 * math.sqrt(once * (1.0 - 1.0 / scale)) * scale / max(1, self._rows)
        distinct, unique = (min(self._rows, number * scale) for number in (len(self._keys), once))
        most = int(self._counts.max(initial=0))
        return TupleSpread(self._rows, distinct, unique, scale == 1, error, most)

    def _condense(self) -> None:
        keys, counts = grouped(np.concatenate([np.zeros(0, np.uint64), *self._waiting]))
        self._waiting, self._room = [], self._capacity
        self._include(keys, counts)

    def _include(self, keys: Bits, counts: NDArray[np.int64]) -> None:
        """Add so many rows for each of these tuples, and keep what fits."""
        places = np.searchsorted(self._keys, keys)
        known = np.take(np.append(self._keys, np.uint64(0)), places) == keys
        known &= places < len(self._keys)
        self._counts[places[known]] += counts[known]
        if not known.all():
            fresh = ~known
            self._counts = np.insert(self._counts, places[fresh], counts[fresh])
            self._keys = np.insert(self._keys, places[fresh], keys[fresh])
        self._trim()
        while len(self._keys) > self._capacity:
            self._halvings += 1
            self._trim()

    def _trim(self) -> None:
        if self._halvings:
            kept = int(np.searchsorted(self._keys, np.uint64(2 ** (64 - self._halvings))))
            if kept == len(self._keys):
                return
            self._keys, self._counts = self._keys[:kept].copy(), self._counts[:kept].copy()
