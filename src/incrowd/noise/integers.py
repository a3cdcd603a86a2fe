"""Integer noise, drawn exactly: Laplace, also where only its outliers show, and Gaussian."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from incrowd.noise.chance import VANISHING, Chance, Enclosure, digits_of, exp_enclosure, exponential, logistic, rational
from incrowd.noise.toss import Words, below, decay, decay_of_product, toss

LARGEST = 2**62
"""Noise ends here: beyond lies a chance below e^(−16000) at the largest scale allowed."""

_CHUNK = 2**15  # numbers at a time: a quarter of a megabyte, which stays in a core's cache
_BATCH = 2**15  # gaps at a time; any number is correct
_WIDTHS = 2**12  # 4096 · 3/2 standard deviations: what is rejected beyond has a chance below e^(−10⁷)


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


def outliers(words: Words, scale: Fraction, least: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of `size` independent integer Laplace draws, return where those of at least `least` ≥ 1 lie, and their values.

    Each draw is at least m = `least` with chance p = a^m / (1 + a), a = e^(−1/scale), so the gaps between such draws
    are geometric with ratio 1 − p and the values are m plus geometric with ratio a.  Time grows with what is found,
    not with `size`.  With m above 2^14 scales the answer is empty: the chance of anything else is below 10^(−7000).

    Source: Cormode, Procopiuc, Srivastava and Tran 2012 (there with a binomial count).
    """
    where_found = [np.empty(0, dtype=np.int64)]
    if least > VANISHING * scale:
        return where_found[0], where_found[0]
    low = min(size.bit_length(), _doublings(scale, least))
    digits = [_gap_digit(scale, least, j) for j in range(low)]
    carry = _gap_power(scale, least, low)
    last = -1
    while last < size:
        gaps = np.minimum(by_digits(words, digits, carry, min(_BATCH, size + 1), size), size)
        places = last + np.cumsum(gaps + 1)
        where_found.append(places[places < size])
        last = int(places[-1])
    where = np.concatenate(where_found)
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


def gaussian(words: Words, scale: Fraction, size: int) -> NDArray[np.int64]:
    """Draw integers with P[z] proportional to e^(−z² / (2 scale²)).

    Rejection: propose |z| = w h + l with l uniform below w and h geometric, P[h] ∝ e^(−h w² / (2 scale²)), and
    accept with chance e^(−(w² h (h − 1) + l (2 w h + l)) / (2 scale²)).  Since (w h + l)² = w² h + w² h (h − 1)
    + l (2 w h + l), accepted magnitudes have P ∝ e^(−|z|² / (2 scale²)); a fair sign follows, and minus zero is
    rejected so that zero is not drawn twice.  Every exponent is an integer times one constant, so `decay` is exact.
    About 0.56 of the proposals are accepted.  Proposals beyond 4096 widths (more than 6000 standard deviations)
    are rejected, which changes any probability by less than e^(−10^7).

    Source: the rejection idea of Canonne, Kamath and Steinke 2020, Algorithm 3, with another proposal.
    """
    result = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        accepted = _accepted(words, scale, min(_CHUNK, 2 * (size - filled) + 16))[: size - filled]
        result[filled : filled + accepted.size] = accepted
        filled += accepted.size
    return result


def _accepted(words: Words, scale: Fraction, proposals: int) -> NDArray[np.int64]:
    width = -(-3 * scale.numerator // (2 * scale.denominator))
    variance = 2 * scale**2
    many = geometric(words, variance / width**2, proposals)
    rest = below(words, width, proposals)
    keep = many < _WIDTHS
    many, rest = many[keep], rest[keep]
    keep = decay(words, variance / width**2, many * (many - 1))
    many, rest = many[keep], rest[keep]
    keep = decay_of_product(words, variance, rest, 2 * width * many + rest)
    size = width * many[keep] + rest[keep]
    negative = toss(words, rational(Fraction(1, 2)), size.size)
    signed: NDArray[np.int64] = np.where(negative, -size, size)
    return signed[~negative | (size > 0)]
