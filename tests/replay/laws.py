"""Laws of the mechanisms whose outcomes a release publishes, and how far two inputs move each of them, exactly.

`Divergence` is what one mechanism loses between two inputs, given everything that came out before: the largest log
ratio of the probabilities of an outcome (`epsilon`), the ρ of zero-concentrated privacy (`rho`), and the probability of
outcomes that only one input has (`delta`).  The mechanisms of a transcript add up in each of the three.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
_NEAR, _FAR = 9, 40


@dataclass(frozen=True)
class Divergence:
    """What is lost between two inputs: log ratio, ρ, and the probability of what only one of them has."""

    epsilon: float = 0.0
    rho: float = 0.0
    delta: float = 0.0

    def __add__(self, other: Divergence) -> Divergence:
        return Divergence(self.epsilon + other.epsilon, self.rho + other.rho, self.delta + other.delta)

    @classmethod
    def total(cls, parts: Iterable[Divergence]) -> Divergence:
        """Return what several mechanisms lose one after the other."""
        return sum(parts, cls())


class Law(Protocol):
    """The law of an outcome, given an input."""

    def divergence(self, one: Numbers, other: Numbers) -> Divergence:
        """Return how far the laws of two inputs are apart."""


def moves(one: Numbers, other: Numbers) -> list[int]:
    """Return by how much each number differs, in Python's integers."""
    return [a - b for a, b in zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)]


@dataclass(frozen=True)
class LaplaceLaw:
    """Integer Laplace noise on each number: P[z] ∝ e^(−|z|/scale); log ratios of independent numbers add up."""

    scale: Fraction

    def divergence(self, one: Numbers, other: Numbers) -> Divergence:
        item = [float(abs(move) / self.scale) for move in moves(one, other) if move]
        return Divergence(math.fsum(item), math.fsum(move**2 / 2 for move in item))


@dataclass(frozen=True)
class GaussianLaw:
    """Integer Gaussian noise on each number: ρ = Δ²/(2 scale²), exactly (Canonne, Kamath & Steinke 2020)."""

    scale: Fraction

    def divergence(self, one: Numbers, other: Numbers) -> Divergence:
        square = sum(move**2 for move in moves(one, other))
        return Divergence(math.inf if square else 0.0, float(square / (2 * self.scale**2)))


@dataclass(frozen=True)
class CubeLaw:
    """Noise by the largest coordinate: the log ratio of a move v is at most ⌈fine · ‖v‖⌉ / scale, and is that at 0."""

    widths: tuple[int, ...]
    fine: int
    scale: Fraction

    def divergence(self, one: Numbers, other: Numbers) -> Divergence:
        vectors = np.array(moves(one, other), dtype=object).reshape(-1, len(self.widths))
        steps = [max(-(-self.fine * abs(x) // w) for x, w in zip(row, self.widths, strict=True)) for row in vectors]
        item = [float(step / self.scale) for step in steps]
        return Divergence(math.fsum(item), math.fsum(move**2 / 2 for move in item))


@dataclass(frozen=True)
class PolynomialLaw:
    """Noise of a polynomial tail; its scale follows from a sensitivity that two inputs need not share.

    An input is the pair of value and sensitivity.  The log ratio is extreme where the noise of either input is 0, or
    far away (`PolynomialNoise`), and the outcomes near both and out to 2^40 are looked at.
    """

    noise: Any

    def divergence(self, one: Numbers, other: Numbers) -> Divergence:
        (value, sensitivity), (value_, sensitivity_) = one.tolist(), other.tolist()
        if not sensitivity and not sensitivity_:
            return Divergence() if value == value_ else Divergence(math.inf, math.inf)
        near = {middle + step for middle in (value, value_) for step in range(-_NEAR, _NEAR + 1)}
        outcomes = near | {value + sign * 2**n for n in range(_FAR) for sign in (-1, 1)}
        losses = [self._loss(o - value, sensitivity) - self._loss(o - value_, sensitivity_) for o in outcomes]
        largest = max(map(abs, losses))
        return Divergence(largest, largest**2 / 2)

    def _loss(self, noise: int, sensitivity: Fraction) -> float:
        mass = self.noise.mass(sensitivity, noise)
        return math.log(mass.numerator) - math.log(mass.denominator) if mass else -math.inf


@dataclass(frozen=True)
class SelectionLaw:
    """One candidate of each row of scores, likelier by e for each `scale` that its score is higher.

    ρ is that of bounded range: a log ratio that varies by η over the candidates costs η²/8 (Cesar & Rogers 2021).
    `stated` is the ε that the mechanism states for itself.
    """

    scale: Fraction
    stated: Fraction
    flips: bool = False

    def divergence(self, one: Numbers, other: Numbers) -> Divergence:
        rows = zip(np.atleast_2d(one), np.atleast_2d(other), strict=True)
        return Divergence.total(self._row(a, b) for a, b in rows)

    def range(self, one: Numbers, other: Numbers) -> float:
        """Return the largest variation of the log ratio over the candidates of a row; it is never above its ε."""
        rows = zip(np.atleast_2d(one), np.atleast_2d(other), strict=True)
        return max((float(np.ptp(self._ratios(a, b))) for a, b in rows), default=0.0)

    def _row(self, one: Numbers, other: Numbers) -> Divergence:
        if np.array_equal(one, other):
            return Divergence()
        ratios = self._ratios(one, other)
        epsilon, width = float(np.abs(ratios).max()), float(np.ptp(ratios))
        return Divergence(epsilon, epsilon**2 / 2 if self.flips else width**2 / 8)

    def _ratios(self, one: Numbers, other: Numbers) -> NDArray[np.float64]:
        chances = flipped_law if self.flips else exponential_law
        ratios: NDArray[np.float64] = chances(one, self.scale) - chances(other, self.scale)
        return ratios


def exponential_law(scores: Numbers, scale: Fraction) -> NDArray[np.float64]:
    """Return the log probability of each candidate under the exponential mechanism."""
    gaps = _gaps(scores, scale)
    result: NDArray[np.float64] = gaps - math.log(math.fsum(np.exp(gaps)))
    return result


def _gaps(scores: Numbers, scale: Fraction) -> NDArray[np.float64]:
    """Return how far each score lies below the best, in scales; the differences are exact."""
    whole = scores.astype(np.int64)
    gaps: NDArray[np.float64] = (whole - whole.max()) * float(1 / scale)
    return gaps


def flipped_law(scores: Numbers, scale: Fraction) -> NDArray[np.float64]:
    """Return the log probability of each candidate when all toss e^(−gap/scale) and one of the heads is drawn."""
    heads = np.exp(_gaps(scores, scale))
    return np.log([heads[place] * _share(np.delete(heads, place)) for place in range(len(heads))])


def _share(others: NDArray[np.float64]) -> float:
    """Return the mean of 1/(1 + heads) over independent coins."""
    numbers = np.ones(1)
    for chance in others:
        numbers = np.append(numbers * (1 - chance), 0.0) + np.append(0.0, numbers * chance)
    return float((numbers / np.arange(1, len(numbers) + 1)).sum())


@dataclass(frozen=True)
class ThresholdLaw:
    """Noisy counts of the keys that occur, listed from a threshold on.

    A key that only one input has costs nothing but the probability that it is listed.
    """

    noise: LaplaceLaw | GaussianLaw
    threshold: int

    def divergence(self, one: Numbers, other: Numbers) -> Divergence:
        mine, others = aligned(one, other)
        own = [*np.delete(one, mine), *np.delete(other, others)]
        delta = math.fsum(self.above(int(count)) for count in own)
        return self.noise.divergence(one[mine], other[others]) + Divergence(delta=delta)

    def carried(self, outcome: tuple[Numbers, Numbers], one: Numbers, other: Numbers) -> tuple[Numbers, Numbers]:
        """Return an outcome of one input, its places those of the same keys in the other."""
        mine, others = aligned(one, other)
        places = dict(zip(mine.tolist(), others.tolist(), strict=True))
        return np.array([places[place] for place in outcome[0].tolist()], np.int64), outcome[1]

    def above(self, count: int) -> float:
        """Return the probability that a key of this count is listed."""
        least, scale = self.threshold - count, float(self.noise.scale)
        if isinstance(self.noise, LaplaceLaw):
            ratio = math.exp(-1 / scale)
            return ratio**least / (1 + ratio) if least > 0 else 1 - ratio ** (1 - least) / (1 + ratio)
        reach = math.ceil(40 * scale) + abs(least)
        weights = {z: math.exp(-(z**2) / (2 * scale**2)) for z in range(-reach, reach + 1)}
        return math.fsum(w for z, w in weights.items() if z >= least) / math.fsum(weights.values())


def aligned(one: Numbers, other: Numbers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the keys that two lists of counts share, in order, so that the others' counts are least.

    The keys themselves are not known here.  Counts that agree are taken for the same key.
    """
    if len(one) < len(other):
        others, mine = aligned(other, one)
        return mine, others
    places = np.arange(len(one))
    while len(places) > len(other):
        cut = min(range(len(places)), key=lambda n: _change(one[np.delete(places, n)], other))
        places = np.delete(places, cut)
    return places, np.arange(len(other))


def _change(one: Numbers, other: Numbers) -> int:
    size = min(len(one), len(other))
    return int(np.abs(one[:size] - other[:size]).sum())
