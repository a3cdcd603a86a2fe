"""Crowd-blending after a Poisson sample: the published ε, and closed forms of δ with explicit constants.

The closed forms are 10² to 10⁴ times larger than the exact δ of `blending`; they show how δ falls with k and the rate.
"""

from __future__ import annotations

import math

from incrowd.accounting.amplification import amplify
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


def chernoff_delta(k: int, crowd_epsilon: Number, rate: Number, epsilon: Number) -> float:
    """Return e^(−k·KL(g‖p)/g), a bound on δ at any ε that is at least −ln(1−p) and ln(1 + p(e^crowd − 1)).

    g = pα/(pα + (1−p)e^crowd), α = 1 + (e^ε − 1)/p. Proof: at such an ε only removing t counts, and with N−1 others
    only sampled crowds of m+1 ≥ k people, t included, with m+1 > gN show more than e^ε allows. So δ is at most
    P[Bin(N, p) ≥ max(k, gN)] ≤ e^(−N·KL(s/N‖p)) with s ≥ k, s/N ≥ g. For fixed s the exponent falls in N, so the
    worst N is s/g.

    >>> f"{chernoff_delta(50, '0.1', '0.1', '0.605'):.3g}"
    '4.57e-22'
    """
    p, crowd, wanted = _rate(rate), _crowd(crowd_epsilon), exact(epsilon, "epsilon")
    # a rounding below −ln(1−p) is forgiven: only crowds of more than 10⁶·k people could tell
    least = max(-math.log1p(-p) * (1.0 - 4e-16), amplify(crowd_epsilon, 0, rate)[0])
    if float(wanted) < least:
        raise InvalidParameter(
            f"the closed form holds from epsilon {least:.6g} on; {float(wanted):.6g} was asked. "
            "Use the exact delta, which holds everywhere."
        )
    lifted = (p + math.expm1(min(float(wanted), 300.0))) * math.exp(-crowd)
    g = lifted / (lifted + 1.0 - p)
    return _power(k * divergence(g, p) / g)


def theorem1_delta(k: int, rate: Number) -> float:
    """Return e^(−k·KL(g‖p)/g), g = p(2−p): a bound on δ at ε = `zero_knowledge_epsilon`, for every crowd ε.

    Source: Gehrke, Hay, Lui & Pass 2012, Theorem 1, whose constant is left open there; `chernoff_delta` at its ε.

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


def lemma1_delta(others: int, rate: Number) -> float:
    """Return e^(−(n+1)·KL(p(2−p)‖p)): δ at the published ε if n others blend with t, whatever the mechanism.

    Source: Gehrke, Hay, Lui & Pass 2012, Lemma 1. Proof: m sampled others show t only if m+1 > p(2−p)(n+1), and
    p·P[Bin(n, p) = m] ≤ P[Bin(n+1, p) = m+1]; Chernoff.

    >>> round(lemma1_delta(50, "0.1"), 4)
    0.1546
    """
    p = _rate(rate)
    return _power((others + 1) * divergence(p * (2.0 - p), p))


def lemma1_simple_delta(others: int, rate: Number) -> float:
    """Return e^(−C·(n+1)·p(1−p)²), a simpler and larger bound than `lemma1_delta`.

    >>> round(lemma1_simple_delta(50, "0.1"), 4)
    0.2027
    """
    p = _rate(rate)
    return _power(_CHERNOFF * (others + 1) * p * (1.0 - p) ** 2)


def lemma2_delta(k: int, rate: Number) -> float:
    """Return p·e^(−(k−1)·KL(g‖p)/g), g = p(2−p): δ at ε = ln(1 + p(e^crowd − 1)) if at most (k−1)/g others blend.

    Source: Gehrke, Hay, Lui & Pass 2012, Lemma 2. Proof: while fewer than k−1 of them are sampled t is ignored, and
    what remains has probability p·P[Bin(n, p) ≥ k−1].

    >>> round(lemma2_delta(10, "0.1"), 4)
    0.0177
    """
    p = _rate(rate)
    return not_below(p * _power((k - 1) * _exponent(p)), _RELATIVE)


def lemma2_simple_delta(k: int, rate: Number) -> float:
    """Return p·e^(−C·(k−1)(1−p)²/(2−p)), a simpler and larger bound than `lemma2_delta`.

    >>> round(lemma2_simple_delta(10, "0.1"), 4)
    0.0227
    """
    return not_below(_rate(rate) * theorem1_simple_delta(k - 1, rate), _RELATIVE)


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
