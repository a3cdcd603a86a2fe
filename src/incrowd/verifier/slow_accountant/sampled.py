"""Sampled: the δ of many alike answers with integer Gaussian noise, each on a fresh secret sample.

The losses of one answer are written out, outcome by outcome, and each is put on the two points of a grid beside it, so
that both laws keep their mass: no δ becomes smaller by that.  Answers add up; what is farther out than the grid counts
as lost altogether.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

_WIDEST = 100_000
_POINTS = 2**18
_FAR = 10.0

Floats = NDArray[np.float64]


def sampled_delta(rate: Fraction, noise: tuple[Fraction, int], times: int, epsilon: float) -> float | None:
    """Return δ at ε of so many answers that move by a sensitivity, with noise of a scale; None if the law is too wide.

    The worse of two: the row is among the people of the first table, or of the second.

    >>> f"{sampled_delta(Fraction(1, 10), (Fraction(64), 32), 88, 2.6):.1e}"
    '5...e-07'
    """
    scale, sensitivity = noise
    if scale > _WIDEST or sensitivity > _FAR * scale:
        return None
    reach = math.ceil(_FAR * float(scale)) + sensitivity
    outcomes = np.arange(-reach, reach + 1, dtype=np.float64)
    law, moved = (np.exp(-((outcomes - mean) ** 2) / (2.0 * float(scale) ** 2)) for mean in (0.0, float(sensitivity)))
    without = law / law.sum()
    with_row = (1.0 - float(rate)) * without + float(rate) * moved / law.sum()
    losses = np.log(with_row) - np.log(without)
    return max(_composed(losses, with_row, times, epsilon), _composed(-losses, without, times, epsilon))


def _composed(losses: Floats, masses: Floats, times: int, epsilon: float) -> float:
    """Return δ of answers whose losses have these masses."""
    width = times * float(np.ptp(losses)) / _POINTS
    first = math.floor(float(losses.min()) / width)
    places = np.floor(losses / width).astype(np.int64)
    above = np.expm1(-(losses - places * width)) / math.expm1(-width)
    size = int(places.max()) - first + 2
    grid = np.bincount(places - first, masses * (1.0 - above), size)
    grid += np.bincount(places - first + 1, masses * above, size)
    length = times * (size - 1) + 1
    room = 2 ** (length - 1).bit_length()
    whole = np.maximum(0.0, np.fft.irfft(np.fft.rfft(grid, room) ** times, room)[:length])
    sums = (np.arange(length) + times * first) * width
    beyond = 1.0 - min(1.0, float(masses.sum())) ** times
    over = sums > epsilon
    return min(1.0, beyond + float(np.sum(whole[over] * -np.expm1(epsilon - sums[over]))))
