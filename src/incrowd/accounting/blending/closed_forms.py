"""Crowd-blending after a Poisson sample: the published ε, and closed forms of δ with explicit constants.

The closed forms are 10² to 10⁴ times larger than the exact δ of `sampled_crowd`; they show how δ falls with k and the
rate.
"""

from __future__ import annotations

import math

from incrowd.core.rounding import Number, exact, not_below
from incrowd.errors import InvalidParameter

_RELATIVE = 1e-12
_CHERNOFF = 2.0 * math.log(2.0) - 1.0  # (1+d)ln(1+d) − d ≥ this·d² for 0 ≤ d ≤ 1


def zero_knowledge_epsilon(crowd_epsilon: Number, rate: Number) -> float:
    """Return the ε of the published theorem: ln(p(2−p)/(1−p)·e^ε + 1 − p), rounded up.

    It is at least −ln(1−p), with equality at crowd ε = 0, so adding a person costs no δ there.

    Source: Gehrke, Hay, Lui & Pass 2012, Theorem 1.

    >>> round(zero_knowledge_epsilon("0.1", "0.1"), 6)
    0.125146
    """
    p, crowd = _rate(rate), _crowd(crowd_epsilon)
    # one is subtracted before it is added back: no digits are lost for small rates
    return not_below(math.log1p(p * ((2.0 - p) * math.expm1(crowd) + 1.0) / (1.0 - p)), _RELATIVE)


def theorem1_delta(k: int, rate: Number) -> float:
    """Return e^(−k·KL(g‖p)/g), g = p(2−p): a bound on δ at ε = `zero_knowledge_epsilon`, for every crowd ε.

    Source: Gehrke, Hay, Lui & Pass 2012, Theorem 1, whose constant is left open there. Proof: at this ε only
    removing t counts, and with N−1 others only sampled crowds of m+1 ≥ k people, t included, with m+1 > gN show more
    than e^ε allows. So δ is at most P[Bin(N, p) ≥ max(k, gN)] ≤ e^(−N·KL(s/N‖p)) with s ≥ k, s/N ≥ g. For fixed s the
    exponent falls in N, so the worst N is s/g.

    >>> round(theorem1_delta(20, "0.1"), 4)
    0.0212
    """
    p = _rate(rate)
    return _power(k * _exponent(p))


def theorem1_simple_delta(k: int, rate: Number) -> float:
    """Return e^(−C·k(1−p)²/(2−p)), C = 2·ln 2 − 1: a simpler and larger bound than `theorem1_delta`.

    >>> round(theorem1_simple_delta(20, "0.1"), 4)
    0.0371
    """
    p = _rate(rate)
    return _power(_CHERNOFF * k * (1.0 - p) ** 2 / (2.0 - p))


def divergence(a: float, b: float) -> float:
    """Return KL(a‖b) of two coins, rounded down.

    >>> round(divergence(0.5, 0.25), 6)
    0.143841
    """
    value = a * math.log(a / b) + ((1.0 - a) * math.log((1.0 - a) / (1.0 - b)) if a < 1.0 else 0.0)
    return max(0.0, value - 1e-15)


def _exponent(p: float) -> float:
    # KL(g‖p)/g at g = p(2−p), written out
    return math.log(2.0 - p) + (1.0 - p) ** 2 / (p * (2.0 - p)) * math.log1p(-p)


def _power(exponent: float) -> float:
    return min(1.0, max(not_below(math.exp(-exponent), _RELATIVE + 4e-15 * exponent), math.ulp(0.0)))


def _crowd(crowd_epsilon: Number) -> float:
    crowd = exact(crowd_epsilon, "the crowd's epsilon")
    if not 0 <= crowd <= 300:
        raise InvalidParameter("the closed forms need a crowd's epsilon between 0 and 300.")
    return float(crowd)


def _rate(rate: Number) -> float:
    share = exact(rate, "the sampling rate")
    if not 0 < share < 1:
        raise InvalidParameter("the sampling rate must lie strictly between 0 and 1, such as 0.1.")
    return float(share)
