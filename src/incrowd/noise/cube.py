"""Cube noise, drawn exactly: integer vectors whose chance falls with their largest coordinate."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from incrowd.noise.chance import VANISHING, Chance, Enclosure, digits_of, exp_enclosure
from incrowd.noise.integers import geometric
from incrowd.noise.toss import Words, toss

_CHUNK = 2**15  # numbers drawn at a time: a quarter of a megabyte; any size draws from the same law


def cube(words: Words, widths: tuple[int, ...], fine: int, scale: Fraction, size: int) -> NDArray[np.int64]:
    """Draw `size` integer vectors x with P[x] proportional to e^(−J(x) / scale), J(x) = max_j ⌈fine · |x_j| / width_j⌉.

    The vectors with J(x) ≤ J are those in the box B(J) of half-widths h_j = ⌊J · width_j / fine⌋.  Draw J with weight
    |B(J)| q^J, q = e^(−1/scale), then x uniformly in B(J): a vector x comes out with weight Σ_{J ≥ J(x)} q^J, which is
    q^J(x) / (1 − q), as it should.

    J is drawn by rejection.  |B(J)| = Π (2 h_j + 1) is at most the polynomial Π (1 + 2 J width_j / fine), which is
    Σ_i c_i C(J, i) with c_i ≥ 0, and C(J, i) q^J are the weights of i plus a sum of i + 1 geometric numbers; so choose
    i with chance proportional to c_i (q / (1 − q))^i, draw these, and keep J with chance Π (2 h_j + 1) over
    Π (2 h_j + 1 + 2 r_j), where r_j is what the floor cut off: each factor is settled while x_j is drawn.  `fine` is a
    power of two.  Vectors beyond 2^14 scales are drawn again, which changes any probability by less than e^(−16000).

    Source: the law is that of Hardt and Talwar 2010 for a box, on integers; the sampler and its proof are above.
    """
    result, far = np.empty((size, len(widths)), dtype=np.int64), math.floor(VANISHING * scale) + 1
    many = -(-_CHUNK // len(widths))
    for start in range(0, size, many):
        missing = np.arange(start, min(start + many, size))
        while missing.size:
            radius = np.minimum(_radius(words, widths, fine, scale, missing.size), far)
            radius_of_coordinate = np.repeat(radius, len(widths))
            coordinates, settled = _coordinate(
                words, np.tile(np.array(widths), missing.size), fine, radius_of_coordinate
            )
            accepted = (radius < far) & settled.reshape(-1, len(widths)).all(axis=1)
            result[missing[accepted]] = coordinates.reshape(-1, len(widths))[accepted]
            missing = missing[~accepted]
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
    ends = np.cumsum(degree + 1)
    numbers = np.minimum(geometric(words, scale, int(ends[-1])), math.floor(VANISHING * scale) + 1)
    return degree + np.add.reduceat(numbers, ends - degree - 1)


def _coordinate(
    words: Words, width: int | NDArray[np.int64], fine: int, radius: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Draw x uniformly within ±h, h = ⌊radius · width / fine⌋; keep it with chance (2 h + 1) / (2 h + 1 + 2 r).

    One of 2 h + 3 slots is drawn.  The last two stand for what the floor cut off, r each: the slot is a rejection with
    chance r, and otherwise there was no such slot, and another one is drawn.
    """
    bits = fine.bit_length() - 1
    product = (radius & (fine - 1)) * width
    half, rest = (radius >> bits) * width + (product >> bits), product & (fine - 1)
    result, accepted = np.zeros(radius.size, dtype=np.int64), np.ones(radius.size, dtype=np.bool_)
    waiting = np.arange(radius.size)
    while waiting.size:
        slot = _below(words, 2 * half[waiting] + 3)
        inside = slot <= 2 * half[waiting]
        result[waiting[inside]] = slot[inside] - half[waiting[inside]]
        waiting = waiting[~inside]
        rejected = _below(words, np.full(waiting.size, fine)) < rest[waiting]
        accepted[waiting[rejected]] = False
        waiting = waiting[~rejected]
    return result, accepted


def _below(words: Words, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw integers, the i-th uniform on 0, …, bounds[i] − 1: the rest of a word by the bound.

    The lowest 2^64 mod bound words are drawn again: of those that are left as many have each rest.
    """
    by = bounds.astype(np.uint64)
    lowest = (~by + np.uint64(1)) % by
    words_drawn = words(by.size).copy()
    again = np.flatnonzero(words_drawn < lowest)
    while again.size:
        words_drawn[again] = words(again.size)
        again = again[words_drawn[again] < lowest[again]]
    return (words_drawn % by).astype(np.int64)


@lru_cache(maxsize=256)
def _degree_chances(widths: tuple[int, ...], fine: int, scale: Fraction) -> tuple[Chance, ...]:
    """Return for i = 1, 2, … the chance of i among 0, …, i, weighted by c_k (q / (1 − q))^k."""
    values = [math.prod(1 + Fraction(2 * at * width, fine) for width in widths) for at in range(len(widths) + 1)]
    differences = tuple(
        sum(((-1) ** (i - k) * math.comb(i, k) * values[k] for k in range(i + 1)), Fraction(0))
        for i in range(len(values))
    )
    return tuple(partial(_degree_digits, differences[: i + 1], scale) for i in range(1, len(values)))


@lru_cache(maxsize=4096)
def _degree_digits(weights: tuple[Fraction, ...], scale: Fraction, bits: int) -> int:
    """Return the digits of w_i r^i / Σ_{k≤i} w_k r^k, which grows with r = 1 / (e^(1/scale) − 1), and so is enclosed.

    It is a rational function, not constant, of the transcendental number e^(−1/scale): never a dyadic fraction.
    """

    def enclose(digits: int) -> Enclosure:
        low, high = exp_enclosure(1 / scale, digits)
        ends = (low / (1 - low), high / (1 - high)) if high < 1 else (low / (1 - low), None)
        shares = [
            Fraction(1)
            if r is None
            else weights[-1] / sum(w / r ** (len(weights) - 1 - k) for k, w in enumerate(weights))
            for r in ends
        ]
        return shares[0], shares[1]

    return digits_of(enclose, bits)
