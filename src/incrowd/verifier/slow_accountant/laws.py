"""Laws: what is published of a crowd of which some are sampled, and how far two laws are from each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1 + 1e-6  # the second route computes with floats, and differences of small numbers cancel
LARGEST = 10_000
"""The largest crowd that is tried."""

Law = NDArray[np.float64]
Shown = Callable[[Law], Law]
"""What is published of a crowd, given the law of how many of it are sampled."""


def suppressed(k: int) -> Shown:
    """Return what suppression below k publishes of a crowd: 0 if fewer than k were sampled, else how many.

    >>> suppressed(2)(np.array([0.25, 0.5, 0.25])).tolist()
    [0.75, 0.0, 0.25]
    """

    def published(sampled: Law) -> Law:
        law = np.where(np.arange(len(sampled)) >= k, sampled, 0.0)
        law[0] = float(np.sum(sampled[:k]))
        return law

    return published


def noisy_below(k: int, noise: float) -> Shown:
    """Return what is published of a crowd whose counts below k have noise: first those, then the exact ones.

    A reader sees which counts are exact, and noisy ones clamped to 0 … k − 1.  Both lose nothing: without marks less is
    seen, and unclamped noise beyond either end has the same likelihood ratio as the end.
    """
    channel = clamped(k, noise)

    def published(sampled: Law) -> Law:
        small = np.zeros(k)
        small[: min(k, len(sampled))] = sampled[:k]
        return np.concatenate((small @ channel, sampled[k:]))

    return published


@lru_cache(maxsize=8)
def clamped(k: int, noise: float) -> Law:
    """Return for each count below k the law of count plus two-sided geometric noise, clamped to 0 … k − 1.

    >>> clamped(2, math.log(3)).round(3).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    fall, count, published = math.exp(-noise), np.arange(k)[:, None], np.arange(k)[None, :]
    law: Law = (1.0 - fall) / (1.0 + fall) * fall ** np.abs(published - count)
    if k == 1:
        return np.ones((1, 1))
    law[:, 0] = fall ** np.arange(k) / (1.0 + fall)
    law[:, -1] = fall ** np.arange(k)[::-1] / (1.0 + fall)
    return law


def binomials(rate: Fraction) -> Iterator[Law]:
    """Yield the law of how many of 0, 1, 2, … people are sampled.

    >>> laws = binomials(Fraction(1, 2))
    >>> [next(laws).tolist() for _ in range(3)]
    [[1.0], [0.5, 0.5], [0.25, 0.5, 0.25]]
    """
    yes, no, law = float(rate), float(1 - rate), np.ones(1)
    while True:
        yield law
        law = np.append(law * no, 0.0) + np.append(0.0, law * yes)


def distance(left: Law, right: Law, epsilon: float, canceled: float = 0.0) -> float:
    """Return the sum of max(0, left − e^ε·right), where a law that ends earlier is 0 beyond its end.

    A difference is rounding if it is `canceled` times its terms, or smaller.
    """
    padded = np.zeros((2, max(len(left), len(right))))
    padded[0, : len(left)], padded[1, : len(right)] = left, right
    over = padded[0] - math.exp(min(epsilon, 700.0)) * padded[1]
    return float(np.sum(np.where(over > canceled * padded[0], over, 0.0)))
