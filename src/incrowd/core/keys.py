"""Keys: tuples of codes as single numbers that sort as the tuples do, and never wrap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[Any]
"""64-bit integers, or from 2^63 tuples on bytes of several 64-bit words, the most significant first."""

Codes = NDArray[np.int32]

_LIMIT = 2**63  # keys are signed numbers of 64 bits
_DENSE = 2  # so many possible keys for each that is there have a counter each
_FEW_MORE = 1.25
_CHUNK = 2**16  # keys recoded at a time: half a megabyte a column stays in a cache


@dataclass(frozen=True)
class Layout:
    """How tuples of codes are laid out in a key: mixed radix, the first column most significant.

    >>> layout = Layout((3, 10))
    >>> layout.pack([np.array([2, 0], np.int32), np.array([7, 9], np.int32)]).tolist()
    [27, 9]
    >>> [codes.tolist() for codes in layout.unpack(np.array([27]))]
    [[2], [7]]
    >>> Layout((2**40, 2**40)).dtype
    dtype('S16')
    """

    sizes: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many tuples there are."""
        return math.prod(self.sizes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What a key is stored as."""
        return np.dtype(np.int64) if len(self.words) == 1 else np.dtype(f"S{8 * len(self.words)}")

    @cached_property
    def words(self) -> tuple[slice, ...]:
        """The columns that share each 64-bit word."""
        words, start, room = [], 0, 1
        for place, size in enumerate(self.sizes):
            if room * size >= _LIMIT and place > start:
                words.append(slice(start, place))
                start, room = place, 1
            room *= size
        return (*words, slice(start, len(self.sizes)))

    def pack(self, codes: Sequence[Codes]) -> Keys:
        """Return the key of each tuple, given column by column."""
        words = [_horner(codes[word], self.sizes[word]) for word in self.words]
        if len(words) == 1:
            return words[0]
        return np.stack(words, axis=1).astype(">i8").view(self.dtype)[:, 0]

    def unpack(self, keys: Keys) -> list[Codes]:
        """Return the tuples, column by column."""
        if len(self.words) == 1:
            return _digits(keys, self.sizes)
        words = np.ascontiguousarray(keys).view(">i8").reshape(len(keys), len(self.words)).astype(np.int64)
        return [codes for place, word in enumerate(self.words) for codes in _digits(words[:, place], self.sizes[word])]


def translated(keys: Keys, source: Layout, target: Layout, columns: Sequence[tuple[int, Codes | None]]) -> Keys:
    """Return the keys of other tuples: of these columns of the source, each code replaced where there is a table.

    >>> translated(np.array([27]), Layout((3, 10)), Layout((10,)), [(1, None)]).tolist()
    [7]
    """
    out = np.empty(len(keys), target.dtype)
    for start in range(0, len(keys), _CHUNK):
        codes = source.unpack(keys[start : start + _CHUNK])
        chosen = [codes[place] if table is None else table[codes[place]] for place, table in columns]
        out[start : start + _CHUNK] = target.pack(chosen)
    return out


def grouped(keys: Keys, counts: NDArray[np.int64] | None = None) -> tuple[Keys, NDArray[np.int64]]:
    """Return each key once, in order, with how often it occurs, or with the sum of its counts.

    >>> grouped(np.array([5, 3, 5]))
    (array([3, 5]), array([1, 2]))
    >>> grouped(np.array([5, 3, 5]), np.array([10, 1, 10]))
    (array([3, 5]), array([ 1, 20]))
    """
    if not len(keys):
        return keys, np.zeros(0, np.int64)
    if counts is not None and np.all(keys[1:] >= keys[:-1]):  # the first columns of what is in order are in order
        return _reduced(keys, counts)
    if keys.dtype == np.int64 and keys.min() >= 0 and keys.max() < _DENSE * len(keys):
        return _dense(keys, counts)
    if counts is not None and 0 < counts.min() <= counts.max() <= len(keys) and counts.sum() <= _FEW_MORE * len(keys):
        keys, counts = np.repeat(keys, counts), None  # numbers are put in order in less time than what is beside them
    if counts is None:
        keys = np.sort(keys)
        starts = np.flatnonzero(_differs(keys))
        return keys[starts], np.diff(starts, append=len(keys))
    order = np.argsort(keys)
    return _reduced(keys[order], counts[order])


def _reduced(keys: Keys, counts: NDArray[np.int64]) -> tuple[Keys, NDArray[np.int64]]:
    """Return keys in order once each, with the sums of their counts."""
    starts = np.flatnonzero(_differs(keys))
    return (keys, counts) if len(starts) == len(keys) else (keys[starts], np.add.reduceat(counts, starts))


def _differs(keys: Keys) -> NDArray[np.bool_]:
    return np.concatenate(([True], keys[1:] != keys[:-1]))


def _dense(keys: Keys, counts: NDArray[np.int64] | None) -> tuple[Keys, NDArray[np.int64]]:
    """Return the same where there are few possible keys: none is put in order."""
    times = np.bincount(keys)
    present = np.flatnonzero(times)
    if counts is None:
        return present, times[present]
    sums = np.zeros(len(times), np.int64)
    np.add.at(sums, keys, counts)
    return present, sums[present]


def ranked(codes: NDArray[np.integer]) -> tuple[Codes, int]:
    """Return the rank of each code among those that occur, and how many these are.

    >>> ranks, number = ranked(np.array([7, 2, 7]))
    >>> ranks.tolist(), number
    ([1, 0, 1], 2)
    """
    if len(codes) and codes.min() >= 0 and codes.max() < _DENSE * len(codes):
        met = np.zeros(int(codes.max()) + 1, np.bool_)
        met[codes] = True
        ranks = np.cumsum(met, dtype=np.int32) - np.int32(1)
        return ranks[codes], int(ranks[-1]) + 1
    values, places = np.unique(codes, return_inverse=True)
    return places.astype(np.int32), len(values)


def _horner(codes: Sequence[Codes], sizes: Sequence[int]) -> NDArray[np.int64]:
    keys = codes[0].astype(np.int64)
    for column, size in zip(codes[1:], sizes[1:], strict=True):
        keys *= size
        keys += column
    return keys


def _digits(keys: NDArray[np.int64], sizes: Sequence[int]) -> list[Codes]:
    columns: list[Codes] = []
    for size in reversed(sizes[1:]):
        above = keys // size  # in a quarter of the time of a division that returns what remains
        columns.append((keys - above * size).astype(np.int32))
        keys = above
    return [keys.astype(np.int32), *reversed(columns)]
