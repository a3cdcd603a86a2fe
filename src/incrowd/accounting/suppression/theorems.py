"""Theorems 1, 5 and 6 of Li, Qardaji and Su 2010: looser deltas of sampled suppression, kept for comparison.

An algorithm is f-smooth (epsilon, delta)-private if it is (z epsilon, f(z) delta)-private for every z >= 1. For sampled
suppression f falls but does not reach zero, and nothing can: delta is at least rate ** k at every epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

from incrowd.accounting.suppression.binomial import log_upper_tail
from incrowd.accounting.suppression.sampled_cell import LikelihoodRatio, SampledCell
from incrowd.core.rounding import Number, exact, probability_up
from incrowd.errors import InvalidParameter

_TIE = 1e-12  # a quotient this close to a whole number counts as above it, which makes n, and so δ, larger


def theorem1_delta(k: int, rate: Number, epsilon: Number) -> float:
    """Return Theorem 1's delta, rounded up: never below the tight one, up to a thousand times above.

    It bounds the probability of all outcomes whose likelihood ratio exceeds e^epsilon. It is not monotone in the rate:
    use the tight delta to choose one. Requires epsilon >= -ln(1 - rate).

    >>> f"{theorem1_delta(20, 0.1, 0.5):.3g}"
    '1.61e-09'
    """
    return probability_up(log_theorem1_delta(k, rate, epsilon))


def log_theorem1_delta(k: int, rate: Number, epsilon: Number) -> float:
    """Return the natural logarithm of Theorem 1's delta, rounded up.

    Source: Li, Qardaji and Su 2010, Theorem 1, with the k / gamma of its proof (its statement prints k / beta, which is
    far too small). A count j of n is bad if j >= k and j > gamma n, gamma = 1 - (1 - rate) e^-epsilon. While the first
    bad count m stays the same, its tail rises with n, so only the largest such n matters: ceil(m / gamma) - 1, for
    m = k, k + 1, ... By Chernoff's bound no later tail exceeds exp(-n KL(gamma || rate)): once that is below the
    best so far, the search is complete. A quotient within a relative 10⁻¹² of a whole number counts as just above it,
    and an epsilon that close below the limit as at the limit.

    >>> round(log_theorem1_delta(1000, "0.01", "0.5") / math.log(10), 6)
    -1277.181033
    """
    cell = SampledCell(k, exact(rate, "the rate"))
    return cell.rounded_up(_worst_tail(cell, exact(epsilon, "epsilon")).logarithm)


@dataclass(frozen=True)
class _Tail:
    logarithm: float
    m: int
    n: int


def _worst_tail(cell: SampledCell, epsilon: Fraction) -> _Tail:
    require_reach(cell, epsilon)
    above = LikelihoodRatio(epsilon).less_one
    gamma = cell.p + cell.q * (above / (1.0 + above) if above < math.inf else 1.0)
    unseen = cell.q / (1.0 + above)
    divergence = gamma * math.log(gamma / cell.p) - (unseen * float(epsilon) if unseen > 0.0 else 0.0)
    best = _Tail(-math.inf, cell.k, cell.k)
    for m in count(cell.k):
        n = math.ceil(m / gamma * (1.0 + _TIE)) - 1
        if -n * divergence * (1.0 - 1e-9) <= best.logarithm:
            break
        tail = _Tail(log_upper_tail(m, n, cell.p, cell.q), m, n)
        best = max(best, tail, key=lambda bound: bound.logarithm)
    return best


def require_reach(cell: SampledCell, epsilon: Fraction) -> None:
    """Refuse an epsilon below -ln(1 - rate), where Theorem 1 and all that rests on it say nothing.

    >>> require_reach(SampledCell(5, Fraction(1, 2)), Fraction(7, 10))
    """
    limit = _limit(cell)
    if epsilon < limit * (1.0 - _TIE):
        raise InvalidParameter(
            f"Theorem 1 says nothing below epsilon = -ln(1 - rate), here {limit:.6g}. "
            "Ask for a larger epsilon, or use the tight delta, which has no such limit."
        )


def _limit(cell: SampledCell) -> float:
    return -math.log1p(-cell.p) if cell.p < 0.5 else -math.log(cell.q)


def theorem6_delta(k: int, rate: Number, epsilon: Number) -> float:
    """Return Theorem 6's closed bound on delta, rounded up; requires epsilon >= -ln(1 - rate).

    Source: Li, Qardaji and Su 2010, Theorem 6. With gamma = 1 - (1 - rate) e^-epsilon it is
    exp(-k (ln(gamma / rate) - (gamma - rate) / gamma)). By Theorem 1 delta is a tail P[Bin(n, rate) >= s] with s >= k
    and n < s / gamma. Chernoff's exponent s ln(s / (rate n)) - s + rate n falls in n below s / rate, so the bound at n
    is at most that at the real number s / gamma; and s >= k.

    >>> round(theorem6_delta(20, "0.2", "0.25"), 4)
    0.0373
    """
    return probability_up(_log_theorem6(_reached(k, rate, epsilon), exact(epsilon)))


@dataclass(frozen=True)
class SmoothGuarantee:
    """Theorem 6's guarantee for releases (k, rate, epsilon) by sampled suppression, each with a fresh sample.

    Source: Li, Qardaji and Su 2010, Theorems 5 and 6. Each release is (z epsilon_i, f_i(z) delta_i)-private, so their
    epsilons add up, their deltas add up, and f is the largest f_i. This needs independent coins: from one shared sample
    nothing follows. It is weak; `envelope` is much sharper.

    >>> guarantee = SmoothGuarantee.of(20, "0.2", "0.25")
    >>> round(guarantee.delta, 4), round(guarantee.f(2), 4)
    (0.0373, 0.0337)
    >>> guarantee.together(guarantee).epsilon
    Fraction(1, 2)
    """

    releases: tuple[tuple[SampledCell, Fraction], ...]

    @classmethod
    def of(cls, k: int, rate: Number, epsilon: Number) -> SmoothGuarantee:
        """Return the guarantee of one release; requires epsilon >= -ln(1 - rate)."""
        return cls(((_reached(k, rate, epsilon), exact(epsilon)),))

    def together(self, other: SmoothGuarantee) -> SmoothGuarantee:
        """Return the guarantee of both, made with independent coins."""
        return SmoothGuarantee(self.releases + other.releases)

    @property
    def epsilon(self) -> Fraction:
        """Return the sum of the epsilons."""
        return sum((epsilon for _, epsilon in self.releases), Fraction(0))

    @property
    def delta(self) -> float:
        """Return the sum of the deltas, rounded up."""
        total = math.fsum(probability_up(_log_theorem6(cell, epsilon)) for cell, epsilon in self.releases)
        return min(1.0, math.nextafter(total, math.inf))

    def f(self, z: Number) -> float:
        """Return by which factor, at most, delta falls when epsilon is multiplied by z >= 1."""
        factor = exact(z, "z")
        if factor < 1:
            raise InvalidParameter("a smooth guarantee speaks of z times epsilon for z of 1 or more.")
        return max(
            min(1.0, math.exp(_log_theorem6(cell, factor * epsilon) - _exponent(cell, _gamma(cell, epsilon))))
            for cell, epsilon in self.releases
        )


def _reached(k: int, rate: Number, epsilon: Number) -> SampledCell:
    cell = SampledCell(k, exact(rate, "the rate"))
    require_reach(cell, exact(epsilon, "epsilon"))
    return cell


def _log_theorem6(cell: SampledCell, epsilon: Fraction) -> float:
    return cell.rounded_up(_exponent(cell, _gamma(cell, epsilon)))


def _exponent(cell: SampledCell, gamma: float) -> float:
    return -cell.k * (math.log(gamma / cell.p) - (gamma - cell.p) / gamma)


def _gamma(cell: SampledCell, epsilon: Fraction) -> float:
    above = LikelihoodRatio(epsilon).less_one
    return cell.p + cell.q * (above / (1.0 + above) if above < math.inf else 1.0)
