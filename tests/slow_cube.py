"""Cube noise drawn one coordinate at a time, as version 1 drew it: the same law, from words in another order.

Golden answers were made from such words.  `incrowd.noise.cube` says why the law is the one it should be.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.noise.chance import VANISHING
from incrowd.noise.cube import _degree_chances
from incrowd.noise.integers import geometric
from incrowd.noise.toss import WORD, Words, toss


def slow_cube(words: Words, widths: tuple[int, ...], fine: int, scale: Fraction, size: int) -> NDArray[np.int64]:
    """Draw `size` integer vectors x with P[x] proportional to e^(−J(x) / scale)."""
    result = np.empty((size, len(widths)), dtype=np.int64)
    missing = np.arange(size)
    while missing.size:
        radius = _radius(words, widths, fine, scale, missing.size)
        kept = radius <= math.floor(VANISHING * scale)
        drawn = np.zeros((missing.size, len(widths)), dtype=np.int64)
        for j, width in enumerate(widths):
            alive = np.flatnonzero(kept)
            drawn[alive, j], kept[alive] = _coordinate(words, width, fine, radius[alive])
        result[missing[kept]] = drawn[kept]
        missing = missing[~kept]
    return result


def _radius(words: Words, widths: tuple[int, ...], fine: int, scale: Fraction, size: int) -> NDArray[np.int64]:
    """Draw J with weight q^J Π (1 + 2 J width_j / fine)."""
    chances = _degree_chances(widths, fine, scale)
    degree = np.zeros(size, dtype=np.int64)
    undecided = np.arange(size)
    for i in range(len(widths), 0, -1):
        here = toss(words, chances[i - 1], undecided.size)
        degree[undecided[here]] = i
        undecided = undecided[~here]
    result = degree.copy()
    end = math.floor(VANISHING * scale) + 1
    for i in range(len(widths) + 1):
        needed = np.flatnonzero(degree >= i)
        result[needed] += np.minimum(geometric(words, scale, needed.size), end)
    return result


def _coordinate(
    words: Words, width: int, fine: int, radius: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Draw x uniformly within ±h, h = ⌊radius · width / fine⌋; keep it with chance (2 h + 1) / (2 h + 1 + 2 r).

    One of 2 h + 3 slots is drawn.  The last two stand for what the floor cut off, r each: the slot is a rejection with
    chance r, and otherwise there was no such slot, and another one is drawn.
    """
    bits = fine.bit_length() - 1
    product = (radius & (fine - 1)) * width
    half, rest = (radius >> bits) * width + (product >> bits), product & (fine - 1)
    result, kept = np.zeros(radius.size, dtype=np.int64), np.ones(radius.size, dtype=np.bool_)
    waiting = np.arange(radius.size)
    while waiting.size:
        slot = _below(words, 2 * half[waiting] + 3)
        inside = slot <= 2 * half[waiting]
        result[waiting[inside]] = slot[inside] - half[waiting[inside]]
        waiting = waiting[~inside]
        rejected = _below(words, np.full(waiting.size, fine)) < rest[waiting]
        kept[waiting[rejected]] = False
        waiting = waiting[~rejected]
    return result, kept


def _below(words: Words, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw integers, the i-th uniform on 0, …, bounds[i] − 1; bounds lie below 2^63."""
    shifts = (WORD - 1 - np.frexp(np.maximum(bounds - 1, 1).astype(np.float64))[1]).astype(np.uint64)
    result = np.empty(bounds.size, dtype=np.int64)
    again = np.arange(bounds.size)
    while again.size:
        result[again] = (words(again.size) >> np.uint64(1) >> shifts[again]).astype(np.int64)
        again = again[result[again] >= bounds[again]]
    return result
