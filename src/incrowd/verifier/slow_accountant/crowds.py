"""Crowds: the δ of sampled suppression, from the laws of what is published of a crowd, every size tried."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from incrowd.core.loss import RobustlySampled

TOLERANCE = 1 + 1e-6  # the second route computes with floats, and differences of small numbers cancel
LARGEST = 10_000
"""The largest crowd that is tried."""

Law = NDArray[np.float64]
Shown = Callable[[Law], Law]
"""What is published of a crowd, given the law of how many of it are sampled."""


def suppressed(k: int) -> Shown:
    """Return what suppression below k publishes of a crowd: 0 if fewer than k were sampled, else how many.

    >>> suppressed(2)(np.array([0.25, 0.5, 0.25])).tolist()
    [0.75, 0.0, 0.25]
    """

    def published(sampled: Law) -> Law:
        law = np.where(np.arange(len(sampled)) >= k, sampled, 0.0)
        law[0] = float(np.sum(sampled[:k]))
        return law

    return published


def noisy_below(k: int, noise: float) -> Shown:
    """Return what is published of a crowd whose counts below k have noise: first those, then the exact ones.

    A reader sees which counts are exact, and noisy ones clamped to 0 … k − 1.  Both lose nothing: without marks less is
    seen, and unclamped noise beyond either end has the same likelihood ratio as the end.
    """
    channel = clamped(k, noise)

    def published(sampled: Law) -> Law:
        small = np.zeros(k)
        small[: min(k, len(sampled))] = sampled[:k]
        return np.concatenate((small @ channel, sampled[k:]))

    return published


@lru_cache(maxsize=8)
def clamped(k: int, noise: float) -> Law:
    """Return for each count below k the law of count plus two-sided geometric noise, clamped to 0 … k − 1.

    >>> clamped(2, math.log(3)).round(3).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    fall, count, published = math.exp(-noise), np.arange(k)[:, None], np.arange(k)[None, :]
    law: Law = (1.0 - fall) / (1.0 + fall) * fall ** np.abs(published - count)
    if k == 1:
        return np.ones((1, 1))
    law[:, 0] = fall ** np.arange(k) / (1.0 + fall)
    law[:, -1] = fall ** np.arange(k)[::-1] / (1.0 + fall)
    return law


def binomials(rate: Fraction) -> Iterator[Law]:
    """Yield the law of how many of 0, 1, 2, … people are sampled.

    >>> laws = binomials(Fraction(1, 2))
    >>> [next(laws).tolist() for _ in range(3)]
    [[1.0], [0.5, 0.5], [0.25, 0.5, 0.25]]
    """
    yes, no, law = float(rate), float(1 - rate), np.ones(1)
    while True:
        yield law
        law = np.append(law * no, 0.0) + np.append(0.0, law * yes)


def distance(left: Law, right: Law, epsilon: float, canceled: float = 0.0) -> float:
    """Return the sum of max(0, left − e^ε·right), where a law that ends earlier is 0 beyond its end.

    A difference is rounding if it is `canceled` times its terms, or smaller.
    """
    padded = np.zeros((2, max(len(left), len(right))))
    padded[0, : len(left)], padded[1, : len(right)] = left, right
    over = padded[0] - math.exp(min(epsilon, 700.0)) * padded[1]
    return float(np.sum(np.where(over > canceled * padded[0], over, 0.0)))


_MOST_NOISY = 400  # the largest k for which the noise on all small counts is written out
_PAIRED = 60  # crowds tried in pairs: the time grows with its fourth power
_PRECISE = 10**6  # beyond this k, rounding in floats could come near the tolerance of a check
_CANCELED = 1e-12  # of a mass: differences below are rounding, as the laws are right to 10⁻¹³


@lru_cache(maxsize=32)
def suppression_delta(k: int, rate: Fraction, epsilon: float, own: Fraction | None = None) -> float | None:
    """Return δ of sampled suppression at ε by trying every crowd size; None if there are too many to try.

    Others are sampled at `rate`, and the person whose data it is at the rate `own`, which is the same by default.

    >>> f"{suppression_delta(20, Fraction(1, 10), 0.5):.3e}"
    '2.632e-11'
    """
    mine = float(rate if own is None else own)
    removing, adding = _last(k, rate, mine, epsilon)
    worst, published = 0.0, suppressed(k)
    for n, others in enumerate(binomials(rate)):
        if max(n, removing) > LARGEST:
            return None
        absent, present = published(np.append(others, 0.0)), published(np.append(0.0, others))
        mixed = mine * present + (1.0 - mine) * absent
        worst = max(worst, distance(mixed, absent, epsilon), distance(absent, mixed, epsilon))
        if n >= removing and (n >= adding or float(np.sum(others[:k])) <= worst):
            return worst
    raise AssertionError("crowd sizes do not end")


@lru_cache(maxsize=32)
def noisy_delta(k: int, rate: Fraction, epsilon: float, noise: float) -> float | None:
    """Return δ of exact large and noisy small counts of a sample at ε; None if there are too many crowds to try.

    Sizes are tried until the exact counts cannot be worse, as for suppression, and until fewer than k in the sample is
    so rare that their noise cannot be either; from ε = ln(1 + rate·(e^noise − 1)) on noise never shows anything.

    >>> f"{noisy_delta(20, Fraction(1, 10), 0.5, 1.0):.3e}"
    '2.632e-11'
    """
    removing, adding = _last(k, rate, float(rate), epsilon)
    if removing > LARGEST or k > _MOST_NOISY:
        return None
    silent = epsilon >= math.log1p(float(rate) * math.expm1(noise)) * (1.0 - _CANCELED)
    worst, published = 0.0, noisy_below(k, noise)
    laws = binomials(rate)
    others = next(laws)
    for n in range(1, LARGEST + 1):
        everyone = next(laws)
        without, with_you = published(others), published(everyone)
        worst = max(
            worst,
            distance(with_you, without, epsilon, _CANCELED),
            distance(without, with_you, epsilon, _CANCELED),
        )
        faint = 2.0 * float(np.sum(others[:k])) <= worst  # once for noise, once for exact counts of larger crowds
        if n >= removing and (faint or (silent and n >= adding)):
            return worst
        others = everyone
    return None


def biased_delta(loss: RobustlySampled, epsilon: float) -> float | None:
    """Return δ at ε on a biased sample, for a regular person and for an irregular one; None if too many to try.

    Others in a crowd are drawn at `high` at most, and at that or not at all in the worst case.  Irregular people can
    fill a crowd up, so it hides only k − l of the regular ones; for an irregular person there are l − 1 others.

    >>> from incrowd.core.loss import Crowd
    >>> loss = RobustlySampled(Fraction(1, 10), Fraction(3, 25), 5, Fraction(1), Crowd(50))
    >>> f"{biased_delta(loss, 1.0744816703):.3e}"
    '6.762e-10'
    """
    left = loss.inner.k - loss.irregular
    if loss.irregular and left < 2:
        return 1.0  # nobody of the crowd is left to hide among
    regular = suppression_delta(left, loss.high, epsilon)
    if not loss.irregular:
        return regular
    other = suppression_delta(left + 1, loss.high, epsilon, loss.max_rate)
    return None if regular is None or other is None else max(regular, other)


def replaced_delta(k: int, rate: Fraction, epsilon: float) -> float | None:
    """Return a δ that replaced rows have at least, by trying pairs of crowds: the one left and the one joined.

    A replaced row leaves a crowd of n and joins one of m: the two counts are independent, so the laws multiply.  Only
    for crowds few enough to try in pairs.

    >>> f"{replaced_delta(3, Fraction(1, 4), 0.4054651081081644):.3e}"
    '3.019e-02'
    """
    left = math.ceil(k / (1.0 - float(1 - rate) * math.exp(-epsilon))) + 2
    if left > _PAIRED or epsilon < -math.log(float(1 - rate)):
        return None
    published = suppressed(k)
    laws = [np.append(published(law), 0.0) for law, _ in zip(binomials(rate), range(2 * left + 1), strict=False)]
    worst = 0.0
    for n in range(1, 2 * left + 1):
        for m in range(1, 2 * left + 1):
            before = np.outer(laws[n][:-1], laws[m - 1])
            after = np.outer(laws[n - 1], laws[m][:-1])
            worst = max(worst, distance(before.ravel(), after.ravel(), epsilon))
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


def _last(k: int, rate: Fraction, own: float, epsilon: float) -> tuple[int, int]:
    """Return the numbers of others beyond which a removal, and an addition, shows less and less.

    Up to there an addition shows at most that fewer than k were sampled, which gets rarer with every person: where that
    shows less than the worst that was seen, no addition is worse.
    """
    p, moved = float(rate), math.expm1(min(epsilon, 700.0))
    apart = p * (1.0 + moved / own)
    removing = math.ceil(k * (apart + 1.0 - p) / apart) + 2
    left = own - (1.0 - own) * moved  # 1 − (1 − own)·e^ε
    if left <= 0.0:
        return removing, 0
    nearer = p * left / ((1.0 + moved) * own)
    return removing, math.ceil(k * (nearer + 1.0 - p) / nearer) + 2


def _excess(k: int, n: int, rate: Fraction, gamma: float) -> float:
    """Return the sum of B(n, j)·(j − γ·n)/(n·(1 − γ)) over the first outcomes j ≥ k above γ·n."""
    first = max(k, math.floor(gamma * n) + 1)
    if first > n or gamma >= 1.0:
        return 0.0
    j: Law = np.arange(first, min(n, first + LARGEST) + 1, dtype=np.float64)
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
