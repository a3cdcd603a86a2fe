"""Laws of noise, written out: how often it strays, and what it costs; nothing here comes from `incrowd.accounting`."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.steps.noise import Law
from incrowd.core.steps.samples import moved
from incrowd.core.unit import Unit

TOLERANCE = 1 + 1e-6  # this second route computes with floats, and differences of small numbers cancel
WIDEST = 100_000  # of wider Gaussian noise the law is too long to write out
_NARROWEST = 1e-6
_MISSED = 0.05


def strays(law: Law, scale: Fraction, within: int) -> bool:
    """Whether more than 5 % of noisy counts lie further from the truth than `within`.

    >>> strays(Law.LAPLACE, Fraction(1), 3), strays(Law.LAPLACE, Fraction(1), 2)
    (False, True)
    """
    return tail(law, scale, within + 1) * 2.0 > _MISSED * TOLERANCE


def tail(law: Law, scale: Fraction, least: int) -> float:
    """Return the chance that noise is `least` or more; no less than that where `least` is 0 or below."""
    if least <= 0 or (law is Law.GAUSSIAN and scale > WIDEST):
        return 1.0
    if law is Law.LAPLACE:
        return _fall(least / scale) / (1.0 + _fall(1 / scale))
    width = max(float(scale), _NARROWEST)
    reach = math.ceil(40.0 * width) + 2
    above, around = np.arange(least, least + reach, dtype=np.float64), np.arange(-reach, reach + 1, dtype=np.float64)
    return float(np.sum(_bell(above, width)) / np.sum(_bell(around, width)))


def noise_delta(law: Law, scale: Fraction, unit: Unit, epsilon: Fraction) -> float:
    """Return the δ at ε of noise on the counts that a unit moves, if every row is read.

    >>> noise_delta(Law.LAPLACE, Fraction(2), Unit(), Fraction(1, 2)), noise_delta(Law.LAPLACE, Fraction(2), Unit(), 0)
    (0.0, 1.0)
    """
    rows, moves = unit.max_rows, moved(unit)
    if law is Law.LAPLACE:
        return 0.0 if rows * moves / scale <= epsilon else 1.0
    if not _NARROWEST <= scale <= WIDEST:
        return 1.0
    width, most = float(scale), float(min(Fraction(epsilon), Fraction(700)))
    if rows * moves == 1:
        return gaussian_delta(width, most)
    return concentrated_delta(rows**2 * moves / (2.0 * width**2), most)


def gaussian_delta(scale: float, epsilon: float) -> float:
    """Return δ of integer Gaussian noise on a count that moves by 1, from its law written out.

    >>> f"{gaussian_delta(5.0, 1.0):.4e}"
    '1.8293e-08'
    """
    reach = math.ceil(40.0 * scale) + 2
    outcomes = np.arange(-reach, reach + 1, dtype=np.float64)
    law, shifted = _bell(outcomes, scale), _bell(outcomes - 1.0, scale)
    over = shifted - math.exp(min(epsilon, 700.0)) * law
    return float(np.sum(np.maximum(0.0, over)) / np.sum(law))


def concentrated_delta(rho: float, epsilon: float) -> float:
    """Return a δ of ρ-zero-concentrated privacy at ε: the least over orders of Rényi divergence.

    Source: Canonne, Kamath & Steinke 2020, Proposition 12, tried on a grid that is then refined.

    >>> concentrated_delta(0.1, 3.0) < 1e-4
    True
    """
    low, high = 1e-6, 1e9
    for _ in range(3):
        above = np.geomspace(low, high, 20_001)
        logs = (
            above * ((1.0 + above) * rho - epsilon) - np.log(above) + (1.0 + above) * (np.log(above) - np.log1p(above))
        )
        best = int(np.argmin(logs))
        low, high = float(above[max(0, best - 1)]), float(above[min(len(above) - 1, best + 1)])
    return math.exp(min(0.0, float(logs[best])))


def _fall(times: Fraction) -> float:
    return math.exp(-float(min(times, Fraction(1000))))


def _bell(outcomes: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    heights: NDArray[np.float64] = np.exp(-(outcomes**2) / (2.0 * scale * scale))
    return heights
