"""How likely the noise of one statistic reaches a number, summed up directly."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from incrowd.workflows.forms.checks import whole

_POINTS = 2_000_000
_SCALES = 160.0
_DEVIATIONS = 40.0


def chance_of(noise: Mapping[str, Any], place: int, least: int) -> float:
    """Return P[x ≥ least] for the noise of the statistic at a place, least ≥ 1; nearly, where the noise is wide.

    >>> noise = {"noise": "integer Laplace", "scale": "1", "widths": [1]}
    >>> round(chance_of(noise, 0, 14) * 1e6, 3)
    0.608
    """
    if noise["noise"] == "integer Gaussian":
        return _gaussian(float(Fraction(str(noise["scales"][place]))), least)
    if noise["noise"] == "integer Laplace":
        inverse = float(1 / Fraction(str(noise["scale"])))
        return float(np.exp(-least * inverse - np.log1p(np.exp(-inverse))))
    widths = [whole(width) for width in noise["widths"]]
    return _cube(widths, (whole(noise["fine"]), float(Fraction(str(noise["scale"])))), place, least)


def _gaussian(scale: float, least: int) -> float:
    """Return the share of the weights e^(−x² / (2 scale²)) from `least` on, by steps far below the scale."""
    end = _DEVIATIONS * max(scale, 1.0)
    step = max(1.0, float(np.floor(2.0 * end / _POINTS)))
    middle = (step - 1.0) / 2.0
    above = least + np.arange(0.0, end, step) + middle
    half = 1.0 + np.arange(0.0, end, step) + middle
    sums = [float(np.exp(-((points / scale) ** 2) / 2.0).sum()) * step for points in (above, half)]
    return sums[0] / (1.0 + 2.0 * sums[1])


def _cube(widths: list[int], spread: tuple[int, float], place: int, least: int) -> float:
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
