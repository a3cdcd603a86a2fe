"""Formulas of Li, Qardaji and Su 2010, and each bound by itself, that the tests hold against what releases use."""

from __future__ import annotations

import math
from fractions import Fraction

from incrowd.accounting.suppression import theorems, tight_delta
from incrowd.accounting.suppression.inverses import (
    feasible_k,
    least_argument,
    least_k,
    log_at_most,
    require_feasible,
    required_delta,
)
from incrowd.accounting.suppression.sampled_cell import LikelihoodRatio, SampledCell
from incrowd.core.rounding import Number, exact, probability_up

PRODUCT = "removal and addition, product of the worst cases"
_TIE = 1e-12
_CLOSE = 1e-9


def log_delta_remove(k: int, rate: Number, epsilon: Number, population: int | None = None) -> float:
    """Return the logarithm of the delta of removing a record: published with it against published without it.

    >>> round(log_delta_remove(5, 0.1, 100), 4)
    -11.5129
    """
    return SampledCell(k, exact(rate, "the rate")).log_remove(LikelihoodRatio(exact(epsilon)), population)


def log_delta_add(k: int, rate: Number, epsilon: Number, population: int | None = None) -> float:
    """Return the logarithm of the delta of adding a record; minus infinity from epsilon = -ln(1 - rate) on.

    >>> log_delta_add(20, 0.1, 0.5)
    -inf
    >>> log_delta_add(35, 0.97, 0.05) > log_delta_remove(35, 0.97, 0.05)  # adding can be the worse of the two
    True
    """
    return SampledCell(k, exact(rate, "the rate")).log_add(LikelihoodRatio(exact(epsilon)), population)


def theorem1_smallest_k(epsilon: Number, delta: Number, rate: Number) -> int:
    """Return the least k for which Theorem 1 guarantees (epsilon, delta) at this rate; needs epsilon >= -ln(1 - rate).

    >>> theorem1_smallest_k(0.5, 1e-6, 0.1)  # the tight curve says 10
    13
    """
    wanted, sampled = required_delta(delta), SampledCell(1, exact(rate, "the rate")).rate
    at = exact(epsilon, "epsilon")
    return least_k(lambda k: _meets(SampledCell(k, sampled), at, wanted), feasible_k(wanted, sampled))


def theorem1_smallest_epsilon(delta: Number, k: int, rate: Number) -> float:
    """Return the least epsilon, rounded up and at least -ln(1 - rate), for which Theorem 1 guarantees this delta.

    >>> round(theorem1_smallest_epsilon(1e-6, 20, 0.1), 5)  # the tight curve says 0.18299
    0.29194
    """
    wanted, cell = required_delta(delta), SampledCell(k, exact(rate, "the rate"))
    require_feasible(wanted, cell)

    def meets(epsilon: float) -> bool:
        return _meets(cell, exact(epsilon), wanted)

    least = theorems._limit(cell) * (1.0 + _TIE)
    enough = max(least, math.log((k + 1.0) * cell.q)) + 1.0
    return least if meets(least) else least_argument(meets, least, enough)


def divergence_delta(k: int, rate: Number, epsilon: Number) -> float:
    """Return the sharper closed bound exp(-k KL(gamma || rate) / gamma), rounded up; requires epsilon >= -ln(1 - rate).

    The proof is Theorem 6's, with the exponent n KL(s / n || rate), which also falls in n while s / n > rate. It lies
    between Theorem 1 and Theorem 6 and tends to the floor rate ** k.

    >>> round(divergence_delta(20, "0.2", "0.25"), 4)
    0.0121
    """
    cell = theorems._reached(k, rate, epsilon)
    at = exact(epsilon)
    gamma = theorems._gamma(cell, at)
    unseen = cell.q / (1.0 + LikelihoodRatio(at).less_one)
    lost = unseen * float(at) if unseen > 0.0 else 0.0
    return probability_up(cell.rounded_up(-k * (math.log(gamma / cell.p) - lost / gamma)))


def replace_bounds(k: int, rate: Number, epsilon: Number) -> dict[str, float]:
    """Return every bound on ln(delta) of one replaced record that holds at epsilon, by its rule.

    >>> bounds = replace_bounds(20, 0.1, 0.5)
    >>> min(bounds, key=bounds.__getitem__) == PRODUCT
    True
    """
    cell = SampledCell(k, exact(rate, "the rate"))
    at = LikelihoodRatio(exact(epsilon, "epsilon")).epsilon
    return {**tight_delta._closed_bounds(cell, at, None), PRODUCT: tight_delta._log_product(cell, at)}


def _meets(cell: SampledCell, epsilon: Fraction, wanted: Fraction) -> bool:
    # Tails are rational and can be equal to what is wanted: if rounding cannot tell, the fraction does.
    worst = theorems._worst_tail(cell, epsilon)
    if log_at_most(cell.rounded_up(worst.logarithm), wanted):
        return True
    return log_at_most(worst.logarithm - _CLOSE, wanted) and _exactly(worst.m, worst.n, cell.rate) <= wanted


def _exactly(m: int, n: int, rate: Fraction) -> Fraction:
    return sum((math.comb(n, j) * rate**j * (1 - rate) ** (n - j) for j in range(m, n + 1)), Fraction(0))
