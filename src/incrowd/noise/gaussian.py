"""Integer Gaussian noise, drawn exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.noise.chance import rational
from incrowd.noise.laplace import geometric
from incrowd.noise.toss import below, decay, decay_of_product, toss
from incrowd.noise.words import Words

_CHUNK = 2**15
_WIDTHS = 2**12


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
        found = _accepted(words, scale, min(_CHUNK, 2 * (size - filled) + 16))[: size - filled]
        result[filled : filled + found.size] = found
        filled += found.size
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
