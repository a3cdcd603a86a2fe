"""Hashing: each value of a column as 64 scattered bits, the same in every batch and every run.

Two values share their bits with a chance of about 2^-64: what is counted over hashes is a count over values.  The bits
of a tuple are the sum of the bits of its columns, each hashed with a salt of its own (tabulation hashing).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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
