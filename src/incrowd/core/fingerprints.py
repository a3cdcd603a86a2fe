"""Fingerprints: samples of constant size by which a data holder recognizes rows under another name; with hashing.

Each value of a column is hashed to 64 scattered bits, the same in every batch and every run.  Two values share their
bits with a probability of about 2^-64.  The bits of a tuple are the sum of the bits of its columns, each hashed with a
salt of its own (tabulation hashing).

In a sample of a multiset every element has 64 scattered bits, the same wherever it occurs.  The elements with the
smallest bits are stored, each with how often it occurs.  Two samples made under one key hold the same elements of what
both multisets share, up to the smaller of their last bits: there each element is decided, not guessed.

Source: Cohen & Kaplan 2007, bottom-k sketches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.keys import grouped
from incrowd.core.reading import as_dictionary

Bits = NDArray[np.uint64]

_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2^64
_INVERSE = pow(_BASE, -1, 2**64)
_POWERS = 2**19  # powers that are computed once: enough for most chunks of texts
_CHUNK = 2**14  # texts at a time; their bytes are held as an array


def row_bits(array: pa.Array, salt: int) -> Bits:
    """Return the bits of each row's value; all missing values share theirs.

    >>> first, second = row_bits(pa.array(["02139", "2139", None, "02139"]), 7), row_bits(pa.array(["02139"]), 7)
    >>> len(set(first.tolist())), first[3] == second[0]
    (3, np.True_)
    """
    return coded_bits(*as_dictionary(array), salt)


def coded_bits(values: pa.Array, indices: NDArray[np.integer] | None, salt: int) -> Bits:
    """Return the same for what `as_dictionary` gave: values, and for each row the place of its own."""
    bits = dictionary_bits(values, salt)
    if indices is not None:
        return np.take(bits, indices)
    missing = pc.is_null(values, nan_is_null=True).to_numpy(zero_copy_only=False)
    return np.where(missing, bits[-1], bits[:-1])


def dictionary_bits(values: pa.Array, salt: int) -> Bits:
    """Return the bits of each value, and one more: those of a missing value."""
    return np.append(value_bits(values, salt), _scattered(np.array([~salt % 2**64], np.uint64), salt))


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
    return _first_powers(base)[:size] if size <= _POWERS else _computed_powers(base, size)


@cache
def _first_powers(base: int) -> Bits:
    return _computed_powers(base, _POWERS)


def _computed_powers(base: int, size: int) -> Bits:
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


KEPT = 1024
"""How many elements a sample holds."""

_MOST = 2**32 - 1  # counters of 32 bits stop here instead of wrapping
_SPARE = 2**64 - 1
"""The bits of a place that no element took; it has the count 0."""


def _no_bits() -> Bits:
    return np.zeros(0, np.uint64)


def _no_counts() -> NDArray[np.int64]:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class BottomK:
    """The elements with the smallest bits, in order, each with its count.

    >>> sample = BottomK().with_elements(np.array([9, 5, 9], np.uint64))
    >>> sample.bits.tolist(), sample.counts.tolist()
    ([5, 9], [1, 2])
    """

    bits: Bits = field(default_factory=_no_bits)
    counts: NDArray[np.int64] = field(default_factory=_no_counts)

    def with_elements(self, bits: Bits) -> BottomK:
        """Return the sample once these elements are counted, too; whatever stays in it was counted in full."""
        if len(self.bits) == KEPT:
            bits = bits[bits <= self.bits[-1]]
        return self if not len(bits) else self._and(BottomK(*grouped(bits)))

    def merged(self, other: BottomK) -> BottomK:
        """Return the sample of two multisets together: counts add up.

        >>> some = BottomK().with_elements(np.array([5, 9], np.uint64))
        >>> some.merged(some).counts.tolist()
        [2, 2]
        """
        return self._and(other)

    def union(self, other: BottomK) -> BottomK:
        """Return the sample of the smallest multiset that holds both: of each element the larger count.

        >>> some = BottomK().with_elements(np.array([5, 9], np.uint64))
        >>> some.union(some).counts.tolist()
        [1, 1]
        """
        bits = np.concatenate((self.bits, other.bits))
        counts = np.concatenate((self.counts, other.counts))
        order = np.lexsort((-counts, bits))
        bits, counts = bits[order], counts[order]
        first = np.append(True, bits[1:] != bits[:-1])[: len(bits)]
        return BottomK(bits[first][:KEPT], counts[first][:KEPT])

    @property
    def as_set(self) -> BottomK:
        """The sample of the set of elements: each counts once."""
        return BottomK(self.bits, np.ones(len(self.bits), np.int64))

    def overlap(self, other: BottomK, besides: BottomK | None = None) -> Fraction:
        """Estimate which share of the smaller multiset is in the other one, too; 0 if nothing is known of it.

        Elements that are in `besides` do not count as shared: they were known before.

        >>> whole = BottomK().with_elements(np.arange(8, dtype=np.uint64))
        >>> extract = BottomK().with_elements(np.array([2, 3, 99], np.uint64))
        >>> extract.overlap(whole), extract.overlap(whole, besides=extract)
        (Fraction(2, 3), Fraction(0, 1))
        """
        others = BottomK() if besides is None else besides
        limit = min(self.limit, other.limit, others.limit)
        mine, theirs = self._below(limit), other._below(limit)
        both, here, there = np.intersect1d(mine.bits, theirs.bits, assume_unique=True, return_indices=True)
        news = ~np.isin(both, others.bits)
        shared = int(np.minimum(mine.counts[here], theirs.counts[there])[news].sum())
        smaller = min(int(mine.counts.sum()), int(theirs.counts.sum()))
        return Fraction(shared, smaller) if smaller else Fraction(0)

    def to_bytes(self) -> bytes:
        """Return the sample in a form that has the same length whatever is in it."""
        bits, counts = np.full(KEPT, _SPARE, "<u8"), np.zeros(KEPT, "<u4")
        bits[: len(self.bits)], counts[: len(self.bits)] = self.bits, np.minimum(self.counts, _MOST)
        return bits.tobytes() + counts.tobytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> BottomK:
        """Read what `to_bytes` wrote.

        >>> some = BottomK().with_elements(np.array([5, 9], np.uint64))
        >>> BottomK.from_bytes(some.to_bytes()).bits.tolist(), len(some.to_bytes()) == len(BottomK().to_bytes())
        ([5, 9], True)
        """
        counts = np.frombuffer(content, "<u4", KEPT, 8 * KEPT).astype(np.int64)
        used = counts > 0
        return cls(np.frombuffer(content, "<u8", KEPT).astype(np.uint64)[used], counts[used])

    @property
    def limit(self) -> int:
        """The bits up to which all elements are known."""
        return int(self.bits[-1]) if len(self.bits) == KEPT else _SPARE

    def _below(self, limit: int) -> BottomK:
        retained = int(np.searchsorted(self.bits, np.uint64(limit), side="right"))
        return BottomK(self.bits[:retained], self.counts[:retained])

    def _and(self, other: BottomK) -> BottomK:
        bits, counts = np.concatenate((self.bits, other.bits)), np.concatenate((self.counts, other.counts))
        both, sums = grouped(bits, counts)
        return BottomK(both[:KEPT], sums[:KEPT])


@dataclass(frozen=True, eq=False)
class SourceFingerprint:
    """The fingerprints of one source: of its content, of its rows, and of its people if there is a person ID column."""

    content: str
    rows: BottomK = field(default_factory=BottomK)
    people: BottomK | None = None
