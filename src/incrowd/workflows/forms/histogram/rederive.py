"""The δ of a histogram with noisy small counts on a secret sample, derived a second time by writing out its laws.

Nothing here comes from `incrowd.accounting`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_LARGEST = 10_000
_MOST_K = 400
_CANCELED = 1e-12  # a difference this small, relative to its terms, is rounding

Law = NDArray[np.float64]


@lru_cache(maxsize=8)
def blended_delta(k: int, rate: Fraction, epsilon: float, noise: float) -> float | None:
    """Return δ at ε by trying every number of people in your bin; None if there are too many to try.

    A reader sees which counts are exact, and noisy ones clamped to 0 … k − 1.  Both lose nothing: without marks less is
    seen, and unclamped noise beyond either end has the same likelihood ratio as the end.  Sizes are tried until the
    exact counts cannot be worse (as for suppression), and until fewer than k in the sample is so rare that
    their noise cannot be either; from ε = ln(1 + rate·(e^noise − 1)) on noise never shows anything.

    >>> f"{blended_delta(20, Fraction(1, 10), 0.5, 1.0):.3e}"
    '2.632e-11'
    """
    removing = float(rate) - float(1 - rate) * math.expm1(-epsilon)
    adding = float(rate) - float(1 - rate) * math.expm1(epsilon)
    least = math.ceil(k / removing) + 2
    least = max(least, math.ceil(k / adding) + 2 if adding > 0.0 else 0)
    silent = epsilon >= math.log1p(float(rate) * math.expm1(noise)) * (1.0 - _CANCELED)
    channel = clamped(k, noise) if k <= _MOST_K else None
    if least > _LARGEST or channel is None:
        return None
    worst, others = 0.0, np.ones(1)
    without = _seen(others, channel)
    for n in range(1, _LARGEST + 1):
        few = float(np.sum(others[: max(0, k - 1)]))
        others = _one_more(others, float(rate))
        with_you = _seen(others, channel)
        worst = max(worst, _excess(with_you, without, epsilon), _excess(without, with_you, epsilon))
        if n >= least and (silent or few <= worst):
            return worst
        without = with_you
    return None


def clamped(k: int, noise: float) -> Law:
    """Return for each count below k the law of count plus two-sided geometric noise, clamped to 0 … k − 1.

    >>> clamped(2, math.log(3)).round(3).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    fall, count, shown = math.exp(-noise), np.arange(k)[:, None], np.arange(k)[None, :]
    law: Law = (1.0 - fall) / (1.0 + fall) * fall ** np.abs(shown - count)
    if k == 1:
        return np.ones((1, 1))
    law[:, 0] = fall ** np.arange(k) / (1.0 + fall)
    law[:, -1] = fall ** np.arange(k)[::-1] / (1.0 + fall)
    return law


def _seen(sampled: Law, channel: Law) -> Law:
    """Return the law of what is seen: first the noisy counts 0 … k − 1, then the exact ones from k on."""
    k = len(channel)
    small = np.zeros(k)
    small[: min(k, len(sampled))] = sampled[:k]
    return np.concatenate((small @ channel, sampled[k:]))


def _one_more(sampled: Law, rate: float) -> Law:
    """Return the law of the number sampled of one person more."""
    return np.concatenate((sampled * (1.0 - rate), [0.0])) + np.concatenate(([0.0], sampled * rate))


def _excess(left: Law, right: Law, epsilon: float) -> float:
    padded = np.zeros((2, max(len(left), len(right))))
    padded[0, : len(left)], padded[1, : len(right)] = left, right
    over = padded[0] - math.exp(epsilon) * padded[1]
    return float(np.sum(np.where(over > _CANCELED * padded[0], over, 0.0)))
