"""The least budget that meets an accuracy, and the accuracy of a noise; scales are exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from incrowd.core.loss import Gaussian, Laplace
from incrowd.core.rounding import Number, exact, float_down, float_up
from incrowd.errors import Infeasible, InvalidParameter

_DIGITS = 9


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
