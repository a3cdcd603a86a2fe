"""One crowd's count, shown from k on: how far it betrays a member, for a crowd of given size."""

from __future__ import annotations

import math
from dataclasses import dataclass

from incrowd.accounting.suppression.binomial import log_lower_tail, log_mass, tail_sums

_ULPS = 16.0 * 2.0**-53


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
        weight = negative + positive + _ULPS * abs(negative)
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
        value = last - below + _ULPS * (last + below)
        return math.log(value) if value > 0.0 else -math.inf
