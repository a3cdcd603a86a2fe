"""Crowd-blending after a secret sample, read as differential and zero-knowledge privacy: exactly, and backwards.

The published closed forms are 10² to 10⁴ times larger than the exact δ; they show how δ falls with k and the rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from incrowd.accounting.amplification import amplify
from incrowd.accounting.blending.worst_crowd import WorstCrowd
from incrowd.accounting.bound import least_epsilon
from incrowd.accounting.suppression.inverses import least_k
from incrowd.core.rounding import Number, exact, not_below, probability_up
from incrowd.errors import Infeasible, InvalidParameter

_RATE_DIGITS = Context(prec=6, rounding=ROUND_FLOOR)
_RELATIVE = 1e-12  # e^ε up to e^300 is off by 3·10⁻¹⁴ of itself, and log1p only shrinks that
_ULPS = 2.0**-50  # eight roundings of terms that cancel
_CHERNOFF = 2.0 * math.log(2.0) - 1.0  # (1+d)ln(1+d) − d ≥ this·d² for 0 ≤ d ≤ 1


def delta(k: int, crowd_epsilon: Number, rate: Number, epsilon: Number) -> float:
    """Return the least δ that holds for every (k, crowd ε)-crowd-blending mechanism on a Poisson sample; rounded up.

    The pair (ε, δ) bounds differential privacy for people added or removed, and zero-knowledge privacy with respect to
    one such sample: a simulator that runs the mechanism on a sample of everyone else is as good as the release.

    Source: Gehrke, Hay, Lui & Pass 2012, Theorem 1, at every ε and without slack (proof: `WorstCrowd`).
    Requires k ≥ 1, crowd ε ≥ 0, 0 < rate < 1, ε ≥ 0, one record per person and secret independent coins.

    >>> f"{delta(50, 0.1, 0.1, 0.605):.3g}"
    '1.48e-25'
    """
    return probability_up(log_delta(k, crowd_epsilon, rate, epsilon))


def log_delta(k: int, crowd_epsilon: Number, rate: Number, epsilon: Number) -> float:
    """Return the natural logarithm of `delta`, rounded up; it reaches far below the smallest float.

    >>> round(log_delta(1000, "0.1", "0.01", 2))
    -4131
    """
    return _worst(k, crowd_epsilon, rate).log_delta(_epsilon(epsilon))


def histogram_delta(k: int, rate: Number, epsilon: Number, noise_epsilon: Number) -> float:
    """Return δ of a histogram whose counts below k are noisy, on a Poisson sample; rounded up.

    From ε = ln(1 + rate·(e^noise − 1)) on, the noise costs nothing: the δ of removing a person is that of plain
    suppression. Proof: given m sampled others, t meets the noisy branch with and without t if m ≤ k−2, and such pairs
    vanish at the ratio α = 1 + (e^ε − 1)/rate ≥ e^noise; if m ≥ k−1 the exact count m+1 comes with t at probability
    P[B = m] and without t at P[B = m+1], the terms of the suppressed count. Adding a person costs nothing from
    ε = −ln(1−rate) on. Below either limit the bound for all crowd-blending mechanisms stands in for that direction.

    Source: Gehrke, Hay, Lui & Pass 2012, Example 2. Requires that neighboring counts j−1, j < k get noise of laws
    within e^noise of each other, empty bins included, and bins fixed without looking at the data.

    >>> histogram_delta(20, 0.1, 0.5, 1) == delta(20, 0, 0.1, 0.5) < delta(20, 1, 0.1, 0.5)
    True
    """
    worst, target_epsilon = _worst(k, noise_epsilon, rate), _epsilon(epsilon)
    if target_epsilon < Fraction(amplify(noise_epsilon, 0, rate)[0]):
        return probability_up(worst.log_delta(target_epsilon))
    return probability_up(max(_worst(k, 0, rate).log_removed(target_epsilon), worst.log_added(target_epsilon)))


def smallest_epsilon(delta: Number, k: int, crowd_epsilon: Number, rate: Number) -> float:
    """Return the least ε, rounded up, at which every (k, crowd ε)-crowd-blending mechanism has at most this δ.

    δ does not rise with ε. No ε brings it below rate ** k: all k of a crowd of k may be drawn.

    >>> epsilon = smallest_epsilon("1e-6", 20, "0.1", "0.1")
    >>> delta(20, "0.1", "0.1", epsilon) <= 1e-6 < delta(20, "0.1", "0.1", epsilon * 0.999)
    True
    """
    worst, target = _worst(k, crowd_epsilon, rate), log_target(delta)
    least = least_epsilon(lambda epsilon: worst.log_delta(exact(epsilon)), target)
    if math.isinf(least):
        raise Infeasible(
            f"no epsilon gives a crowd of k = {k} at rate {float(worst.rate):g} a delta of {float(exact(delta)):g}: "
            "it stays at or above rate ** k. Raise k or lower the rate."
        )
    return least


def smallest_k(epsilon: Number, delta: Number, crowd_epsilon: Number, rate: Number) -> int:
    """Return the least k for which every (k, crowd ε)-crowd-blending mechanism on such a sample is (ε, δ)-private.

    δ does not rise with k: who blends with k+1 people blends with k, so there are fewer mechanisms to fear.

    >>> smallest_k(1, "1e-9", "0.1", "0.1")
    12
    """
    worst, target_epsilon, target = _worst(1, crowd_epsilon, rate), _epsilon(epsilon), log_target(delta)
    if _log_delta_of_infinite_crowd(worst, target_epsilon) > target:
        least = amplify(crowd_epsilon, 0, rate)[0]
        raise Infeasible(
            f"no k gives delta {float(exact(delta)):g} at epsilon {float(target_epsilon):g}: the crowd's own epsilon "
            f"remains for every k. Use epsilon {least:.6g} or more, or lower the crowd's epsilon or the rate."
        )
    return least_k(lambda k: replace(worst, k=k).log_delta(target_epsilon) <= target, 1)


def largest_rate(epsilon: Number, delta: Number, k: int, crowd_epsilon: Number) -> Fraction:
    """Return the largest rate, cut to six digits, at which (k, crowd ε)-crowd-blending keeps (ε, δ).

    δ does not fall when the rate rises: a sample at rate r is a sample at the higher rate s of a random subset of the
    people, in which t is with probability r/s; guarantees survive such mixing. A rate of δ is always low enough.

    >>> largest_rate(1, "1e-9", 20, "0.1")
    Fraction(106569, 500000)
    """
    target_epsilon, target = _epsilon(epsilon), log_target(delta)

    def meets(rate: Fraction) -> bool:
        return _worst(k, crowd_epsilon, rate).log_delta(target_epsilon) <= target

    return _largest_short(meets, exact(delta))


def log_target(delta: Number) -> float:
    """Return ln δ of a wanted δ, rounded down.

    >>> log_target(0.5) < math.log(0.5)
    True
    """
    target_delta = exact(delta, "delta")
    if not 0 < target_delta < 1:
        raise InvalidParameter("delta lies strictly between 0 and 1, such as 1e-6.")
    above, below = math.log(target_delta.numerator), math.log(target_delta.denominator)
    return above - below - 1e-15 * (above + below)


def _log_delta_of_infinite_crowd(worst: WorstCrowd, epsilon: Fraction) -> float:
    # One randomized response on a sample, s·(E − α)/(1 + E): below every k's δ, since no count is needed for it.
    rate, tilt = float(worst.rate), math.exp(min(float(worst.crowd_epsilon), 300.0))
    left = rate * (tilt - 1.0) - math.expm1(min(float(epsilon), 300.0))
    return math.log(left / (1.0 + tilt)) - 1e-9 if left > 0.0 else -math.inf


def _largest_short(meets: Callable[[Fraction], bool], sure: Fraction) -> Fraction:
    low, high = _cut(sure * Fraction(999_999, 10**6)), Fraction(1)
    while (middle := _cut((low + high) / 2)) not in {low, high}:
        low, high = (middle, high) if meets(middle) else (low, middle)
    return low


def _cut(rate: Fraction) -> Fraction:
    return Fraction(_RATE_DIGITS.divide(Decimal(rate.numerator), Decimal(rate.denominator)))


def _worst(k: int, crowd_epsilon: Number, rate: Number) -> WorstCrowd:
    if type(k) is not int or k < 1:
        raise InvalidParameter("k must be a whole number, 1 or more: the size of the crowd to blend with.")
    crowd, share = exact(crowd_epsilon, "the crowd's epsilon"), exact(rate, "the sampling rate")
    if crowd < 0:
        raise InvalidParameter("the crowd's epsilon cannot be negative.")
    if not 0 < share < 1:
        raise InvalidParameter(
            "the sampling rate must lie strictly between 0 and 1: without a secret sample, crowd-blending gives no "
            "finite epsilon. Choose a rate below 1."
        )
    return WorstCrowd(k, crowd, share, share)


def _epsilon(epsilon: Number) -> Fraction:
    target_epsilon = exact(epsilon, "epsilon")
    if target_epsilon < 0:
        raise InvalidParameter("epsilon cannot be negative.")
    return target_epsilon


def zero_knowledge_epsilon(crowd_epsilon: Number, rate: Number) -> float:
    """Return the ε of the published theorem: ln(p(2−p)/(1−p)·e^ε + 1 − p), rounded up.

    It is at least −ln(1−p), with equality at crowd ε = 0, so adding a person costs no δ there.

    Source: Gehrke, Hay, Lui & Pass 2012, Theorem 1.

    >>> round(zero_knowledge_epsilon("0.1", "0.1"), 6)
    0.125146
    """
    (p, q), crowd = _rate(rate), _crowd(crowd_epsilon)
    # one is subtracted before it is added back: no digits are lost for small rates
    return not_below(math.log1p(p * ((1.0 + q) * math.expm1(crowd) + 1.0) / q), _RELATIVE)


def theorem1_delta(k: int, rate: Number) -> float:
    """Return e^(−k·KL(g‖p)/g), g = p(2−p): a bound on δ at ε = `zero_knowledge_epsilon`, for every crowd ε.

    Source: Gehrke, Hay, Lui & Pass 2012, Theorem 1, whose constant is left open there. Proof: at this ε only
    removing t counts, and with N−1 others only sampled crowds of m+1 ≥ k people, t included, with m+1 > gN show more
    than e^ε allows. So δ is at most P[Bin(N, p) ≥ max(k, gN)] ≤ e^(−N·KL(s/N‖p)) with s ≥ k, s/N ≥ g. For fixed s the
    exponent falls in N, so the worst N is s/g.

    >>> round(theorem1_delta(20, "0.1"), 4)
    0.0212
    """
    p, q = _rate(rate)
    # KL(g‖p)/g at g = p(2−p), written out
    terms = math.log1p(q), q**2 / (p * (1.0 + q)) * (math.log1p(-p) if p < 0.5 else math.log(q))
    return _power(k * (sum(terms) - _ULPS * (terms[0] - terms[1])))


def theorem1_simple_delta(k: int, rate: Number) -> float:
    """Return e^(−C·k(1−p)²/(2−p)), C = 2·ln 2 − 1: a simpler and larger bound than `theorem1_delta`.

    >>> round(theorem1_simple_delta(20, "0.1"), 4)
    0.0371
    """
    _, q = _rate(rate)
    return _power(_CHERNOFF * k * q**2 / (1.0 + q))


def divergence(a: float, b: float) -> float:
    """Return KL(a‖b) of two coins, rounded down.

    >>> round(divergence(0.5, 0.25), 6)
    0.143841
    """
    terms = a * math.log(a / b), (1.0 - a) * math.log((1.0 - a) / (1.0 - b)) if a < 1.0 else 0.0
    # each term is rounded five times; a, b, 1 − a and 1 − b were rounded themselves, by up to 2⁻⁵³
    return max(0.0, sum(terms) - 2.0 * _ULPS * (1.0 + abs(terms[0]) + abs(terms[1])))


def _power(exponent: float) -> float:
    return min(1.0, max(not_below(math.exp(-exponent), _RELATIVE + 4e-15 * abs(exponent)), math.ulp(0.0)))


def _crowd(crowd_epsilon: Number) -> float:
    crowd = exact(crowd_epsilon, "the crowd's epsilon")
    if not 0 <= crowd <= 300:
        raise InvalidParameter("the closed forms need a crowd's epsilon between 0 and 300.")
    return float(crowd)


def _rate(rate: Number) -> tuple[float, float]:
    # the rate, and one minus it, which a float of the rate would not have the digits for
    share = exact(rate, "the sampling rate")
    if not 0 < share < 1:
        raise InvalidParameter("the sampling rate must lie strictly between 0 and 1, such as 0.1.")
    return float(share), float(1 - share)
