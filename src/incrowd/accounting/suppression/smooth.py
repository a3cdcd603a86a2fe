"""Smooth privacy: how fast delta falls as epsilon grows beyond the promised one; closed forms, for comparison.

An algorithm is f-smooth (epsilon, delta)-private if it is (z epsilon, f(z) delta)-private for every z >= 1. For sampled
suppression f falls but does not reach zero, and nothing can: delta is at least rate ** k at every epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from incrowd.accounting.suppression.likelihood_ratio import LikelihoodRatio
from incrowd.accounting.suppression.sampled_cell import SampledCell
from incrowd.accounting.suppression.theorem1 import require_reach
from incrowd.accounting.suppression.tight_delta import probability
from incrowd.core.rounding import Number, exact
from incrowd.errors import InvalidParameter


def theorem6_delta(k: int, rate: Number, epsilon: Number) -> float:
    """Return Theorem 6's closed bound on delta, rounded up; requires epsilon >= -ln(1 - rate).

    Source: Li, Qardaji and Su 2010, Theorem 6. With gamma = 1 - (1 - rate) e^-epsilon it is
    exp(-k (ln(gamma / rate) - (gamma - rate) / gamma)). By Theorem 1 delta is a tail P[Bin(n, rate) >= s] with s >= k
    and n < s / gamma. Chernoff's exponent s ln(s / (rate n)) - s + rate n falls in n below s / rate, so the bound at n
    is at most that at the real number s / gamma; and s >= k.

    >>> round(theorem6_delta(20, "0.2", "0.25"), 4)
    0.0373
    """
    return probability(_log_theorem6(_reached(k, rate, epsilon), exact(epsilon)))


def divergence_delta(k: int, rate: Number, epsilon: Number) -> float:
    """Return the sharper closed bound exp(-k KL(gamma || rate) / gamma), rounded up; requires epsilon >= -ln(1 - rate).

    The proof is Theorem 6's, with the exponent n KL(s / n || rate), which also falls in n while s / n > rate. It lies
    between Theorem 1 and Theorem 6 and tends to the floor rate ** k.

    >>> round(divergence_delta(20, "0.2", "0.25"), 4)
    0.0121
    """
    cell = _reached(k, rate, epsilon)
    at = exact(epsilon)
    gamma = _gamma(cell, at)
    unseen = cell.q / (1.0 + LikelihoodRatio(at).less_one)
    lost = unseen * float(at) if unseen > 0.0 else 0.0
    return probability(cell.rounded_up(-k * (math.log(gamma / cell.p) - lost / gamma)))


@dataclass(frozen=True)
class SmoothPromise:
    """Theorem 6's promise for releases (k, rate, epsilon) by sampled suppression, each with a fresh sample.

    Source: Li, Qardaji and Su 2010, Theorems 5 and 6. Each release is (z epsilon_i, f_i(z) delta_i)-private, so their
    epsilons add up, their deltas add up, and f is the largest f_i. This needs independent coins: from one shared sample
    nothing follows. It is weak; `envelope` is much sharper.

    >>> promise = SmoothPromise.of(20, "0.2", "0.25")
    >>> round(promise.delta, 4), round(promise.f(2), 4)
    (0.0373, 0.0337)
    >>> promise.together(promise).epsilon
    Fraction(1, 2)
    """

    releases: tuple[tuple[SampledCell, Fraction], ...]

    @classmethod
    def of(cls, k: int, rate: Number, epsilon: Number) -> SmoothPromise:
        """Return the promise of one release; requires epsilon >= -ln(1 - rate)."""
        return cls(((_reached(k, rate, epsilon), exact(epsilon)),))

    def together(self, other: SmoothPromise) -> SmoothPromise:
        """Return the promise of both, made with independent coins."""
        return SmoothPromise(self.releases + other.releases)

    @property
    def epsilon(self) -> Fraction:
        """Return the sum of the epsilons."""
        return sum((epsilon for _, epsilon in self.releases), Fraction(0))

    @property
    def delta(self) -> float:
        """Return the sum of the deltas, rounded up."""
        total = math.fsum(probability(_log_theorem6(cell, epsilon)) for cell, epsilon in self.releases)
        return min(1.0, math.nextafter(total, math.inf))

    def f(self, z: Number) -> float:
        """Return by which factor, at most, delta falls when epsilon is multiplied by z >= 1."""
        factor = exact(z, "z")
        if factor < 1:
            raise InvalidParameter("a smooth promise speaks of z times epsilon for z of 1 or more.")
        return max(
            min(1.0, math.exp(_log_theorem6(cell, factor * epsilon) - _exponent(cell, _gamma(cell, epsilon))))
            for cell, epsilon in self.releases
        )

    def f_limit(self) -> float:
        """Return what f tends to; it is positive, so a total disclosure keeps a chance however large the loss."""
        return max(
            math.exp(cell.rounded_up(_exponent(cell, 1.0)) - _exponent(cell, _gamma(cell, epsilon)))
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
