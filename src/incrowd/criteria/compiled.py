"""Compiled: a kernel for the distances of many histograms and for their largest close parts; needs Numba."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Codes
from incrowd.criteria.groups import Histograms, PerGroup

Kernel = Callable[[NDArray[np.float64], NDArray[np.int64], Codes, float, int], PerGroup]


def kernel() -> Kernel | None:
    """Return the kernel where Numba is loaded already: loading it takes longer than most work here."""
    return _compiled() if "numba" in sys.modules else None


@cache
def _compiled() -> Kernel:
    compiled: Kernel = importlib.import_module("numba").njit(cache=True, nogil=True)(shortfalls)
    return compiled


def compiled_distances(groups: Histograms, lifts: tuple[Codes, ...] = ()) -> PerGroup | None:
    """Return the mean over the levels of each group's equal distance, or None where nothing is compiled."""
    loop: Any = kernel() if groups.levels == 1 else None
    return None if loop is None else loop(groups.rows, groups.totals, _stacked(groups, lifts), 0.0, 0)


def compiled_inverses(groups: Histograms, lifts: tuple[Codes, ...], t: float, rounds: int) -> PerGroup | None:
    """Return one over a bound of the rows of each group's largest close part, or None where nothing is compiled."""
    loop: Any = kernel() if groups.levels == 1 else None
    return None if loop is None else loop(groups.rows, groups.totals, _stacked(groups, lifts), t, rounds)


def _stacked(groups: Histograms, lifts: tuple[Codes, ...]) -> Codes:
    return np.array(lifts, np.int32).reshape(len(lifts), len(groups.totals))


def shortfalls(
    rows: NDArray[np.float64], totals: NDArray[np.int64], lifts: NDArray[np.int32], t: float, rounds: int
) -> NDArray[np.float64]:
    """Return the distance of each group without rounds; otherwise x after so many of Newton's (see `largest_close`).

    Groups are walked through value by value, so that several are worked on at once.

    >>> rows, totals, lifts = np.array([[3.0, 1.0]]), np.array([4, 4]), np.zeros((0, 2), np.int32)
    >>> shortfalls(rows, totals, lifts, 0.0, 0).tolist(), shortfalls(rows, totals, lifts, 0.0, 3).tolist()
    ([0.25], [0.5])
    """
    groups, values = rows.shape
    levels, labels = 1 + len(lifts), values
    places = np.empty((len(lifts), values), np.int64)
    for level in range(len(lifts)):
        for value in range(values):
            places[level, value] = labels + lifts[level, value]
        labels = places[level].max() + 1
    shares, everyone = np.zeros(labels), max(1, totals.sum())
    here, x = np.zeros((labels, groups)), np.zeros(groups)
    for value in range(values):
        shares[value] = totals[value] / everyone / levels
        for group in range(groups):
            here[value, group] = rows[group, value] / levels
            x[group] += rows[group, value]
    for level in range(len(lifts)):
        for value in range(values):
            shares[places[level, value]] += shares[value]
            here[places[level, value]] += here[value]
    x = 1.0 / np.maximum(1.0, x)
    lack, slope = np.zeros(groups), np.zeros(groups)
    for _ in range(max(1, rounds)):
        lack[:] = 0.0
        slope[:] = 0.0
        for label in range(labels):
            share, counts = shares[label], here[label]
            for group in range(groups):
                short = share - counts[group] * x[group]
                lack[group] += max(short, 0.0)
                slope[group] += counts[group] if short > 0.0 else 0.0
        if rounds:
            for group in range(groups):
                x[group] = min(x[group] + max((lack[group] - t) / max(slope[group], 1e-300), 0.0), 2.0)
    return x if rounds else np.minimum(lack, 1.0)
