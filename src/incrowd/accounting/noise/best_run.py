"""The best of a random number of runs: what it costs to keep only the run with the best score.

Each run publishes a score of its own, and all runs but the best are forgotten, with their number.  K is drawn from the
logarithmic law with parameter γ (the truncated negative binomial law with η = 0), E[K] = (1/γ − 1) / ln(1/γ).

Source: Papernot & Steinke 2022, Theorem 2 and Corollary 3: runs that are ε-private give 2ε; runs that are
(λ, ε₁)- and (λ′, ε₂)-Rényi private give (λ, ε₁ + (1 − 1/λ′) ε₂ + ln(1/γ)/λ′ + ln E[K]/(λ − 1)) for every λ′ ≥ 1.  With
ρ-zCDP that is λρ + c + ln E[K]/(λ − 1), where c = (λ′ − 1)ρ + ln(1/γ)/λ′ is least at λ′ = √(ln(1/γ)/ρ); in the
conversion to (ε, δ), c moves ε and E[K] multiplies δ.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from incrowd.accounting.noise.concentrated import delta_of_rho, epsilon_of_rho
from incrowd.core.rounding import Number, exact, float_up, not_below
from incrowd.errors import InvalidParameter

_RELATIVE = 1e-12
_FINE = 10**7


def expected_runs(gamma: Fraction) -> float:
    """Return E[K], rounded up.

    >>> round(expected_runs(Fraction(7, 100)), 2)
    5.0
    """
    return not_below((1.0 / float(gamma) - 1.0) / -math.log(float(gamma)), _RELATIVE)


@lru_cache(maxsize=256)
def gamma_for(runs: int) -> Fraction:
    """Return γ with which there are about so many runs on average.

    >>> 4.999 < expected_runs(gamma_for(5)) < 5.001
    True
    """
    low, high = 1, _FINE - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if expected_runs(Fraction(middle, _FINE)) >= runs else (low, middle)
    return Fraction(low, _FINE)


def epsilon_of_runs(rho: Number, gamma: Fraction, delta: Number) -> float:
    """Return ε at δ of the best of a random number of runs, each ρ-zCDP with its score.

    >>> round(epsilon_of_runs("0.02", gamma_for(5), "1e-6"), 3)
    1.409
    """
    apart = exact(delta, "delta") / Fraction(expected_runs(gamma))
    return not_below(epsilon_of_rho(rho, apart) + _shift(rho, gamma), _RELATIVE)


def delta_of_runs(rho: Number, gamma: Fraction, epsilon: Number) -> float:
    """Return δ at ε of the best of a random number of runs, each ρ-zCDP with its score."""
    left = exact(epsilon, "epsilon") - Fraction(_shift(rho, gamma))
    return 1.0 if left < 0 else min(1.0, not_below(expected_runs(gamma) * delta_of_rho(rho, left), _RELATIVE))


@lru_cache(maxsize=256)
def largest_run_rho(epsilon: Number, delta: Number, gamma: Fraction) -> Fraction:
    """Return a ρ for each run, as large as could be found, such that the best of them is (ε, δ)-private.

    >>> epsilon_of_runs(largest_run_rho(1, "1e-6", gamma_for(5)), gamma_for(5), "1e-6") <= 1
    True
    """
    target = exact(epsilon, "epsilon")
    low, high = Fraction(0), Fraction(1, 2**40)
    while epsilon_of_runs(high, gamma, delta) <= target:
        low, high = high, 2 * high
    for _ in range(50):
        middle = Fraction(float((low + high) / 2))
        low, high = (middle, high) if epsilon_of_runs(middle, gamma, delta) <= target else (low, middle)
    if low == 0:
        raise InvalidParameter("nothing is left for a run under this epsilon and delta: ask for fewer runs.")
    return low


def _shift(rho: Number, gamma: Fraction) -> float:
    """Return c, by how much ε rises beside what a single run costs, rounded up."""
    above, law = float_up(exact(rho, "rho")), -math.log(float(gamma))
    if above <= 0.0:
        return 0.0
    order = max(1.0, math.sqrt(law / above))
    return not_below((order - 1.0) * above + law / order, _RELATIVE)
