"""Integer Laplace and Gaussian noise on one number: the exact δ(ε) of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.accounting.bound import least_epsilon
from incrowd.accounting.concentrated import delta_of_rho
from incrowd.accounting.loss_laws import SMOOTHINGS, smoothing_margin
from incrowd.core.loss import Gaussian, GaussianRounds, Laplace
from incrowd.core.rounding import Number, exact, float_down, float_up, not_below
from incrowd.errors import Infeasible, InvalidParameter

_RELATIVE = 1e-9  # more than a million roundings of 2⁻⁵³ each, of positive terms only, which nothing cancels
_ULPS = 2.0**-50  # more than the six roundings of one loss
_WIDEST = 2.0e5  # the sum has 80 terms per σ: 16 million numbers, 128 MB an array; beyond, ρ is nearly as good
_MOST_TERMS = 1 << 22  # beyond, P[z > 0] ≥ the rest of the sum is charged whole
_WIDEST_MARGIN = 1.0  # a smoothing that costs a factor above e is not worth its transform; any limit is sound
_FARTHEST, _TURN = 37.1, 6.0  # Φ(−37.1) < 2·10⁻³⁰¹; where t < −6, leaving out what is subtracted adds 10⁻⁹ at most


def laplace_delta(noise: Laplace, epsilon: float) -> float:
    """Return the exact δ of integer Laplace noise at ε, rounded up.

    With a = e^(−1/scale) and shift Δ the output z has loss (|z−Δ| − |z|)/scale, so outcomes z ≤ 0 have loss Δ/scale
    and outcomes 0 < z < Δ have (Δ−2z)/scale; both directions are equal by symmetry.
    Source: Ghosh, Roughgarden & Sundararajan 2009 (the two-sided geometric mechanism).

    >>> laplace_delta(Laplace(Fraction(2)), 0.5)
    0.0
    >>> laplace_delta(Laplace(Fraction(1)), 0.0) >= (math.e - 1) / (math.e + 1)
    True
    """
    if Fraction(epsilon) * noise.scale >= noise.sensitivity:
        return 0.0
    inverse = float_up(1 / noise.scale)
    shift = noise.sensitivity
    # by how much the largest loss exceeds ε; exact before it is rounded, since near that end all digits would cancel
    gap = float_up(shift / noise.scale - Fraction(epsilon))
    mass_at_zero = -math.expm1(-inverse) / (1.0 + math.exp(-inverse))
    below = 1.0 / (1.0 + math.exp(-inverse)) * -math.expm1(-gap)
    last = min(shift - 1, math.floor(gap / inverse / 2.0) + 1)
    if last > _MOST_TERMS:
        return not_below(below + _laplace_upper(inverse), _RELATIVE)
    outcomes = np.arange(1, last + 1, dtype=np.float64)
    weights = np.maximum(0.0, -np.expm1(2.0 * outcomes * inverse * (1.0 - _ULPS) - gap))
    middle = mass_at_zero * float(np.sum(np.exp(-inverse * outcomes) * weights))
    return not_below(below + middle, _RELATIVE)


def gaussian_delta(noise: Gaussian, epsilon: float) -> float:
    """Return δ of integer Gaussian noise at ε: exact for σ up to 2·10⁵, by zero-concentration beyond; rounded up.

    δ = Σ over z of P[z]·max(0, 1 − e^(ε−loss(z))) with loss(z) = (Δ² − 2zΔ)/(2σ²), a sum of positive terms; equal in
    both directions.  Source: Canonne, Kamath & Steinke 2020, Theorem 7.

    >>> gaussian_delta(Gaussian(Fraction(5)), 1.0) < 1e-6
    True
    """
    variance = noise.scale**2
    if noise.scale > _WIDEST:
        return delta_of_rho(Fraction(noise.sensitivity**2) / (2 * variance), float_down(Fraction(epsilon)))
    scale = float_down(noise.scale)
    reach = math.ceil(40.0 * scale) + 2
    top = math.floor(noise.sensitivity / 2.0 - epsilon * scale**2 / noise.sensitivity) + 1
    if top < -reach:
        return delta_of_rho(Fraction(noise.sensitivity**2) / (2 * variance), float_down(Fraction(epsilon)))
    outcomes = np.arange(-reach, min(top, reach) + 1, dtype=np.float64)
    shift = float(noise.sensitivity)
    losses = (shift * shift - 2.0 * shift * outcomes) / (2.0 * scale * scale)
    # raised by more than their rounding, which is all that is left of a loss just above ε
    losses += _ULPS * (shift * shift + 2.0 * shift * np.abs(outcomes)) / (2.0 * scale * scale)
    weights = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - losses)))
    total = float(np.sum(_gaussian_masses(outcomes, scale) * weights))
    return not_below(total / _gaussian_normalizer(scale, reach), _RELATIVE) + 1e-300


def laplace_epsilon(noise: Laplace, delta: float) -> float:
    """Return the least ε at `delta`, never above Δ/scale."""
    return min(float_up(noise.sensitivity / noise.scale), least_epsilon(lambda x: laplace_delta(noise, x), delta))


def gaussian_epsilon(noise: Gaussian, delta: float) -> float:
    """Return the least ε at `delta`."""
    return least_epsilon(lambda x: gaussian_delta(noise, x), delta)


def rounds_delta(noise: GaussianRounds, epsilon: float) -> float:
    """Return δ at ε of integer Gaussian noise in rounds that were fixed in advance, rounded up.

    Theorem.  Let X be continuous Gaussian noise of variance σ² − τ² around an integer v, and let an integer z be drawn
    with weight e^(−(z − X)²/(2τ²)).  The weights sum to τ√(2π)·(1 ± κ), κ = 2 Σ_j e^(−2π²τ²j²), whatever X is, by
    Poisson's summation, so the law of z is that of v plus integer noise of scale σ, up to factors in
    [A(1 − κ), A(1 + κ)] with one A for all v and z.  z is made from X alone, and continuous noise whose moves have the
    squares μ² in all, move over scale, loses what a single one moved by μ does, also adaptively.  Numbers that do not
    move cancel.  So for m that do, and K = ((1 + κ)/(1 − κ))^m, δ(ε) ≤ K · δ_μ(ε − ln K), μ² = Σ move²/(σ² − τ²).

    Source: Balle & Wang 2018, Theorem 8 (δ_μ); Dong, Roth & Su 2022, Corollary 3.3 (squares add up).

    >>> f"{rounds_delta(GaussianRounds(Fraction(1, 8), Fraction(1000), 4), 3.0):.4e}"
    '3.4...e-10'
    """
    squares, best = 2 * noise.rho, delta_of_rho(noise.rho, epsilon)
    for smoothing in SMOOTHINGS:
        rest = noise.scale**2 - Fraction(smoothing)
        if rest <= 0:
            break
        shift = math.sqrt(float_up(squares * noise.scale**2 / rest)) * (1.0 + 1e-15)
        margin = noise.moved * smoothing_margin(smoothing)
        if margin < _WIDEST_MARGIN:
            best = min(best, math.exp(margin) * continuous_delta(shift, epsilon - margin))
    return min(1.0, not_below(best, _RELATIVE))


def continuous_delta(shift: float, epsilon: float) -> float:
    """Return δ at ε of Gaussian noise of scale 1 that moves by `shift`; rounded up, for every real ε.

    δ = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) = e^(−t²/2)/2 · (erfcx(t/√2) − erfcx((t + μ)/√2)), t = ε/μ − μ/2.

    >>> f"{continuous_delta(1.0, 1.0):.9f}"
    '0.126936738'
    """
    from scipy.special import erfcx, log_ndtr

    if shift <= 0.0:
        return 0.0 if epsilon >= 0.0 else not_below(-math.expm1(epsilon), _RELATIVE)
    least = epsilon / shift - shift / 2.0
    least -= _ULPS * (abs(epsilon) / shift + shift / 2.0)  # both may be large where their difference is not
    if least > _FARTHEST:
        return 1e-300
    if least < -_TURN:
        return min(1.0, not_below(-math.expm1(float(log_ndtr(least))), _RELATIVE))  # without what is subtracted
    low, width = least / math.sqrt(2.0), shift / math.sqrt(2.0)
    if width < 1.0:  # the difference of two numbers near each other, as an integral
        nodes, weights = np.polynomial.legendre.leggauss(24)
        points = low + width * (nodes + 1.0) / 2.0
        slopes = 2.0 / math.sqrt(math.pi) - 2.0 * points * erfcx(points)
        between = width / 2.0 * float(weights @ slopes)
    else:
        between = float(erfcx(low)) - float(erfcx(low + width))
    return min(1.0, not_below(between * math.exp(-least * least / 2.0) / 2.0, _RELATIVE) + 1e-300)


def rounds_epsilon(noise: GaussianRounds, delta: float) -> float:
    """Return the least ε at `delta`."""
    return least_epsilon(lambda x: rounds_delta(noise, x), delta)


def _laplace_upper(inverse: float) -> float:
    return math.exp(-inverse) / (1.0 + math.exp(-inverse))


def _gaussian_masses(outcomes: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    return np.exp(-(outcomes**2) / (2.0 * scale * scale))


def _gaussian_normalizer(scale: float, reach: int) -> float:
    return float(np.sum(_gaussian_masses(np.arange(-reach, reach + 1, dtype=np.float64), scale)))


_DIGITS = 9  # a searched scale has nine digits: what is lost is far below what anybody sees of noise


@dataclass(frozen=True)
class Calibration:
    """Noise and what it guarantees: P[some |error| > `error`] ≤ 1 − `confidence`, over `answers` answers at once."""

    noise: Laplace | Gaussian
    error: int
    confidence: Fraction
    answers: int


def laplace_for_error(error: int, confidence: Number, answers: int = 1, sensitivity: int = 1) -> Calibration:
    """Return the widest integer Laplace noise whose largest error over all answers stays within `error`.

    P[|Z| > e] = 2a^(e+1)/(1+a) with a = e^(−1/scale); over several answers by the union bound.

    >>> found = laplace_for_error(10, "0.95")
    >>> laplace_error(found.noise, "0.95")
    10
    """
    miss = _miss(confidence, answers)
    if error < 0:
        raise InvalidParameter("a wanted error cannot be negative.")

    def within(scale: Fraction) -> bool:
        return _laplace_tail(scale, error) <= miss

    low, high = Fraction(1, 10**6), Fraction(1)
    if not within(low):
        raise Infeasible("even the narrowest noise misses this often; allow a larger error or a lower confidence.")
    while within(high):
        low, high = high, 2 * high
    while high - low > low / 10**_DIGITS:
        middle = Fraction(float((low + high) / 2)).limit_denominator(10**12)
        low, high = (middle, high) if within(middle) else (low, middle)
    return Calibration(Laplace(low, sensitivity), error, exact(confidence), answers)


def laplace_error(noise: Laplace, confidence: Number, answers: int = 1) -> int:
    """Return the least e with P[some |error| > e] ≤ 1 − confidence over all answers.

    >>> laplace_error(Laplace(Fraction(1)), "0.95")
    3
    """
    miss = _miss(confidence, answers)
    inverse = float_down(1 / noise.scale)
    near = max(0, math.floor(-(math.log(miss) + math.log1p(math.exp(-inverse)) - math.log(2.0)) / inverse) - 2)
    while _laplace_tail(noise.scale, near) > miss:
        near += 1
    return near


def gaussian_error(noise: Gaussian, confidence: Number, answers: int = 1) -> int:
    """Return an e with P[some |error| > e] ≤ 1 − confidence over all answers.

    Integer Gaussian noise is σ-subgaussian, so P[|Z| ≥ m] ≤ 2 exp(−m²/(2σ²)): E[e^(tZ)] is e^(t²σ²/2) times the ratio
    of the sums of e^(−(z−tσ²)²/(2σ²)) and of e^(−z²/(2σ²)) over all integers z, and the first sum is largest at t = 0.
    Source: Canonne, Kamath & Steinke 2020.

    >>> gaussian_error(Gaussian(Fraction(10)), "0.95")
    27
    """
    miss = _miss(confidence, answers)
    return math.ceil(float_up(noise.scale) * math.sqrt(2.0 * math.log(2.0 / miss)) * (1.0 + 1e-12)) - 1


def _laplace_tail(scale: Fraction, error: int) -> float:
    inverse = float_down(1 / scale)
    exponent = -inverse * (error + 1)
    return 2.0 * math.exp(exponent) / (1.0 + math.exp(-inverse)) * (1.0 + 1e-12)


def _probability(value: Number, name: str) -> Fraction:
    number = exact(value, name)
    if not 0 < number < 1:
        raise InvalidParameter(f"{name} must lie strictly between 0 and 1.")
    return number


def _miss(confidence: Number, answers: int) -> float:
    if answers < 1:
        raise InvalidParameter("there must be at least one answer.")
    miss = float_down((1 - _probability(confidence, "confidence")) / answers)
    if miss <= 0.0:
        raise Infeasible("no noise stays within an error this surely; lower the confidence.")
    return miss
