"""Theorems: the closed forms of both papers, computed from their formulas."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from incrowd.core.loss import RobustlySampled
from incrowd.verify.slow_accountant.laws import LARGEST, binomials


def theorem1_delta(k: int, rate: Fraction, epsilon: float) -> float | None:
    """Return Theorem 1's δ of Li, Qardaji & Su 2010 by trying crowd sizes until no larger one can be worse.

    The nearer ε is to 0, the more sizes that takes; None if there are too many to try.

    >>> f"{theorem1_delta(20, Fraction(1, 20), 0.25):.3e}"
    '6.829e-10'
    """
    gamma, beta, worst = 1.0 - float(1 - rate) * math.exp(-epsilon), float(rate), 0.0
    exponent = _divergence(gamma, beta)
    for n, law in enumerate(binomials(rate)):
        if n >= k / gamma + 2 and math.exp(-(n - 1) * exponent) <= worst:
            return worst
        if n > LARGEST:
            return None
        outcomes = np.arange(n + 1)
        bad = (outcomes >= k) & (outcomes > gamma * n * (1 - 1e-12))
        worst = max(worst, float(np.sum(law[bad])))
    raise AssertionError("crowd sizes do not end")


def smooth_delta(k: int, rate: Fraction, epsilon: float) -> float:
    """Return the δ₀ of f-smooth privacy (Li, Qardaji & Su 2010, Theorem 6), from its formula.

    >>> f"{smooth_delta(20, Fraction(1, 5), 0.25):.4f}"
    '0.0373'
    """
    beta = float(rate)
    gamma = 1.0 - (1.0 - beta) * math.exp(-epsilon)
    return math.exp(-k * (math.log(gamma / beta) - (gamma - beta) / gamma))


def theorem2(loss: RobustlySampled) -> tuple[float, float]:
    """Return ε and δ of Gehrke, Hay, Lui & Pass 2012, Theorem 2, for a crowd without noise, from the formulas.

    >>> from incrowd.core.loss import Crowd
    >>> loss = RobustlySampled(Fraction(1, 10), Fraction(3, 25), 5, Fraction(1), Crowd(50))
    >>> [f"{number:.6f}" for number in theorem2(loss)]
    ['0.974482', '0.001170']
    """
    low, high, largest = float(loss.low), float(loss.high), float(loss.max_rate)
    x = high / low * (1 - low) * (2 - low) / (1 - high) ** 2
    g, h = low * x / (low * x + 1 - low), high / (high + x * (1 - high))
    left = loss.inner.k - loss.irregular
    removed = largest / high * math.exp(-left * _divergence(g, high) / g)
    added = largest / (1 - low) * math.exp(-(left - 1) * _divergence(h, low) / h)
    return math.log(largest * x + 1 - largest), min(1.0, max(removed, added))


def _divergence(x: float, y: float) -> float:
    return x * math.log(x / y) + (1 - x) * math.log((1 - x) / (1 - y))
