"""Contour: δ of many noisy answers on samples, as an integral of the exact transform of their losses.

With the loss L of all answers together and z = θ + iu, θ > 0,

    δ(ε) = E[(1 − e^(ε − L))⁺] = 1/(2π) ∫ E[e^(zL)]·e^(−zε) / (z(z + 1)) du,

since ∫ e^(−zs)(1 − e^(−s)) ds over s > 0 is 1/(z(z + 1)).  The transform of independent losses is a product, and that
of one answer a sum over its outcomes: no loss is rounded to a grid.  θ is where the integrand is least on the real
axis; from there it falls like a normal density, and the trapezoidal rule gives it to ten digits.
Source: Zhu, Dong & Wang 2022 (characteristic functions).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_FAR = 14.0  # scales: e^(−98) of the noise lies beyond, far below the tolerance of a check
# outcomes per scale of wide noise: the sum of a smooth law over a grid converges faster than any power
_PER_SCALE = 200
_WIDTH = 60.0  # deviations between two copies of the law that the grid of the integral makes: e^(−450) of it overlaps
# points at a time, before an end may be seen, and at most: then nothing is said
_CHUNK, _LONG, _MOST = 64, 2**11, 2**17
_WORK = 1e8  # points times losses: bounds the time; beyond, the check says that it could not be done
_NEGLIGIBLE = 1e-9  # of the integrand's top; a check tolerates one part in a million


@dataclass(frozen=True)
class SampledGaussian:
    """So many answers, each on a fresh sample of a rate, with integer Gaussian noise of a scale on a move."""

    rate: Fraction
    scale: Fraction
    move: int
    times: int


def sampled_delta(answers: Sequence[SampledGaussian], epsilon: float) -> float | None:
    """Return δ at ε where rows are added or removed; None where the integral does not settle, as for few answers.

    The worse of two: the row is among the people of the first table, or of the second.

    >>> f"{sampled_delta([SampledGaussian(Fraction(1, 10), Fraction(64), 32, 88)], 2.6):.4e}"
    '5.1246e-07'
    """
    sides = [[(*_losses(answer, added), answer.times) for answer in answers] for added in (False, True)]
    again = max(3.0 * math.pi * float(answer.scale**2 / answer.move) for answer in answers)
    deltas = [_integral(side, epsilon, again) for side in sides]
    settled = [delta for delta in deltas if delta is not None]
    return max(settled) if len(settled) == len(sides) else None


def _losses(answer: SampledGaussian, added: bool) -> tuple[Floats, Floats]:
    """Return the losses of one answer and their masses; every m-th outcome stands for m where noise is wide."""
    scale, move, rate = float(answer.scale), float(answer.move), float(answer.rate)
    stride = max(1, math.floor(scale / _PER_SCALE))
    reach = math.ceil(_FAR * scale / stride)
    more = math.ceil(move / stride)
    outcomes = np.arange(-reach, reach + more + 1, dtype=np.float64) * stride
    law = np.exp(-((outcomes / scale) ** 2) / 2.0)
    law /= law.sum()
    losses = np.log1p(rate * np.expm1(np.minimum(700.0, (outcomes - move / 2.0) * move / scale**2)))
    return (-losses, law) if added else (losses, law * np.exp(losses))


Side = list[tuple[Floats, Floats, int]]


def _integral(side: Side, epsilon: float, again: float) -> float | None:
    """Return δ; integer outcomes can bring the integrand back, the first time before the height `again`."""
    if epsilon >= math.fsum(times * float(losses.max()) for losses, _, times in side):
        return 0.0
    tilt = _saddle(side, epsilon)
    if tilt is None:
        return None
    variance = math.fsum(times * _tilted(losses, masses, tilt)[1] for losses, masses, times in side)
    deviation = math.sqrt(variance)
    step = 2.0 * math.pi / (_WIDTH * deviation)
    top = _logs(side, np.array([tilt + 0j]), epsilon)[0].real
    total = -0.5
    for start in range(0, _MOST, _CHUNK):
        points = np.asarray(tilt + 1j * step * np.arange(start, start + _CHUNK), np.complex128)
        values = np.exp(_logs(side, points, epsilon) - top)
        total += float(values.real.sum())
        passed = start * step > again or start > _LONG
        if passed and float(np.abs(values).max()) < _NEGLIGIBLE:
            return min(1.0, total * step / math.pi * math.exp(min(0.0, top)))
        if start * sum(len(masses) for _, masses, _ in side) > _WORK:
            break
    return None


def _logs(side: Side, points: NDArray[np.complex128], epsilon: float) -> NDArray[np.complex128]:
    """Return the logarithm of the integrand."""
    logs = -points * epsilon - np.log(points) - np.log(points + 1.0)
    for losses, masses, times in side:
        largest = float(losses.max())
        transform = np.exp(points[:, None] * (losses - largest)[None, :]) @ masses
        logs = logs + times * (np.log(transform) + points * largest)
    return logs


def _tilted(losses: Floats, masses: Floats, tilt: float) -> tuple[float, float]:
    """Return mean and variance of a loss whose masses are multiplied by e^(tilt·loss)."""
    weights = masses * np.exp(tilt * (losses - losses.max()))
    weights /= weights.sum()
    mean = float(weights @ losses)
    return mean, float(weights @ (losses - mean) ** 2)


def _saddle(side: Side, epsilon: float) -> float | None:
    """Return θ > 0 where K(θ) − θε − ln θ − ln(1 + θ) is least; None where there is none."""

    def slope(tilt: float) -> float:
        mean = math.fsum(times * _tilted(losses, masses, tilt)[0] for losses, masses, times in side)
        return mean - epsilon - 1.0 / tilt - 1.0 / (1.0 + tilt)

    high = 1e-6
    while slope(high) < 0.0:
        high *= 2.0
        if high > 1e15:
            return None
    low = high / 2.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return high
