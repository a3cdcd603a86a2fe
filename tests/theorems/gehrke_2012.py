"""Closed forms of Gehrke, Hay, Lui and Pass 2012 that show how δ falls with k and the rate; for comparison."""

from __future__ import annotations

import math

from incrowd.accounting.amplification import amplify
from incrowd.accounting.blending.sampled_crowd import divergence, theorem1_delta, theorem1_simple_delta
from incrowd.core.rounding import Number, exact, not_below
from incrowd.errors import InvalidParameter

_RELATIVE = 1e-12
_CHERNOFF = 2.0 * math.log(2.0) - 1.0  # (1+d)ln(1+d) − d ≥ this·d² for 0 ≤ d ≤ 1


def chernoff_delta(k: int, crowd_epsilon: Number, rate: Number, epsilon: Number) -> float:
    """Return e^(−k·KL(g‖p)/g), a bound on δ at any ε that is at least −ln(1−p) and ln(1 + p(e^crowd − 1)).

    g = pα/(pα + (1−p)e^crowd), α = 1 + (e^ε − 1)/p. Proof: at such an ε only removing t counts, and with N−1 others
    only sampled crowds of m+1 ≥ k people, t included, with m+1 > gN show more than e^ε allows. So δ is at most
    P[Bin(N, p) ≥ max(k, gN)] ≤ e^(−N·KL(s/N‖p)) with s ≥ k, s/N ≥ g. For fixed s the exponent falls in N, so the
    worst N is s/g.

    >>> f"{chernoff_delta(50, '0.1', '0.1', '0.605'):.3g}"
    '4.57e-22'
    """
    p, crowd, wanted = float(exact(rate)), float(exact(crowd_epsilon)), exact(epsilon)
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


def lemma1_delta(others: int, rate: Number) -> float:
    """Return e^(−(n+1)·KL(p(2−p)‖p)): δ at the published ε if n others blend with t, whatever the mechanism.

    Source: Gehrke, Hay, Lui & Pass 2012, Lemma 1. Proof: m sampled others show t only if m+1 > p(2−p)(n+1), and
    p·P[Bin(n, p) = m] ≤ P[Bin(n+1, p) = m+1]; Chernoff.

    >>> round(lemma1_delta(50, "0.1"), 4)
    0.1546
    """
    p = float(exact(rate))
    return _power((others + 1) * divergence(p * (2.0 - p), p))


def lemma1_simple_delta(others: int, rate: Number) -> float:
    """Return e^(−C·(n+1)·p(1−p)²), a simpler and larger bound than `lemma1_delta`.

    >>> round(lemma1_simple_delta(50, "0.1"), 4)
    0.2027
    """
    p = float(exact(rate))
    return _power(_CHERNOFF * (others + 1) * p * (1.0 - p) ** 2)


def lemma2_delta(k: int, rate: Number) -> float:
    """Return p·e^(−(k−1)·KL(g‖p)/g), g = p(2−p): δ at ε = ln(1 + p(e^crowd − 1)) if at most (k−1)/g others blend.

    Source: Gehrke, Hay, Lui & Pass 2012, Lemma 2. Proof: while fewer than k−1 of them are sampled t is ignored, and
    what remains has probability p·P[Bin(n, p) ≥ k−1].

    >>> round(lemma2_delta(10, "0.1"), 4)
    0.0177
    """
    return not_below(float(exact(rate)) * theorem1_delta(k - 1, rate), _RELATIVE)


def lemma2_simple_delta(k: int, rate: Number) -> float:
    """Return p·e^(−C·(k−1)(1−p)²/(2−p)), a simpler and larger bound than `lemma2_delta`.

    >>> round(lemma2_simple_delta(10, "0.1"), 4)
    0.0227
    """
    return not_below(float(exact(rate)) * theorem1_simple_delta(k - 1, rate), _RELATIVE)


def _power(exponent: float) -> float:
    return min(1.0, not_below(math.exp(-exponent), _RELATIVE + 4e-15 * exponent))
