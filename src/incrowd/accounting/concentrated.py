"""Zero-concentrated losses: ρ adds up, and is turned into (ε, δ) at the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from incrowd.core.loss import (
    Approximate,
    Gaussian,
    GaussianRounds,
    Grouped,
    Laplace,
    Loss,
    Parallel,
    Pure,
    Sampled,
    Sequence,
    ZeroConcentrated,
    walk,
)
from incrowd.core.rounding import Number, exact, float_down, float_up, not_below
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter

_RELATIVE = 1e-11  # on ln δ: ten roundings of terms up to 745, below which a δ is no float
_ULPS = 2.0**-50  # eight roundings of each term of an ε


def rho_of(loss: Loss, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Fraction | None:
    """Return ρ such that the loss is ρ-zCDP, or None if no rule here gives one.

    Pure ε is ε²/2-zCDP (Bun & Steinke 2016, Proposition 1.4); integer Gaussian noise is Δ²/(2σ²)-zCDP (Canonne,
    Kamath & Steinke 2020, Theorem 4); ρ adds up on the same rows, also adaptively; a partition costs its worst block
    (added or removed rows only); m rows of one unit cost m²ρ (Bun & Steinke, Proposition 1.9; a replaced unit can have
    another number of rows, so added or removed rows only, and always around a sample, never on it).  A secret sample
    keeps ρ: given the coins the two inputs are neighbors or equal, and Rényi divergence is jointly quasi-convex.
    Crowds under a sample have no finite ρ: one output is possible with a person and impossible without.

    >>> rho_of(Gaussian(Fraction(10), 2))
    Fraction(1, 50)
    """
    match loss:
        case ZeroConcentrated(rho) | GaussianRounds(rho):
            return rho
        case Pure(epsilon):
            return epsilon**2 / 2
        case Laplace(scale, sensitivity):
            return (sensitivity / scale) ** 2 / 2
        case Gaussian(scale, sensitivity):
            return Fraction(sensitivity) ** 2 / (2 * scale**2)
        case Sampled(inner=inner) if not any(isinstance(part, Grouped) for part in walk(inner)):
            return rho_of(inner, adjacency)
        case Grouped(size, inner) if adjacency is Adjacency.ADD_REMOVE:
            single = rho_of(inner, adjacency)
            return None if single is None else size**2 * single
        case Sequence(parts):
            return _together(parts, adjacency, lambda rhos: sum(rhos, Fraction(0)))
        case Parallel(parts) if adjacency is Adjacency.ADD_REMOVE:
            return _together(parts, adjacency, lambda rhos: max(rhos, default=Fraction(0)))
    return None


def approximate_rho_of(loss: Loss, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> tuple[Fraction, Fraction] | None:
    """Return ρ and δ₀ such that the loss is δ₀-approximately ρ-zCDP, or None if no rule here gives them.

    With chance 1 − δ₀ a ρ-zCDP mechanism runs, and else anything.  (ε, δ) is at worst everything with chance δ and else
    one randomized response at ε (Kairouz, Oh & Viswanath 2015), so it is δ-approximately ε²/2-zCDP.  On the same rows
    ρ adds up, and so do the chances.  If the chance of "anything" is δ₀ in all, P[S] ≤ δ₀ + (1 − δ₀)(e^ε P′[S | else] +
    δ₁) ≤ e^ε P′[S] + δ₀ + δ₁ where ρ-zCDP implies (ε, δ₁): what is left of δ beside δ₀ is for ρ.  Source: Bun & Steinke
    2016, §8.

    >>> approximate_rho_of(Sequence((ZeroConcentrated(Fraction(1, 9)), Approximate(Fraction(0), Fraction(1, 10**6)))))
    (Fraction(1, 9), Fraction(1, 1000000))
    """
    match loss:
        case Approximate(epsilon, delta):
            return epsilon**2 / 2, delta
        case Sequence(parts):
            pairs = [approximate_rho_of(part, adjacency) for part in parts]
            finite = [pair for pair in pairs if pair is not None]
            if len(finite) < len(pairs):
                return None
            return sum((rho for rho, _ in finite), Fraction(0)), sum((delta for _, delta in finite), Fraction(0))
    rho = rho_of(loss, adjacency)
    return None if rho is None else (rho, Fraction(0))


def epsilon_of_rho(rho: Number, delta: Number) -> float:
    """Return ε such that ρ-zCDP implies (ε, δ)-differential privacy.

    Source: Canonne, Kamath & Steinke 2020, Corollary 13: for every α > 1,
    ε = αρ + ln(1/(αδ))/(α−1) + ln(1−1/α) holds; any α is sound, the best one found is used.

    >>> round(epsilon_of_rho("0.1", "1e-6"), 3)
    2.142
    """
    rho_above, target = float_up(_rho(rho)), _delta(delta)
    if rho_above == 0.0:
        return 0.0
    if float_down(target) == 0.0:
        return math.inf  # a δ below every float
    # 1 − δ is exact before it is rounded: for a δ near 1 it is all that counts
    log_delta = math.log(float_down(target)) if target <= Fraction(1, 2) else math.log1p(-float_up(1 - target))

    def at(excess: float) -> float:
        alpha = 1.0 + excess
        log_alpha = math.log(alpha) if excess > 1.0 else math.log1p(excess)  # a small excess loses its digits in alpha
        return alpha * rho_above - (log_alpha + log_delta) / excess - math.log1p(1.0 / excess)

    best = _best_excess(at)
    # an ε near 0 is what remains of terms that cancel
    canceled = (1.0 + best) * rho_above + (math.log1p(best) - log_delta) / best + math.log1p(1.0 / best)
    return max(0.0, not_below(at(best), _RELATIVE), at(best) + _ULPS * canceled)


def delta_of_rho(rho: Number, epsilon: Number) -> float:
    """Return δ such that ρ-zCDP implies (ε, δ)-differential privacy.

    Source: Canonne, Kamath & Steinke 2020, Corollary 13: for every α > 1,
    δ = exp((α−1)(αρ−ε)) / (α−1) · (1−1/α)^α.

    >>> delta_of_rho("0.1", "2.5") < 1e-6
    True
    """
    rho_above, epsilon_below = float_up(_rho(rho)), float_down(exact(epsilon, "epsilon"))
    if rho_above == 0.0:
        return 0.0

    def log_at(excess: float) -> float:
        alpha = 1.0 + excess
        return excess * (alpha * rho_above - epsilon_below) - math.log(excess) - alpha * math.log1p(1.0 / excess)

    best = log_at(_best_excess(log_at))
    return min(1.0, not_below(math.exp(min(0.0, best)), _RELATIVE) or math.ulp(0.0))


@lru_cache(maxsize=256)
def largest_rho(epsilon: Number, delta: Number) -> Fraction:
    """Return a ρ, as large as could be found, such that ρ-zCDP implies (ε, δ)-differential privacy; remembered.

    >>> epsilon_of_rho(largest_rho(1, "1e-6"), "1e-6") <= 1
    True
    """
    target = exact(epsilon, "epsilon")
    if target <= 0:
        raise InvalidParameter("a concentrated budget needs an epsilon above 0.")
    low, high = Fraction(0), Fraction(1, 2**40)
    while epsilon_of_rho(high, delta) <= target:
        low, high = high, 2 * high
    for _ in range(50):
        middle = Fraction(float((low + high) / 2))
        low, high = (middle, high) if epsilon_of_rho(middle, delta) <= target else (low, middle)
    if low == 0:
        raise InvalidParameter("no concentrated budget is small enough for this epsilon and delta.")
    return low


def _together(
    parts: tuple[Loss, ...], adjacency: Adjacency, join: Callable[[list[Fraction]], Fraction]
) -> Fraction | None:
    rhos = [rho_of(part, adjacency) for part in parts]
    finite = [rho for rho in rhos if rho is not None]
    return join(finite) if len(finite) == len(rhos) else None


def _best_excess(objective: Callable[[float], float]) -> float:
    """Search α − 1 on a logarithmic grid, then by golden section; the objective is an upper bound everywhere."""
    exponents = [step / 4.0 for step in range(-80, 161)]
    center = min(exponents, key=lambda x: objective(math.exp(x)))
    low, high = center - 0.25, center + 0.25
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(60):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if objective(math.exp(left)) <= objective(math.exp(right)) else (left, high)
    return math.exp((low + high) / 2.0)


def _rho(rho: Number) -> Fraction:
    value = exact(rho, "rho")
    if value < 0:
        raise InvalidParameter("rho cannot be negative.")
    return value


def _delta(delta: Number) -> Fraction:
    value = exact(delta, "delta")
    if not 0 < value < 1:
        raise InvalidParameter("turning rho into epsilon needs a delta strictly between 0 and 1.")
    return value


_ROUNDING = 1e-12  # ten roundings of 2⁻⁵³ are below 2·10⁻¹⁵; nothing cancels
_FINE = 10**7  # γ has seven digits: about that many runs are expected, and any γ is sound


def expected_runs(gamma: Fraction) -> float:
    """Return E[K], rounded up.

    >>> round(expected_runs(Fraction(7, 100)), 2)
    5.0
    """
    return not_below((1.0 / float(gamma) - 1.0) / -math.log(float(gamma)), _ROUNDING)


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
    return not_below(epsilon_of_rho(rho, apart) + _shift(rho, gamma), _ROUNDING)


def delta_of_runs(rho: Number, gamma: Fraction, epsilon: Number) -> float:
    """Return δ at ε of the best of a random number of runs, each ρ-zCDP with its score."""
    left = exact(epsilon, "epsilon") - Fraction(_shift(rho, gamma))
    return 1.0 if left < 0 else min(1.0, not_below(expected_runs(gamma) * delta_of_rho(rho, left), _ROUNDING))


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
    return not_below((order - 1.0) * above + law / order, _ROUNDING)
