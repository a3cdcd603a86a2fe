"""Noise: the δ of stated guarantees, of integer noise and of concentrated losses, from their laws written out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from incrowd.core.loss import Approximate, Grouped, Laplace, Loss, Parallel, Pure, Sampled, Sequence
from incrowd.core.loss import stated as exactly_stated
from incrowd.verifier.slow_accountant.crowds import TOLERANCE

_WIDEST = 100_000  # the widest Gaussian noise, and the widest step of Laplace noise, whose law is written out
_MOST = 100_000  # pairs of losses that are written out; beyond, the check says that it could not be done
_DIGITS = 12  # losses equal to twelve digits are one: a check tolerates one part in a million


@dataclass(frozen=True)
class LossSpread:
    """Losses with the mass that "with you" has at each, and the mass where "without you" has none."""

    masses: tuple[tuple[float, float], ...]
    infinite: float = 0.0

    def beside(self, other: LossSpread) -> LossSpread | None:
        """Return the losses of both together, which are independent; None if they are too many."""
        if len(self.masses) * len(other.masses) > _MOST:
            return None
        sums: dict[float, float] = {}
        for (one, here), (two, there) in product(self.masses, other.masses):
            loss = round(one + two, _DIGITS)
            sums[loss] = sums.get(loss, 0.0) + here * there
        return LossSpread(tuple(sums.items()), self.infinite + other.infinite - self.infinite * other.infinite)

    def delta(self, epsilon: float) -> float:
        """Return δ at ε: by how much "with you" exceeds e^ε times "without you"."""
        return self.infinite + math.fsum(mass * -math.expm1(epsilon - x) for x, mass in self.masses if x > epsilon)


NOTHING = LossSpread(((0.0, 1.0),))


def spread_of(loss: Loss) -> LossSpread | None:
    """Return the losses of a stated guarantee or of Laplace noise, at their worst; None for anything else.

    A stated (ε, δ) is at worst everything with chance δ, else one bit that is right with chance e^ε/(1 + e^ε).

    >>> spread_of(Pure(Fraction(0))).delta(0.0)
    0.0
    """
    match loss:
        case Laplace(scale, sensitivity) if 1 < sensitivity <= _WIDEST:
            fall, end = math.exp(-float(1 / scale)), sensitivity
            inside = [(1.0 - fall) / (1.0 + fall) * fall ** (end - z) for z in range(1, end)]
            masses = [fall**end / (1.0 + fall), *inside, 1.0 / (1.0 + fall)]
            return LossSpread(tuple((float((2 * z - end) / scale), mass) for z, mass in enumerate(masses)))
    guarantee = stated(loss)
    if guarantee is None or isinstance(loss, Sequence | Parallel):
        return None
    epsilon, rest = float(guarantee.epsilon), 1.0 - float(guarantee.delta)
    right = 1.0 / (1.0 + math.exp(-epsilon))
    return LossSpread(((epsilon, rest * right), (-epsilon, rest * (1.0 - right))), float(guarantee.delta))


def stated(loss: Loss) -> Approximate | None:
    """Return the (ε, δ) of a loss that is made of guarantees; None if some part has a curve instead.

    As `core.loss` defines it; on a secret sample ε also becomes ln(1 + rate·(e^ε − 1)).

    >>> stated(Sequence((Pure(Fraction(1, 10)),) * 10)).epsilon
    Fraction(1, 1)
    """
    return exactly_stated(_amplified_parts(loss))


def _amplified_parts(loss: Loss) -> Loss:
    """Return the loss with each ε-private part on a secret sample as the ε-private loss that it amounts to."""
    match loss:
        case Sampled(rate, inner) if (on_sample := stated(inner)) is not None and not on_sample.delta:
            return Pure(_amplified(on_sample.epsilon, rate))
        case Grouped(size, inner):
            return Grouped(size, _amplified_parts(inner))
        case Sequence(parts):
            return Sequence(tuple(map(_amplified_parts, parts)))
        case Parallel(parts):
            return Parallel(tuple(map(_amplified_parts, parts)))
    return loss


def stated_delta(guarantee: Approximate, epsilon: Fraction) -> float:
    """Return δ at ε of a stated guarantee: its own from its own ε on.

    >>> stated_delta(Approximate(Fraction(1), Fraction(1, 100)), Fraction(2))
    0.01
    """
    if epsilon * Fraction(TOLERANCE) >= guarantee.epsilon:
        return float(guarantee.delta)
    spread = spread_of(guarantee)
    return 1.0 if spread is None else spread.delta(float(epsilon))


def gaussian_delta(scale: Fraction, sensitivity: int, epsilon: float) -> float | None:
    """Return δ of integer Gaussian noise on a number that moves by `sensitivity`; None if its law is too wide.

    >>> f"{gaussian_delta(Fraction(5), 1, 1.0):.4e}"
    '1.8293e-08'
    """
    if scale > _WIDEST or sensitivity > _WIDEST * scale:
        return None
    width, reach = 2.0 * float(scale) ** 2, math.ceil(40.0 * float(scale)) + 2 + sensitivity
    outcomes = np.arange(-reach, reach + 1, dtype=np.float64)
    law, moved = np.exp(-(outcomes**2) / width), np.exp(-((outcomes - sensitivity) ** 2) / width)
    over = moved - math.exp(min(epsilon, 700.0)) * law
    return float(np.sum(np.maximum(0.0, over)) / np.sum(law))


def rounds_delta(rho: Fraction, scale: Fraction, moved: int, epsilon: float) -> float:
    """Return a δ of integer Gaussian noise in rounds fixed in advance: as rounded continuous noise, or concentrated.

    Rounding takes a variance τ² of the noise, and is off by factors; every τ² of a fine list is tried.  Continuous
    noise that moves by μ has δ = ∫ φ(t + s)(1 − e^(−μs)) ds over s > 0, t = ε/μ − μ/2.

    >>> f"{rounds_delta(Fraction(1, 8), Fraction(1000), 4, 3.0):.3e}"
    '3.401e-10'
    """
    best = concentrated_delta(rho, epsilon)
    ahead, step = np.linspace(0.0, 12.0, 60_001, retstep=True)
    for smoothing in np.arange(0.25, 3.01, 0.25):
        left = float(scale) ** 2 - float(smoothing)
        off = 2.0 * sum(math.exp(-2.0 * math.pi**2 * float(smoothing) * j * j) for j in range(1, 4))
        factor = moved * (math.log1p(off) - math.log1p(-off)) if off < 1.0 else math.inf
        if left <= 0.0 or factor > 1.0 or rho == 0:
            continue
        move = math.sqrt(2.0 * float(rho) * float(scale) ** 2 / left)
        start = (epsilon - factor) / move - move / 2.0
        heights = np.exp(-((start + ahead) ** 2) / 2.0) * -np.expm1(-move * ahead)
        area = float(heights.sum() - heights[0] / 2.0) * float(step) / math.sqrt(2.0 * math.pi)
        if start > -2.0:
            best = min(best, math.exp(factor) * area)
    return best


def concentrated_delta(rho: Fraction, epsilon: float) -> float:
    """Return a δ of ρ-zero-concentrated privacy at ε: the least over orders of Rényi divergence.

    Source: Canonne, Kamath & Steinke 2020, Proposition 12, tried on a grid that is then refined.

    >>> concentrated_delta(Fraction(1, 10), 3.0) < 1e-4
    True
    """
    if rho == 0:
        return 0.0
    low, high, best = 1e-9, 1e12, 0.0
    for _ in range(4):
        above = np.geomspace(low, high, 20_001)
        logs = above * ((1.0 + above) * float(rho) - epsilon) - np.log(above) - (1.0 + above) * np.log1p(1.0 / above)
        place = int(np.argmin(logs))
        best = float(logs[place])
        low, high = float(above[max(0, place - 1)]), float(above[min(len(above) - 1, place + 1)])
    return math.exp(min(0.0, best))


def best_run_delta(rho: Fraction, gamma: Fraction, epsilon: float) -> float:
    """Return a δ at ε of the best of K runs that are ρ-zero-concentrated with their scores, K of the logarithmic law.

    Source: Papernot & Steinke 2022, Theorem 2 with η = 0, its second order tried on a grid that is then refined; E[K]
    is the sum of the (1 − γ)^k over ln(1/γ).

    >>> best_run_delta(Fraction(1, 50), Fraction(7, 100), 1.42) < 1e-6
    True
    """
    if rho == 0:
        return 0.0
    law, low, high, least = -math.log(float(gamma)), 1.0, 1e12, math.inf
    for _ in range(4):
        orders = np.geomspace(low, high, 20_001)
        costs = (orders - 1.0) * float(rho) + law / orders
        place = int(np.argmin(costs))
        least = float(costs[place])
        low, high = float(orders[max(0, place - 1)]), float(orders[min(len(orders) - 1, place + 1)])
    stay = 1.0 - float(gamma)
    mean = stay / (1.0 - stay) / law
    return min(1.0, mean * concentrated_delta(rho, epsilon - least))


def _amplified(epsilon: Fraction, rate: Fraction) -> Fraction:
    inside = float(epsilon)
    return Fraction(math.log1p(float(rate) * math.expm1(inside))) if inside < 700.0 else epsilon


_POINTS = 2_000_000  # numbers added up, 16 MB; wide noise is added up by steps
_SCALES = 160.0  # e^(−160) of the weight lies beyond
_DEVIATIONS = 40.0  # e^(−800) of the noise lies beyond


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


def cube_tail(widths: list[int] | tuple[int, ...], spread: tuple[int, Fraction], place: int, least: int) -> float:
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
