"""Sketch: how many different tuples there are and how many occur once, in memory that does not grow with the rows.

Each value of a column is hashed to 64 bits, the same in every batch and every run; a tuple has the sum of the hashes of
its columns, each with a salt of its own (tabulation hashing).  Two tuples have the same hash with probability about
2^-64.  Tuples are stored by hash, each with its number of rows.  When there are too many, only hashes in the lower half
are retained, then in the lower quarter, and so on: a fair sample of the *tuples*, each still counted in full.  So the
numbers are exact while the tuples fit, and unbiased estimates after that.  In a sample of the rows nearly every tuple
would be unique.

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
    """What a sketch estimates of the tuples of `rows` rows; `margin` is two standard errors of the unique share.

    `most` is the number of rows of the most frequent tuple, among those that are retained.
    """

    rows: int
    distinct: int
    unique: int
    exact: bool
    margin: float
    most: int = 0

    @property
    def unique_share(self) -> float:
        """The share of unique rows."""
        return min(1.0, self.unique / self.rows) if self.rows else 0.0


class Sketch:
    """Tuples, added by their hashes batch by batch.

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
        self._counted: list[tuple[Bits, NDArray[np.int64]]] = []
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

    def add_counted(self, keys: Bits, counts: NDArray[np.int64]) -> None:
        """Count so many rows for each tuple, given by its bits; a tuple may come twice.

        >>> sketch = Sketch(capacity=1000)
        >>> sketch.add_counted(np.array([9, 5], np.uint64), np.array([1, 2]))
        >>> sketch.spread().unique, sketch.rows
        (1, 3)
        """
        if not len(counts) or int(counts.max()) == 1:
            self.add(keys[counts > 0])
            return
        self._rows += int(counts.sum())
        if self._halvings:
            retained = keys < np.uint64(2 ** (64 - self._halvings))
            keys, counts = keys[retained], counts[retained]
        self._counted.append((keys, counts))
        self._room -= len(keys)
        if self._room < 0:
            self._condense()

    def expect(self, halvings: int) -> None:
        """Retain only tuples that are retained after so many halvings: there will be at least as many."""
        self._halvings = max(self._halvings, halvings)

    def merge(self, other: Sketch) -> None:
        """Count the rows of another sketch too: the result is the same as if all were added to one of this capacity.

        A tuple retained at the coarser of the two fractions was counted in full by both; and neither sketch halved more
        often than its own tuples, which are some of all, required.

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
        """How often the retained tuples were halved."""
        return self._halvings

    @property
    def content(self) -> tuple[Bits, NDArray[np.int64]]:
        """The retained tuples in order, and how many rows each has."""
        self._condense()
        return self._keys, self._counts

    def spread(self) -> TupleSpread:
        """Return the estimates so far."""
        self._condense()
        scale = 2**self._halvings
        once = int(np.count_nonzero(self._counts == 1))
        error = 2.0 * math.sqrt(once * (1.0 - 1.0 / scale)) * scale / max(1, self._rows)
        distinct, unique = (min(self._rows, number * scale) for number in (len(self._keys), once))
        most = int(self._counts.max(initial=0))
        return TupleSpread(self._rows, distinct, unique, scale == 1, error, most)

    def _condense(self) -> None:
        waiting, counted, self._waiting, self._counted = self._waiting, self._counted, [], []
        self._room = self._capacity
        if waiting:
            self._include(*grouped(np.concatenate(waiting)))
        if counted:
            keys, counts = (np.concatenate(parts) for parts in zip(*counted, strict=True))
            self._include(*grouped(keys, counts))

    def _include(self, keys: Bits, counts: NDArray[np.int64]) -> None:
        """Add rows for each of these tuples, and retain what fits."""
        places = np.searchsorted(self._keys, keys)
        present = np.take(np.append(self._keys, np.uint64(0)), places) == keys
        present &= places < len(self._keys)
        self._counts[places[present]] += counts[present]
        if not present.all():
            fresh = ~present
            self._counts = np.insert(self._counts, places[fresh], counts[fresh])
            self._keys = np.insert(self._keys, places[fresh], keys[fresh])
        self._trim()
        while len(self._keys) > self._capacity:
            self._halvings += 1
            self._trim()

    def _trim(self) -> None:
        if self._halvings:
            number = int(np.searchsorted(self._keys, np.uint64(2 ** (64 - self._halvings))))
            if number == len(self._keys):
                return
            self._keys, self._counts = self._keys[:number].copy(), self._counts[:number].copy()
