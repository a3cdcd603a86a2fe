"""Guarantees as ceilings: what the loss tree of a plan allows, in the currency in which its parts are exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from incrowd.core import loss as losses
from tests.replay.laws import Divergence


@dataclass(frozen=True)
class Ceiling:
    """The ε, ρ and δ that a transcript may lose; infinite where the tree says nothing in that currency."""

    epsilon: float
    rho: float
    delta: float = 0.0

    def __add__(self, other: Ceiling) -> Ceiling:
        return Ceiling(self.epsilon + other.epsilon, self.rho + other.rho, self.delta + other.delta)


def ceiling(loss: losses.Loss) -> Ceiling:
    """Return what a loss allows.

    A secret sample allows its inner loss, because the transcript's sample has every row; the best of several runs
    allows one run.  What both amplify or compose is the accountant's, and has tests of its own.
    """
    match loss:
        case losses.Pure(epsilon):
            return _pure(float(epsilon))
        case losses.Approximate(epsilon, delta):
            return Ceiling(float(epsilon), math.inf if epsilon else 0.0, float(delta))
        case losses.ZeroConcentrated(rho) | losses.GaussianRounds(rho):
            return Ceiling(math.inf, float(rho))
        case losses.Laplace(scale, sensitivity):
            return _pure(float(sensitivity / scale))
        case losses.Gaussian(scale, sensitivity):
            return Ceiling(math.inf, float(sensitivity**2 / (2 * scale**2)))
        case losses.Sequence(parts):
            return sum(map(ceiling, parts), Ceiling(0.0, 0.0))
        case losses.Parallel(parts):
            every = [ceiling(part) for part in parts]
            return Ceiling(*(max(values) for values in zip(*((c.epsilon, c.rho, c.delta) for c in every), strict=True)))
        case losses.Grouped(size, inner):
            one = ceiling(inner)
            return Ceiling(size * one.epsilon, size**2 * one.rho, math.inf if one.delta else 0.0)
        case losses.Sampled(_, inner) | losses.BestRun(_, inner):
            return ceiling(inner)
    raise AssertionError(f"no transcript can be compared with {loss}")


def _pure(epsilon: float) -> Ceiling:
    return Ceiling(epsilon, epsilon**2 / 2)


def comparable(loss: losses.Loss) -> bool:
    """Whether a loss is one of mechanisms: no property of tables, and no crowd, whose sample is its only noise."""
    return not any(isinstance(part, losses.Syntactic | losses.Crowd) for part in losses.walk(loss))


def ratio(lost: Divergence, allowed: Ceiling) -> float:
    """Return which part of what is allowed was lost: in ε where the guarantee is pure, else in ρ; and in δ."""
    parts = [_part(lost.delta, allowed.delta)]
    if not math.isinf(allowed.epsilon) and not math.isinf(lost.epsilon):
        parts.append(_part(lost.epsilon, allowed.epsilon))
    elif not math.isinf(allowed.rho):
        parts.append(_part(lost.rho, allowed.rho))
    else:
        parts.append(_part(lost.delta + gaussian_delta(lost.rho, allowed.epsilon), allowed.delta))
    return max(parts)


def _part(lost: float, allowed: float) -> float:
    if not lost:
        return 0.0
    return lost / allowed if allowed else math.inf


def gaussian_delta(rho: float, epsilon: float) -> float:
    """Return the δ of Gaussian noise at ε (Balle & Wang 2018), which integer noise has but for rounding."""
    if not rho:
        return 0.0
    move, normal = math.sqrt(2 * rho), NormalDist()
    return normal.cdf(move / 2 - epsilon / move) - math.exp(epsilon) * normal.cdf(-move / 2 - epsilon / move)
