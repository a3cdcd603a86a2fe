"""Integer Laplace noise, drawn exactly: the two-sided geometric distribution."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.noise.chance import Chance, exponential, logistic
from incrowd.noise.toss import toss
from incrowd.noise.words import Words

LARGEST = 2**62
"""Noise ends here: beyond lies a chance below e^(−16000) at the largest scale allowed."""

_CHUNK = 2**15


def laplace(words: Words, scale: Fraction, size: int) -> NDArray[np.int64]:
    """Draw integers with P[z] = (1 − a) / (1 + a) · a^|z|, a = e^(−1/scale).

    P[z ≥ 1] = P[z ≤ −1] = a / (1 + a), so z is positive with that chance and, if not, negative with chance a;
    and since P[z ≥ m] falls by the factor a with each m ≥ 1, |z| is then 1 plus a geometric number.
    """
    result = np.empty(size, dtype=np.int64)
    x = 1 / scale
    for start in range(0, size, _CHUNK):
        part = result[start : start + _CHUNK]
        positive = toss(words, logistic(x), part.size)
        negative = toss(words, exponential(x), part.size) & ~positive
        part[:] = np.minimum(1 + geometric(words, scale, part.size), LARGEST)
        part *= positive.astype(np.int64) - negative
    return result


def geometric(words: Words, scale: Fraction, size: int) -> NDArray[np.int64]:
    """Draw integers g ≥ 0 with P[g] = (1 − a) a^g, a = e^(−1/scale), ending at 2^62.

    Write g = h · 2^J + Σ_{j<J} 2^j b_j.  Then a^g is the product of a^(2^J h) and of the a^(2^j b_j): the digits b_j
    are independent coins with odds a^(2^j), and h is geometric with ratio a^(2^J).  With 2^J ≥ scale that ratio
    is at most 1/e, and h counts how often such a coin comes up before it first does not.
    """
    low = max(0, -(-scale.numerator // scale.denominator) - 1).bit_length()
    digits = [logistic(2**j / scale) for j in range(low)]
    return by_digits(words, digits, exponential(2**low / scale), size, LARGEST)


def by_digits(words: Words, digits: Sequence[Chance], carry: Chance, size: int, end: int) -> NDArray[np.int64]:
    """Draw geometric numbers from the chances of their low binary digits and of going on beyond them.

    Numbers above `end` may be returned as any number above `end`.
    """
    result = np.zeros(size, dtype=np.int64)
    for j, chance in enumerate(digits):
        result += toss(words, chance, size).astype(np.int64) << j
    step = 1 << len(digits)
    alive = np.arange(size)
    for _ in range(end // step + 1):
        alive = alive[toss(words, carry, alive.size)]
        if not alive.size:
            break
        result[alive] += step
    return result
