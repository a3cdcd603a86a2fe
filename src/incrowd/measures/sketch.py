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
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.keys import grouped
from incrowd.core.reading import as_dictionary

Bits = NDArray[np.uint64]

_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2^64
_INVERSE = pow(_BASE, -1, 2**64)
_CHUNK = 2**14


def row_bits(array: pa.Array, salt: int) -> Bits:
    """Return the bits of each row's value; all missing values share theirs.

    >>> first, second = row_bits(pa.array(["02139", "2139", None, "02139"]), 7), row_bits(pa.array(["02139"]), 7)
    >>> len(set(first.tolist())), first[3] == second[0]
    (3, np.True_)
    """
    return coded_bits(*as_dictionary(array), salt)


def coded_bits(values: pa.Array, indices: NDArray[np.integer] | None, salt: int) -> Bits:
    """Return the same for what `as_dictionary` gave: values, and for each row the place of its own."""
    bits = np.append(value_bits(values, salt), _scattered(np.array([~salt % 2**64], np.uint64), salt))
    if indices is not None:
        return np.take(bits, indices)
    missing = pc.is_null(values, nan_is_null=True).to_numpy(zero_copy_only=False)
    return np.where(missing, bits[-1], bits[:-1])


def value_bits(values: pa.Array, salt: int) -> Bits:
    """Return the bits of each value; the values are plain, and what a null gets means nothing.

    >>> len(set(value_bits(pa.array([1, 2, 3]), 0).tolist()))
    3
    """
    if pa.types.is_temporal(values.type):
        values = pc.cast(values, pa.int32() if values.type.bit_width == 32 else pa.int64())
    kind = values.type
    if pa.types.is_floating(kind):
        numbers = pc.add(pc.fill_null(pc.cast(values, pa.float64()), 0.0), 0.0)  # -0 is 0
        return _scattered(numbers.to_numpy(zero_copy_only=False).view(np.uint64), salt)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        whole = pc.cast(pc.fill_null(pc.cast(values, pa.int64(), safe=False), 0), pa.int64())
        return _scattered(whole.to_numpy(zero_copy_only=False).view(np.uint64), salt)
    text = pc.fill_null(pc.cast(values, pa.string()), "")
    parts = [_polynomial(text.slice(start, _CHUNK)) for start in range(0, len(text), _CHUNK)]
    return _scattered(np.concatenate([np.zeros(0, np.uint64), *parts]), salt)


def _polynomial(text: pa.Array) -> Bits:
    """Return Σ (byte + 1) · base^place modulo 2^64 of each text, by differences of one running sum over all bytes."""
    _, ends, characters = text.buffers()
    offsets = np.frombuffer(ends, np.int32)[text.offset : text.offset + len(text) + 1].astype(np.int64)
    start, stop = int(offsets[0]), int(offsets[-1])
    if start == stop:
        return np.zeros(len(text), np.uint64)
    letters = np.frombuffer(characters, np.uint8)[start:stop].astype(np.uint64) + np.uint64(1)
    running = np.concatenate(([np.uint64(0)], np.cumsum(letters * _powers(_BASE, len(letters)))))
    places = offsets - start
    sums = np.diff(np.take(running, places))
    return np.asarray(sums * np.take(_powers(_INVERSE, len(letters) + 1), places[:-1]))


def _powers(base: int, size: int) -> Bits:
    powers = np.full(size, base, np.uint64)
    powers[:1] = 1
    return np.cumprod(powers)


def _scattered(bits: Bits, salt: int) -> Bits:
    """Return the bits mixed with the salt, so that the tables of two salts have nothing in common."""
    (seed,) = _mixed(np.array([salt % 2**64], np.uint64))
    return _mixed(_mixed(bits) ^ seed)


def _mixed(bits: Bits) -> Bits:
    """Return bits of which every one depends on all (the finalizer of SplitMix64; Steele, Lea & Flood 2014)."""
    bits = bits + np.uint64(_BASE)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@dataclass(frozen=True)
class TupleSpread:
    """What a sketch found out about the tuples of `rows` rows; `margin` is two standard errors of the unique share."""

    rows: int
    distinct: int
    unique: int
    exact: bool
    margin: float

    @property
    def unique_share(self) -> float:
        """The share of rows that are alone with their tuple."""
        return min(1.0, self.unique / self.rows) if self.rows else 0.0


class Sketch:
    """Tuples, added by their bits batch by batch.

    >>> sketch = Sketch(capacity=1000)
    >>> sketch.add(np.array([5, 5, 9], np.uint64))
    >>> sketch.spread()
    TupleSpread(rows=3, distinct=2, unique=1, exact=True, margin=0.0)
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
        return TupleSpread(self._rows, distinct, unique, scale == 1, error)

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
