"""Noise on very many zeros, drawn only where it shows."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from incrowd.noise.chance import VANISHING, Chance, Enclosure, digits_of, exp_enclosure
from incrowd.noise.laplace import LARGEST, by_digits, geometric
from incrowd.noise.words import Words

_BATCH = 2**15


def outliers(words: Words, scale: Fraction, least: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of `size` independent integer Laplace draws, return where those of at least `least` ≥ 1 lie, and their values.

    Each draw is at least m = `least` with chance p = a^m / (1 + a), a = e^(−1/scale), so the gaps between such draws
    are geometric with ratio 1 − p and the values are m plus geometric with ratio a.  Time grows with what is found,
    not with `size`.  With m above 2^14 scales the answer is empty: the chance of anything else is below 10^(−7000).

    Source: Cormode, Procopiuc, Srivastava and Tran 2012 (there with a binomial count).
    """
    found = [np.empty(0, dtype=np.int64)]
    if least > VANISHING * scale:
        return found[0], found[0]
    low = min(size.bit_length(), _doublings(scale, least))
    digits = [_gap_digit(scale, least, j) for j in range(low)]
    carry = _gap_power(scale, least, low)
    last = -1
    while last < size:
        gaps = np.minimum(by_digits(words, digits, carry, min(_BATCH, size + 1), size), size)
        places = last + np.cumsum(gaps + 1)
        found.append(places[places < size])
        last = int(places[-1])
    where = np.concatenate(found)
    return where, np.minimum(least + geometric(words, scale, where.size), LARGEST)


def _tail(scale: Fraction, least: int, digits: int) -> Enclosure:
    """Return bounds on P[z ≥ least]."""
    top, bottom = exp_enclosure(least / scale, digits), exp_enclosure(1 / scale, digits)
    return top[0] / (1 + bottom[1]), top[1] / (1 + bottom[0])


def _doublings(scale: Fraction, least: int) -> int:
    """Return the least J with 2^J p ≥ 1: gaps rarely need more binary digits."""
    return int(1 / _tail(scale, least, 20)[0]).bit_length()


def _gap_power(scale: Fraction, least: int, doublings: int) -> Chance:
    """Return the chance q^(2^doublings), q = 1 − p."""
    return partial(_power_digits, scale, least, doublings)


def _gap_digit(scale: Fraction, least: int, doublings: int) -> Chance:
    """Return the chance with odds q^(2^doublings)."""
    return partial(_odds_digits, scale, least, doublings)


@lru_cache(maxsize=1024)
def _power_digits(scale: Fraction, least: int, doublings: int, bits: int) -> int:
    return digits_of(partial(_squared, scale, least, doublings), bits)


@lru_cache(maxsize=1024)
def _odds_digits(scale: Fraction, least: int, doublings: int, bits: int) -> int:
    def enclose(digits: int) -> Enclosure:
        low, high = _squared(scale, least, doublings, digits)
        return low / (1 + low), high / (1 + high)

    return digits_of(enclose, bits)


def _squared(scale: Fraction, least: int, doublings: int, digits: int) -> Enclosure:
    """Return bounds on (1 − p)^(2^doublings), squaring the ends with outward rounding."""
    low, high = _tail(scale, least, digits)
    down, up = Context(prec=2 * digits, rounding=ROUND_FLOOR), Context(prec=2 * digits, rounding=ROUND_CEILING)
    floor = down.divide(Decimal((1 - high).numerator), Decimal((1 - high).denominator))
    ceiling = up.divide(Decimal((1 - low).numerator), Decimal((1 - low).denominator))
    for _ in range(doublings):
        floor, ceiling = down.multiply(floor, floor), up.multiply(ceiling, ceiling)
    return Fraction(floor), min(Fraction(1), Fraction(ceiling))
