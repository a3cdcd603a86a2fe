"""Every number of a claim, derived a second time: slowly, obviously, and without the accountants.

This file imports nothing from `incrowd.accounting`.  Where the accountants use closed forms and proofs about where a
maximum lies, this file writes out the distributions and tries every crowd size, up to a size beyond which a maximum
cannot lie: adding one more independent record to both sides is post-processing, so the distance between "with you"
and "without you" falls from there on.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_LARGEST = 10_000
_PAIRED = 60
_PRECISE = 10**6  # beyond this k, rounding in floats could come near the tolerance of a check


@lru_cache(maxsize=8)
def suppression_delta(k: int, rate: Fraction, epsilon: float) -> float | None:
    """Return δ of sampled suppression at ε by trying every crowd size; None if there are too many to try.

    >>> f"{suppression_delta(20, Fraction(1, 10), 0.5):.3e}"
    '2.632e-11'
    """
    removing = float(rate) - float(1 - rate) * math.expm1(-epsilon)  # 1 − (1 − rate)·e^(−ε)
    adding = float(rate) - float(1 - rate) * math.expm1(epsilon)
    largest = math.ceil(k / removing) + 2
    with_add = math.ceil(k / adding) + 2 if adding > 0.0 else 0
    if max(largest, with_add) > _LARGEST:
        return None
    worst, without = 0.0, _published(k, 0, rate)
    for n in range(1, max(largest, with_add) + 1):
        with_you = _published(k, n, rate)
        if n <= largest:
            worst = max(worst, _distance(with_you, without, epsilon))
        if n <= with_add:
            worst = max(worst, _distance(without, with_you, epsilon))
        without = with_you
    return worst


def suppression_floor(k: int, rate: Fraction, epsilon: float) -> float:
    """Return a δ that sampled suppression has at least at ε, however large its crowds: that of the worst sizes alone.

    With you in a crowd of n, the outcome j ≥ k is more likely than e^ε allows exactly if j > γ·n, for
    γ = 1 − (1 − rate)·e^(−ε); there the excess is B(n, j)·(j − γ·n)/(n·(1 − γ)).  These terms are largest together
    near n = (k − 1)/γ.  None is negative, so leaving out sizes and outcomes can only make the result smaller.
    It also bounds persons with several rows (some have one) and replaced rows (a part of what they change).

    >>> suppression_floor(20, Fraction(1, 10), 0.5) == suppression_delta(20, Fraction(1, 10), 0.5)
    False
    >>> math.isclose(suppression_floor(20, Fraction(1, 10), 0.5), suppression_delta(20, Fraction(1, 10), 0.5))
    True
    """
    gamma = float(rate) - float(1 - rate) * math.expm1(-epsilon)
    if k > _PRECISE:
        return 0.0
    near = math.ceil((k - 1) / gamma)
    return max((_excess(k, n, rate, gamma) for n in range(max(k, near - 2), max(k, near + 2) + 1)), default=0.0)


def theorem1_delta(k: int, rate: Fraction, epsilon: float) -> float | None:
    """Return Theorem 1's δ of Li, Qardaji & Su 2010 by trying crowd sizes until no larger one can be worse.

    The nearer ε is to 0, the more sizes that takes; None if there are too many to try.

    >>> f"{theorem1_delta(20, Fraction(1, 20), 0.25):.3e}"
    '6.829e-10'
    """
    gamma = 1.0 - float(1 - rate) * math.exp(-epsilon)
    beta = float(rate)
    exponent = gamma * math.log(gamma / beta) + (1.0 - gamma) * math.log((1.0 - gamma) / (1.0 - beta))
    worst, n = 0.0, 1
    while n <= _LARGEST and (n < k / gamma + 2 or math.exp(-(n - 1) * exponent) > worst):
        outcomes = np.arange(n + 1)
        bad = (outcomes >= k) & (outcomes > gamma * n * (1 - 1e-12))
        worst = max(worst, float(np.sum(_binomial(n, rate)[bad])))
        n += 1
    return worst if n <= _LARGEST else None


def person_delta(k: int, rate: Fraction, epsilon: float, rows: int) -> float | None:
    """Return δ for a person with several rows, each with its own coin, from the δ of one row at ε/rows.

    Removing the rows one by one, the i-th step multiplies what came before by e^(ε/m): δ·(1 + e^(ε/m) + … ).

    >>> f"{person_delta(20, Fraction(1, 10), 1.0, 2):.4e}"
    '6.9709e-11'
    """
    single = suppression_delta(k, rate, epsilon / rows)
    return None if single is None else single * sum(math.exp(step * epsilon / rows) for step in range(rows))


def replaced_delta(k: int, rate: Fraction, epsilon: float, rows: int) -> float | None:
    """Return a δ for replaced units by trying every pair of crowds: the one left and the one joined.

    A replaced row leaves a crowd of n and joins one of m: the two counts are independent, so the laws multiply.
    Only for one row per unit, and for crowds few enough to try in pairs.

    >>> f"{replaced_delta(3, Fraction(1, 4), 0.4054651081081644, 1):.3e}"
    '3.019e-02'
    """
    left = math.ceil(k / (1.0 - float(1 - rate) * math.exp(-epsilon))) + 2
    if rows > 1 or left > _PAIRED or epsilon < -math.log(float(1 - rate)):
        return None
    laws = [_published(k, n, rate) for n in range(2 * left + 1)]
    worst = 0.0
    for n in range(1, 2 * left + 1):
        for m in range(1, 2 * left + 1):
            before = np.outer(laws[n], laws[m - 1])
            after = np.outer(laws[n - 1], laws[m])
            worst = max(worst, _pair_distance(before, after, epsilon))
    return worst


def smooth_delta(k: int, rate: Fraction, epsilon: float) -> float:
    """Return the δ₀ of f-smooth privacy (Li, Qardaji & Su 2010, Theorem 6), from its formula.

    >>> f"{smooth_delta(20, Fraction(1, 5), 0.25):.4f}"
    '0.0373'
    """
    beta = float(rate)
    gamma = 1.0 - (1.0 - beta) * math.exp(-epsilon)
    return math.exp(-k * (math.log(gamma / beta) - (gamma - beta) / gamma))


def _excess(k: int, n: int, rate: Fraction, gamma: float) -> float:
    """Return the sum of B(n, j)·(j − γ·n)/(n·(1 − γ)) over the first outcomes j ≥ k above γ·n."""
    first = max(k, math.floor(gamma * n) + 1)
    if first > n or gamma >= 1.0:
        return 0.0
    j = np.arange(first, min(n, first + _LARGEST) + 1, dtype=np.float64)
    steps = np.log((n - j[:-1]) / (j[1:])) + (math.log(float(rate)) - math.log1p(-float(rate)))
    masses = np.exp(_log_mass(n, first, rate) + np.concatenate([[0.0], np.cumsum(steps)]))
    return float(np.sum(masses * np.maximum(0.0, j - gamma * n)) / (n * (1.0 - gamma)))


def _log_mass(n: int, j: int, rate: Fraction) -> float:
    """Return the logarithm of one binomial probability, in decimals long enough for any n."""
    with localcontext(Context(prec=60)):
        chance = Decimal(rate.numerator) / Decimal(rate.denominator)
        choose = _log_factorial(n) - _log_factorial(j) - _log_factorial(n - j)
        return float(choose + j * chance.ln() + (n - j) * (1 - chance).ln())


def _log_factorial(n: int) -> Decimal:
    """Return log n!: exactly for small n, else by Stirling's series, whose next term is below 1e-17."""
    if n < 100:
        return Decimal(math.factorial(n)).ln()
    m = Decimal(n)
    half = (2 * Decimal("3.14159265358979323846264338327950288419716939937511") * m).ln() / 2
    return m * m.ln() - m + half + 1 / (12 * m) - 1 / (360 * m**3) + 1 / (1260 * m**5)


def _published(k: int, n: int, rate: Fraction) -> NDArray[np.float64]:
    """Return the law of what is published of n records: 0 if fewer than k were sampled, else how many."""
    masses = _binomial(n, rate)
    law = np.where(np.arange(n + 1) >= k, masses, 0.0)
    law[0] = float(np.sum(masses[:k]))
    return law


def _binomial(n: int, rate: Fraction) -> NDArray[np.float64]:
    j = np.arange(n + 1)
    factorial = _log_factorials(_LARGEST)
    choose = factorial[n] - factorial[j] - factorial[n - j]
    logs: NDArray[np.float64] = choose + j * math.log(float(rate)) + (n - j) * math.log(float(1 - rate))
    return np.exp(logs)


@lru_cache(maxsize=1)
def _log_factorials(largest: int) -> NDArray[np.float64]:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, largest + 1, dtype=np.float64)))])


def _distance(left: NDArray[np.float64], right: NDArray[np.float64], epsilon: float) -> float:
    """Return the sum of max(0, left − e^ε·right), where a law that ends earlier is 0 beyond its end."""
    size = max(len(left), len(right))
    padded = np.zeros((2, size))
    padded[0, : len(left)], padded[1, : len(right)] = left, right
    return float(np.sum(np.maximum(0.0, padded[0] - math.exp(epsilon) * padded[1])))


def _pair_distance(left: NDArray[np.float64], right: NDArray[np.float64], epsilon: float) -> float:
    padded = np.zeros((2, max(left.shape[0], right.shape[0]), max(left.shape[1], right.shape[1])))
    padded[0, : left.shape[0], : left.shape[1]] = left
    padded[1, : right.shape[0], : right.shape[1]] = right
    return float(np.sum(np.maximum(0.0, padded[0] - math.exp(epsilon) * padded[1])))
