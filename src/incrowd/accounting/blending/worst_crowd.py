"""The worst crowd-blending mechanism on a secret sample: its exact δ, whatever the size of the crowd."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from incrowd.accounting.suppression.binomial import log_lower_tail, log_mass, tail_sums

# sixteen roundings of each of two terms that cancel; covers the products and quotients of a weight
_COUNT_ULPS = 16.0 * 2.0**-53
_RELATIVE = 1e-11  # more than the rounding of a sum of positive terms, up to a million of them, on the logarithm
_TOLERANCE = 1e-12  # `highest` stops here and returns the bound, not the value: it is never too small
_LARGE = 300.0  # e^ε beyond this changes no digit that a float can hold
# eight roundings, per unit of k and of the logarithm: the error of Loader's mass in `log_mass` grows with both
_ULPS = 8.0 * 2.0**-53
Curve = Callable[[int], float]


@dataclass(frozen=True)
class SuppressedCount:
    """The count of sampled members of a crowd, 0 if below k; `p` of the others are sampled and q = 1 − p are not.

    With B ~ Bin(others, p) the count is φ(1+B) if member t is in the sample and φ(B) if not, where φ(c) = c from k on
    and 0 below. Both hockey sticks below are computed, in logarithms, from sums of positive terms.

    >>> count = SuppressedCount(2, 0.5, 0.5)
    >>> round(math.exp(count.log_excess(1, 1.0)), 9)
    0.5
    """

    k: int
    p: float
    q: float

    def log_excess(self, others: int, ratio: float) -> float:
        """Return ln H_ratio(φ(1+B) ‖ φ(B)): how much more often the count speaks for t than `ratio` allows.

        With N = others + 1, f the masses of Bin(N, p), w = p/q, the outcome j ≥ k has P[1+B = j] = f(j)·j/(Np) and
        P[B = j] = f(j)·(N−j)/(Nq), so it contributes f(j)/(Np)·(j − ratio·w·(N−j)), which is positive from some j on;
        for ratio ≥ 1 the outcome 0 contributes nothing. Below 1: H_a(P‖Q) = 1 − a + a·H_(1/a)(Q‖P).

        >>> SuppressedCount(3, 0.5, 0.5).log_excess(1, 1.0)
        -inf
        """
        if ratio < 1.0:
            return math.log1p(-ratio * -math.expm1(self.log_shortfall(others, 1.0 / ratio)))
        size = others + 1
        slope = ratio * self.p / self.q
        first = max(self.k, size + 1 - math.ceil(size / (1.0 + slope)))
        if first > size:
            return -math.inf
        total, beyond = tail_sums(first, size, self.p / self.q)
        weight = (first - slope * (size - first)) * total + (1.0 + slope) * beyond
        return log_mass(first, size, self.p, self.q) + math.log(weight / (size * self.p))

    def log_shortfall(self, others: int, ratio: float) -> float:
        """Return ln H_ratio(φ(B) ‖ φ(1+B)): how much more often the count speaks against t than `ratio` allows.

        The outcome j contributes f(j)/(Nq)·((N−j) − ratio·j/w), which is positive up to some j. If that j lies at or
        beyond k − 1, nothing positive is merged with anything negative; otherwise all outcomes below k are merged into
        one, of weight P[B ≤ k−1] − ratio·P[B ≤ k−2], and no other is positive.

        >>> round(math.exp(SuppressedCount(1, 0.5, 0.5).log_shortfall(3, 1.0)), 9)
        0.375
        """
        if ratio < 1.0:
            return math.log1p(-ratio * -math.expm1(self.log_excess(others, 1.0 / ratio)))
        size = others + 1
        slope = ratio * self.q / self.p
        last = max(self.k - 1, math.ceil(size / (1.0 + slope)) - 1)
        missing = size - last
        if missing <= 0:  # at most k − 1 people: always suppressed, with t or without
            return -math.inf
        if last > size * self.p:
            return self._log_likely_shortfall(others, ratio)
        total, beyond = tail_sums(missing, size, self.q / self.p)
        negative, positive = (missing - slope * last) * total, (1.0 + slope) * beyond
        weight = negative + positive + _COUNT_ULPS * abs(negative)
        if weight <= 0.0:
            return -math.inf
        return log_mass(last, size, self.p, self.q) + math.log(weight / (size * self.q))

    def peak(self, ratio: float) -> int:
        """Return the number of others at which the excess at `ratio`, and the shortfall at 1/`ratio`, is largest.

        Both rise up to there and never rise again, for every ratio > 0. Proof for the excess at a ≥ 1: while every
        j ≥ k is positive the value is T(k−1) − a·T(k), T(s) = P[B ≥ s]; one more person adds p·(P[B = k−2] −
        a·P[B = k−1]), which is positive exactly while N < (k−1)(1 + q/(pa)). From there on no positive j is suppressed,
        the value is that of the full count, and one more person is one more independent coin added to both sides:
        post-processing. The shortfall is alike, with the outcomes below k; a < 1 follows by duality.

        >>> SuppressedCount(5, 0.2, 0.8).peak(1.0)
        19
        """
        return max(0, self.k - 2 + math.ceil((self.k - 1) * self.q / (self.p * ratio)))

    def _log_likely_shortfall(self, others: int, ratio: float) -> float:
        # Suppression is likely here: P[B = k−1] − (ratio − 1)·P[B ≤ k−2], both of moderate size.
        last = math.exp(log_mass(self.k - 1, others, self.p, self.q))
        below = (ratio - 1.0) * math.exp(log_lower_tail(self.k - 2, others, self.p, self.q))
        value = last - below + _COUNT_ULPS * (last + below)
        return math.log(value) if value > 0.0 else -math.inf


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
        best = highest(
            lambda others: crowd + count.log_excess(others, alpha / tilt),
            lambda others: count.log_excess(others, alpha * tilt),
            count.peak(alpha * tilt),
            count.peak(alpha / tilt),
        )
        return self._rounded(math.log(member) + best - math.log1p(tilt))

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
        best = highest(
            lambda others: count.log_shortfall(others, rho * tilt),
            lambda others: crowd + count.log_shortfall(others, rho / tilt),
            count.peak(tilt / rho),
            count.peak(1.0 / (rho * tilt)),
        )
        return self._rounded(math.log(chance) + best - math.log1p(tilt))

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
