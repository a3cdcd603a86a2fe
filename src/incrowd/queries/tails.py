"""Tails: how likely the noise of one statistic reaches a number, summed up directly; the second route of thresholds."""

from __future__ import annotations

import numpy as np

from incrowd.queries.steps.noise import CubeNoise, GaussianNoise, LaplaceNoise, NoiseOnSums

_POINTS = 2_000_000
_SCALES = 160.0
_DEVIATIONS = 40.0


def chance_of(noise: NoiseOnSums, place: int, least: int) -> float:
    """Return P[x ≥ least] for the noise of the statistic at a place, least ≥ 1; nearly, where the noise is wide.

    >>> from fractions import Fraction
    >>> round(chance_of(LaplaceNoise(Fraction(1), (1,), 1, Fraction(1)), 0, 14) * 1e6, 3)
    0.608
    """
    match noise:
        case GaussianNoise(scales=scales):
            return _gaussian(float(scales[place]), least)
        case LaplaceNoise(scale=scale):
            inverse = float(1 / scale)
            return float(np.exp(-least * inverse - np.log1p(np.exp(-inverse))))
        case CubeNoise(widths=widths, fine=fine, scale=scale):
            return _cube(widths, (fine, float(scale)), place, least)
    raise TypeError("the law of this noise is not known here")


def _gaussian(scale: float, least: int) -> float:
    """Return the share of the weights e^(−x² / (2 scale²)) from `least` on, by steps far below the scale."""
    end = _DEVIATIONS * max(scale, 1.0)
    step = max(1.0, float(np.floor(2.0 * end / _POINTS)))
    middle = (step - 1.0) / 2.0
    above = least + np.arange(0.0, end, step) + middle
    half = 1.0 + np.arange(0.0, end, step) + middle
    sums = [float(np.exp(-((points / scale) ** 2) / 2.0).sum()) * step for points in (above, half)]
    return sums[0] / (1.0 + 2.0 * sums[1])


def _cube(widths: tuple[int, ...], spread: tuple[int, float], place: int, least: int) -> float:
    """Return Σ_J P[J] · P[x ≥ least | x uniform in the box of J], P[J] ∝ |box of J| · e^(−J / scale)."""
    fine, scale = spread
    end = (2.0 * len(widths) + _SCALES) * max(scale, 1.0)
    step = max(1.0, np.ceil(end / _POINTS))
    radius = np.arange(0.0, end, step) + np.floor((step - 1.0) / 2.0)
    halves = [np.floor(radius * width / fine) for width in widths]
    logs = np.sum([np.log(2.0 * half + 1.0) for half in halves], axis=0) - radius / scale
    weights = np.exp(logs - logs.max())
    inside = np.maximum(halves[place] - least + 1.0, 0.0) / (2.0 * halves[place] + 1.0)
    return float(weights @ inside / weights.sum())
