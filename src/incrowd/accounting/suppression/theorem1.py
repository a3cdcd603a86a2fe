"""Theorem 1 of Li, Qardaji and Su 2010: the first, looser, delta of sampled suppression, kept for comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

from incrowd.accounting.suppression.binomial import log_upper_tail
from incrowd.accounting.suppression.inverses import (
    feasible_k,
    least_argument,
    least_k,
    log_at_most,
    require_feasible,
    wanted_delta,
)
from incrowd.accounting.suppression.likelihood_ratio import LikelihoodRatio
from incrowd.accounting.suppression.sampled_cell import SampledCell
from incrowd.accounting.suppression.tight_delta import probability
from incrowd.core.rounding import Number, exact
from incrowd.errors import InvalidParameter

_TIE = 1e-12
_CLOSE = 1e-9


def theorem1_delta(k: int, rate: Number, epsilon: Number) -> float:
    """Return Theorem 1's delta, rounded up: never below the tight one, up to a thousand times above.

    It bounds the probability of all outcomes whose likelihood ratio exceeds e^epsilon. It is not monotone in the rate:
    use the tight delta to choose one. Requires epsilon >= -ln(1 - rate).

    >>> f"{theorem1_delta(20, 0.1, 0.5):.3g}"
    '1.61e-09'
    """
    return probability(log_theorem1_delta(k, rate, epsilon))


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


def theorem1_smallest_k(epsilon: Number, delta: Number, rate: Number) -> int:
    """Return the least k for which Theorem 1 promises (epsilon, delta) at this rate; requires epsilon >= -ln(1 - rate).

    >>> theorem1_smallest_k(0.5, 1e-6, 0.1)  # the tight curve says 10
    13
    """
    wanted, sampled = wanted_delta(delta), SampledCell(1, exact(rate, "the rate")).rate
    at = exact(epsilon, "epsilon")
    return least_k(lambda k: _meets(SampledCell(k, sampled), at, wanted), feasible_k(wanted, sampled))


def theorem1_smallest_epsilon(delta: Number, k: int, rate: Number) -> float:
    """Return the least epsilon, rounded up and at least -ln(1 - rate), for which Theorem 1 promises this delta.

    >>> round(theorem1_smallest_epsilon(1e-6, 20, 0.1), 5)  # the tight curve says 0.18299
    0.29194
    """
    wanted, cell = wanted_delta(delta), SampledCell(k, exact(rate, "the rate"))
    require_feasible(wanted, cell)

    def meets(epsilon: float) -> bool:
        return _meets(cell, exact(epsilon), wanted)

    least = _limit(cell) * (1.0 + _TIE)
    enough = max(least, math.log((k + 1.0) * cell.q)) + 1.0
    return least if meets(least) else least_argument(meets, least, enough)


@dataclass(frozen=True)
class _Tail:
    logarithm: float
    m: int
    n: int

    def exactly(self, rate: Fraction) -> Fraction:
        masses = (math.comb(self.n, j) * rate**j * (1 - rate) ** (self.n - j) for j in range(self.m, self.n + 1))
        return sum(masses, Fraction(0))


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
        best = max(best, tail, key=lambda each: each.logarithm)
    return best


def _meets(cell: SampledCell, epsilon: Fraction, wanted: Fraction) -> bool:
    # Tails are rational and can be equal to what is wanted: if rounding cannot tell, the fraction does.
    worst = _worst_tail(cell, epsilon)
    if log_at_most(cell.rounded_up(worst.logarithm), wanted):
        return True
    return log_at_most(worst.logarithm - _CLOSE, wanted) and worst.exactly(cell.rate) <= wanted


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
