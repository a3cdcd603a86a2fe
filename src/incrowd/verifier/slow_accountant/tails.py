"""Tails: how likely integer noise reaches a number, summed up directly; thresholds and errors rest on it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

_POINTS = 2_000_000
_SCALES = 160.0
_DEVIATIONS = 40.0


def laplace_tail(scale: Fraction, least: int) -> float:
    """Return P[z ≥ least] for integer Laplace noise; 1 where that is not above 0.

    >>> round(laplace_tail(Fraction(1), 14) * 1e6, 3)
    0.608
    """
    inverse = float(1 / scale)
    return float(np.exp(-least * inverse - np.log1p(np.exp(-inverse)))) if least > 0 else 1.0


def gaussian_tail(scale: Fraction, least: int) -> float:
    """Return P[z ≥ least] for integer Gaussian noise, nearly where it is wide; 1 where that is not above 0.

    >>> f"{gaussian_tail(Fraction(10), 30):.4f}"
    '0.0016'
    """
    if least <= 0:
        return 1.0
    width = float(scale)
    end = _DEVIATIONS * max(width, 1.0)
    step = max(1.0, float(np.floor(2.0 * end / _POINTS)))
    middle = (step - 1.0) / 2.0
    above = least + np.arange(0.0, end, step) + middle
    half = 1.0 + np.arange(0.0, end, step) + middle
    sums = [float(np.exp(-((points / width) ** 2) / 2.0).sum()) * step for points in (above, half)]
    return sums[0] / (1.0 + 2.0 * sums[1])


def cube_tail(widths: Sequence[int], spread: tuple[int, Fraction], place: int, least: int) -> float:
    """Return P[x ≥ least], least ≥ 1, for one coordinate of cube noise with these widths, its fineness and its scale.

    It is Σ_J P[J] · P[x ≥ least | x uniform in the box of J], with P[J] ∝ |box of J| · e^(−J / scale).

    >>> f"{cube_tail([1], (1, Fraction(2)), 0, 5):.4f}" == f"{laplace_tail(Fraction(2), 5):.4f}"
    True
    """
    fine, scale = spread[0], float(spread[1])
    end = (2.0 * len(widths) + _SCALES) * max(scale, 1.0)
    step = max(1.0, float(np.ceil(end / _POINTS)))
    radius = np.arange(0.0, end, step) + np.floor((step - 1.0) / 2.0)
    halves = [np.floor(radius * width / fine) for width in widths]
    logs = np.sum([np.log(2.0 * half + 1.0) for half in halves], axis=0) - radius / scale
    weights = np.exp(logs - logs.max())
    inside = np.maximum(halves[place] - least + 1.0, 0.0) / (2.0 * halves[place] + 1.0)
    return float(weights @ inside / weights.sum())
