"""The worst crowd-blending mechanism on a secret sample: its exact δ, whatever the size of the crowd."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from incrowd.accounting.blending.suppressed_count import SuppressedCount

_RELATIVE = 1e-11
_TOLERANCE = 1e-12
_LARGE = 300.0  # e^ε beyond this changes no digit that a float can hold
_ULPS = 8.0 * 2.0**-53

Curve = Callable[[int], float]


@dataclass(frozen=True)
class WorstCrowd:
    """The worst (k, ε)-crowd-blending mechanism, as seen by member t of a crowd.

    The others are sampled at `rate`, t at `member_rate`. Let B be the number of sampled others, R and Q the output's
    laws with t in the sample and without, φ(c) = c from k on and 0 below, and RR one bit of randomized response at the
    crowd's ε. Then for every a

        H_a(R ‖ Q) ≤ H_a(φ(1+B)×RR(1) ‖ φ(B)×RR(0)),  and the same with both sides swapped,

    with equality for the mechanism (φ(size of the sample), RR(is t in it)), which is (k, ε)-crowd-blending.

    Proof. Let R_m, Q_m be the laws given m sampled others. (1) R_m and Q_(m+1) are ε-indistinguishable: exchange t
    for the last one drawn, who blends with t. (2) R_m and Q_m are, if m ≤ k−2: t's crowd is then too small, so t is
    ignored. So Q_0–R_0–Q_1–…–R_(k−2)–Q_(k−1) is a path, and every later R_m–Q_(m+1) an edge, of ε-indistinguishable
    pairs. An ε-indistinguishable pair has H_a ≤ H_a(RR(1) ‖ RR(0)). Split the masses over the edges: on the path so
    that every edge has the same ratio P[B ≤ k−1]/P[B ≤ k−2] (possible because P[B ≤ i−1]/P[B = i] rises in i,
    binomial sums being log-concave); joint convexity of H_a then gives the right-hand side.

    Source: Gehrke, Hay, Lui & Pass 2012, Theorem 1, sharpened to the exact value as above.

    >>> worst = WorstCrowd(20, Fraction(1, 10), Fraction(1, 10), Fraction(1, 10))
    >>> round(math.exp(worst.log_delta(Fraction(1, 2))), 15)
    4.4481e-11
    """

    k: int
    crowd_epsilon: Fraction
    rate: Fraction
    member_rate: Fraction

    def log_delta(self, epsilon: Fraction) -> float:
        """Return ln δ at ε, never below the truth: the larger of `log_removed` and `log_added`."""
        return max(self.log_removed(epsilon), self.log_added(epsilon))

    def log_removed(self, epsilon: Fraction) -> float:
        """Return ln δ of taking t away.

        With E = e^(crowd ε), s the rate of t and α = 1 + (e^ε − 1)/s it is s·[E·K(α/E) + K(αE)]/(1+E), K the excess of
        the suppressed count, at the worst number of others. (The law with t is sR + (1−s)Q.)
        """
        crowd, member, growth = self._floats(epsilon)
        if crowd > _LARGE:
            return math.log(member) + _RELATIVE
        alpha, tilt, count = 1.0 + growth / member, math.exp(crowd), self._count()
        found = highest(
            lambda others: crowd + count.log_excess(others, alpha / tilt),
            lambda others: count.log_excess(others, alpha * tilt),
            count.peak(alpha * tilt),
            count.peak(alpha / tilt),
        )
        return self._rounded(math.log(member) + found - math.log1p(tilt))

    def log_added(self, epsilon: Fraction) -> float:
        """Return ln δ of adding t, −∞ for an ε well above −ln(1 − rate of t).

        With c = 1 − e^ε·(1−s) and ρ = e^ε·s/c it is c·[E·K′(ρ/E) + K′(ρE)]/(1+E), K′ the shortfall of the count, and
        nothing if c ≤ 0.
        """
        crowd, member, growth = self._floats(epsilon)
        chance = member - growth * float(1 - self.member_rate) + _ULPS * member  # c, and no less
        if chance <= 0.0:
            return -math.inf
        if crowd > _LARGE:
            return math.log(member) + _RELATIVE
        rho, tilt, count = (1.0 + growth) * member / chance, math.exp(crowd), self._count()
        found = highest(
            lambda others: count.log_shortfall(others, rho * tilt),
            lambda others: crowd + count.log_shortfall(others, rho / tilt),
            count.peak(tilt / rho),
            count.peak(1.0 / (rho * tilt)),
        )
        return self._rounded(math.log(chance) + found - math.log1p(tilt))

    def _count(self) -> SuppressedCount:
        return SuppressedCount(self.k, float(self.rate), float(1 - self.rate))

    def _floats(self, epsilon: Fraction) -> tuple[float, float, float]:
        return float(self.crowd_epsilon), float(self.member_rate), math.expm1(min(float(epsilon), _LARGE))

    def _rounded(self, logarithm: float) -> float:
        # t shows only if t is drawn: δ never exceeds the rate of t
        raised = logarithm + _RELATIVE + _ULPS * (abs(logarithm) + self.k)
        return min(raised, math.log(self.member_rate) + _RELATIVE)


def highest(rising: Curve, falling: Curve, first: int, last: int) -> float:
    """Return the largest ln(e^rising(n) + e^falling(n)) over first ≤ n ≤ last, at most a relative 10⁻¹² too large.

    An interval's sum is at most its rising part at the right end plus its falling part at the left end. Halve the
    interval of the largest such bound until no bound exceeds the best value seen.

    >>> round(math.exp(highest(lambda n: math.log(n), lambda n: math.log(100 - n * n), 1, 9)), 6)
    100.0
    """
    left, right = (rising(first), falling(first)), (rising(last), falling(last))
    best = max(_log_sum(*left), _log_sum(*right))
    intervals = [(-_log_sum(right[0], left[1]), first, last, left, right)]
    while intervals:
        bound, low, high, left, right = heapq.heappop(intervals)
        if -bound <= best + _TOLERANCE:
            return max(best, -bound)
        if high - low < 2:
            continue
        middle = (low + high) // 2
        center = (rising(middle), falling(middle))
        best = max(best, _log_sum(*center))
        heapq.heappush(intervals, (-_log_sum(center[0], left[1]), low, middle, left, center))
        heapq.heappush(intervals, (-_log_sum(right[0], center[1]), middle, high, center, right))
    return best


def _log_sum(one: float, other: float) -> float:
    high, low = max(one, other), min(one, other)
    return high + math.log1p(math.exp(low - high)) if low > -math.inf else high
