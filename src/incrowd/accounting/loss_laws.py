"""Loss laws: the privacy loss of one noisy answer, as finitely many losses with their masses, rounded up.

A mechanism is bounded by a pair of laws: of the answer without a unit (`base`), and with it (`moved`).  A `NoisePair`
holds them by groups of outcomes.  Composition and sampling only need the law of the loss ln(first/second) under the
first, for removing and for adding the unit; raising a loss of it, or moving mass to a larger loss, can only raise δ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from incrowd.core.loss import Approximate, Gaussian, GaussianRounds, Laplace, Pure
from incrowd.core.rounding import float_up

Floats = NDArray[np.float64]
Noise = Pure | Approximate | Laplace | Gaussian | GaussianRounds

_WRITTEN, _STEPS = 2**9, 2**16
"""The largest scale of integer Gaussian noise, and the most steps of Laplace noise, that are written out."""
_REACH = 16.0  # Gaussian noise is written out up to here, in scales; `_BEYOND` accounts for the rest
_BEYOND = 1e-54
"""More than the mass of Gaussian noise beyond `_REACH` scales on both sides, e^(−128) each, for both laws of a pair."""
# groups of outcomes per scale: each group is charged at its largest loss, so fewer is sound and costs more
_PER_SCALE = 256
_STEEPEST = 100.0  # noise a hundred times narrower than what it hides has no useful ε; `None` leaves it to other rules
_LARGE = 600.0  # e^600 is a float, e^710 is not; here rate·e^ratio dwarfs 1 unless the rate is below 10⁻²⁰⁰
SHADE = 1e-14
"""Relative to itself, a loss computed here is within this of the truth."""
SMOOTHINGS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
"""Variances τ² of the rounding by which continuous noise becomes integer noise; any is sound."""


@dataclass(frozen=True, eq=False)
class NoisePair:
    """Groups of outcomes: ln of their mass without the unit, and ln(moved/base) of the group, at least and at most.

    `alone` is the mass of `moved` where `base` has none; `margin` is how much the true laws may be off, as a factor.
    """

    log_base: Floats
    ratio: Floats
    least: Floats
    most: Floats
    alone: float = 0.0
    beyond: float = 0.0
    margin: float = 0.0


@dataclass(frozen=True, eq=False)
class LossLaw:
    """ln of masses, the loss of each group, at least and at most; the mass of an infinite loss; a margin of factors."""

    log_masses: Floats
    losses: Floats
    least: Floats
    most: Floats
    infinite: float
    margin: float


@lru_cache(maxsize=64)
def pair_of(noise: Noise) -> NoisePair | None:
    """Return the pair of a noisy answer; None if it cannot be written down, since the noise is too narrow."""
    match noise:
        case Pure(epsilon):
            return _response(float_up(epsilon), 0.0)
        case Approximate(epsilon, delta):
            return _response(float_up(epsilon), float_up(delta))
        case Laplace(scale, sensitivity):
            return _laplace(float(scale), sensitivity)
        case Gaussian(scale, sensitivity):
            if sensitivity > _STEEPEST * scale:
                return None
            if scale <= _WRITTEN:
                return _integer_gaussian(float(scale), sensitivity)
            return smoothed(Fraction(sensitivity**2) / scale**2, scale, 1)
        case GaussianRounds(rho, scale, moved):
            return smoothed(2 * rho, scale, moved)


def smoothed(squares: Fraction, scale: Fraction, moved: int) -> NoisePair | None:
    """Return the pair of continuous Gaussian noise that stands for integer noise, with the margin of that.

    See `concentrated.rounds_delta` for the theorem.  Here τ² = 2, whose margin is below 10⁻¹⁶ a moved number.
    """
    variance = scale**2 - 2
    if variance <= 0 or squares * scale**2 > _STEEPEST**2 * variance:
        return None
    shift = math.sqrt(float_up(squares * scale**2 / variance))
    return _continuous(shift, moved * smoothing_margin(2.0))


def smoothing_margin(variance: float) -> float:
    """Return ln((1 + κ)/(1 − κ)), rounded up, for κ = 2 Σ_j e^(−2π²τ²j²) over j ≥ 1.

    >>> f"{smoothing_margin(1.0):.2e}"
    '1.07e-08'
    """
    kappa = 2.0 * math.exp(-2.0 * math.pi**2 * variance) * (1.0 + 1e-9)  # the other terms are below 1e-12 of the first
    return 2.0 * math.atanh(kappa) * (1.0 + 1e-12)


def law_of(noise: Noise, rate: float | None, *, added: bool, replaced: bool) -> LossLaw | None:
    """Return the law of the loss where the unit is removed, or added; at a `rate`, on a secret Poisson sample.

    A unit that is added or removed is in the sample with chance `rate`: (1 − rate)·base + rate·moved against base.  Of
    a unit that is replaced nothing is assumed but how the answers with it and with the other differ: whoever is told
    whether it was sampled sees `base` against `moved` with chance `rate`, and else nothing.
    """
    pair = pair_of(noise)
    if pair is None:
        return None
    if rate is None or replaced:
        law = _plain(pair, added)
        return law if rate is None else _erased(law, rate)
    return _mixed(pair, rate, added)


def _plain(pair: NoisePair, added: bool) -> LossLaw:
    seen = np.isfinite(pair.ratio)
    log_base, ratio, least, most = (item[seen] for item in (pair.log_base, pair.ratio, pair.least, pair.most))
    if added:
        hidden = float(np.exp(pair.log_base[~seen]).sum())
        return LossLaw(log_base, -ratio, -most, -least, hidden + pair.beyond, pair.margin)
    return LossLaw(log_base + ratio, ratio, least, most, pair.alone + pair.beyond, pair.margin)


def _erased(law: LossLaw, rate: float) -> LossLaw:
    nothing = np.zeros(1)
    return LossLaw(
        np.append(law.log_masses + math.log(rate), math.log1p(-rate)),
        np.append(law.losses, nothing),
        np.append(law.least, nothing),
        np.append(law.most, nothing),
        law.infinite * rate,
        law.margin,
    )


def _mixed(pair: NoisePair, rate: float, added: bool) -> LossLaw:
    ratio, least, most = (on_sample(item, rate) for item in (pair.ratio, pair.least, pair.most))
    if added:
        return LossLaw(pair.log_base, -ratio, -most, -least, pair.beyond, pair.margin)
    return LossLaw(pair.log_base + ratio, ratio, least, most, rate * pair.alone + pair.beyond, pair.margin)


def on_sample(ratio: Floats, rate: float) -> Floats:
    """Return ln(1 − rate + rate·e^ratio).

    >>> on_sample(np.array([-np.inf, 0.0]), 0.5).round(4).tolist()
    [-0.6931, 0.0]
    """
    small = np.log1p(rate * np.expm1(np.minimum(ratio, _LARGE)))
    return np.where(ratio > _LARGE, ratio + math.log(rate), small)


def _response(epsilon: float, delta: float) -> NoisePair:
    """Return the worst pair of an (ε, δ) guarantee (Kairouz, Oh & Viswanath 2015)."""
    rest = math.log1p(-delta) if delta < 1.0 else -math.inf
    right, wrong = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    hidden = [(math.log(delta), -math.inf)] if delta else []
    seen = [(rest + right, -epsilon), (rest + wrong, epsilon)] if delta < 1.0 else []
    table = np.array([*hidden, *seen]).T
    return NoisePair(table[0], table[1], table[1], table[1], alone=delta)


def _laplace(scale: float, sensitivity: int) -> NoisePair:
    """Return integer Laplace noise: one group below 0, one from the sensitivity on, and groups between."""
    inverse, end = 1.0 / scale, float(sensitivity)
    width = max(1, -(-sensitivity // _STEPS))
    starts = np.arange(1.0, end, width)
    sizes = np.minimum(starts + width, end) - starts
    tail = -math.log1p(math.exp(-inverse))
    inside = -inverse * starts + np.log(-np.expm1(-inverse * sizes)) + tail
    log_base = np.concatenate([[tail], inside, [tail - inverse * end]])
    least = np.concatenate([[-end], 2.0 * starts - end, [end]]) * inverse
    most = np.concatenate([[-end], 2.0 * (starts + sizes - 1.0) - end, [end * (1.0 + 1e-15)]]) * inverse
    return NoisePair(log_base, (least + most) / 2.0, least, most)


def _integer_gaussian(scale: float, sensitivity: int) -> NoisePair:
    reach = math.ceil(_REACH * scale)
    outcomes = np.arange(-reach, reach + sensitivity + 1, dtype=np.float64)
    width = 2.0 * scale * scale
    logs = -(outcomes**2) / width
    total = math.log(float(np.exp(logs).sum()))
    ratio = (2.0 * outcomes - sensitivity) * sensitivity / width
    return NoisePair(logs - total, ratio, ratio, ratio, beyond=_BEYOND)


def _continuous(shift: float, margin: float) -> NoisePair:
    """Return Gaussian noise of scale 1 that moves by `shift`, in groups of 1/256.

    Masses by Gauss's rule with 8 nodes, whose error is below 10⁻³⁰ of them at this width.
    """
    edges = np.arange(-math.ceil(_REACH), math.ceil(_REACH + shift) + 1.0 / _PER_SCALE, 1.0 / _PER_SCALE)
    nodes, weights = np.polynomial.legendre.leggauss(8)
    middle = (edges[:-1] + edges[1:]) / 2.0
    points = middle[:, None] + nodes[None, :] / (2.0 * _PER_SCALE)
    drop = -(points**2) / 2.0 + middle[:, None] ** 2 / 2.0
    inside = np.exp(drop) * weights[None, :]
    base = inside.sum(axis=1)
    tilt = shift * (points - middle[:, None])
    more = (inside * np.expm1(tilt)).sum(axis=1) / base
    ratio = shift * middle - shift * shift / 2.0 + np.log1p(more)
    bounds = shift * edges - shift * shift / 2.0
    log_base = -(middle**2) / 2.0 + np.log(base / (2.0 * _PER_SCALE)) - math.log(2.0 * math.pi) / 2.0
    return NoisePair(log_base, ratio, bounds[:-1], bounds[1:], beyond=_BEYOND, margin=margin)
