"""Integer Laplace and Gaussian noise on one number: the exact δ(ε) of each."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.accounting.bound import least_epsilon
from incrowd.accounting.noise.concentrated import delta_of_rho
from incrowd.core.loss import Gaussian, Laplace
from incrowd.core.rounding import float_down, float_up, not_below

_RELATIVE = 1e-9
_WIDEST = 2.0e5
_MOST_TERMS = 1 << 22


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
    mass_at_zero = -math.expm1(-inverse) / (1.0 + math.exp(-inverse))
    below = 1.0 / (1.0 + math.exp(-inverse)) * -math.expm1(epsilon - shift * inverse)
    last = min(shift - 1, math.floor((shift - epsilon / inverse) / 2.0) + 1)
    if last > _MOST_TERMS:
        return not_below(below + _laplace_upper(inverse), _RELATIVE)
    outcomes = np.arange(1, last + 1, dtype=np.float64)
    losses = (shift - 2.0 * outcomes) * inverse
    weights = np.maximum(0.0, -np.expm1(epsilon - losses))
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
    weights = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - losses)))
    total = float(np.sum(_gaussian_masses(outcomes, scale) * weights))
    return not_below(total / _gaussian_normalizer(scale, reach), _RELATIVE) + 1e-300


def laplace_epsilon(noise: Laplace, delta: float) -> float:
    """Return the least ε at `delta`, never above Δ/scale."""
    return min(float_up(noise.sensitivity / noise.scale), least_epsilon(lambda x: laplace_delta(noise, x), delta))


def gaussian_epsilon(noise: Gaussian, delta: float) -> float:
    """Return the least ε at `delta`."""
    return least_epsilon(lambda x: gaussian_delta(noise, x), delta)


def _laplace_upper(inverse: float) -> float:
    return math.exp(-inverse) / (1.0 + math.exp(-inverse))


def _gaussian_masses(outcomes: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    return np.exp(-(outcomes**2) / (2.0 * scale * scale))


def _gaussian_normalizer(scale: float, reach: int) -> float:
    return float(np.sum(_gaussian_masses(np.arange(-reach, reach + 1, dtype=np.float64), scale)))
