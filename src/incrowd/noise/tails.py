"""Tails: bounds that noise exceeds with at most a given probability, intervals and boxes of cube noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import Infeasible
from incrowd.noise.chance import exp_enclosure
from incrowd.noise.marginal import Marginal

_DIGITS = 50  # e^(−m/scale) is enclosed to so many digits, far more than the smallest probability of a threshold has
_ROOT_OF_TWO_PI = Fraction(25066, 10000)  # below √(2π) = 2.50662…
_Array = NDArray[np.float64]
_FINEST = 512  # blocks of J per scale, for bounds: a threshold is overstated by at most 1/512 of a scale
_COARSE = 64  # blocks of J per scale, for intervals, which are approximate
_BEYOND = 150  # scales beyond which e^(−150) = 10⁻⁶⁵ of the weight lies; it is added to a bound
_NEAR = 30  # scales beyond which e^(−30) = 10⁻¹³ of the weight lies: for intervals, which miss 5 %
_RELATIVE = 1e-9  # a hundred thousand positive weights, each right to 10⁻¹²
_THIN = 1e-9  # of a step: a law of no width gets this one, and nothing is divided by zero
_RAREST = Fraction(1, 10**40)  # `_BEYOND` and the floats of weights are good for 10⁻⁶⁵, and a margin is left


def laplace_reach(scale: Fraction, chance: Fraction) -> int:
    """Return the least m ≥ 1 with P[z ≥ m] ≤ chance for integer Laplace noise z.

    P[z ≥ m] = a^m / (1 + a) with a = e^(−1/scale), bounded from above to 50 digits.

    >>> laplace_reach(Fraction(1), Fraction(1, 10**6))
    14
    """
    least_ratio = exp_enclosure(1 / scale, _DIGITS)[0]

    def rare(m: int) -> bool:
        return exp_enclosure(m / scale, _DIGITS)[1] / (1 + least_ratio) <= chance

    return least(rare)


def gaussian_reach(scale: Fraction, chance: Fraction) -> int:
    """Return an m ≥ 1 with P[z ≥ m] ≤ chance for integer Gaussian noise z; for rare events within 1 % of the least.

    For i ≥ 0, (m + i)² ≥ m² + 2 m i, so Σ_{z≥m} e^(−z²/2σ²) ≤ e^(−m²/2σ²) / (1 − e^(−m/σ²)); and
    Σ_z e^(−z²/2σ²) ≥ max(1, σ √(2π)): the term of zero alone is 1, and by Poisson summation the sum is
    σ √(2π) Σ_n e^(−2π²σ²n²).  The quotient of the two bounds P[z ≥ m].

    >>> gaussian_reach(Fraction(1), Fraction(1, 10**6))
    6
    """
    variance = scale**2
    total = max(Fraction(1), scale * _ROOT_OF_TWO_PI)

    def rare(m: int) -> bool:
        falls = exp_enclosure(m / variance, _DIGITS)[1]
        return falls < 1 and exp_enclosure(m**2 / (2 * variance), _DIGITS)[1] <= chance * total * (1 - falls)

    return least(rare)


def least(rare: Callable[[int], bool]) -> int:
    """Return the least m ≥ 1 from which on `rare` holds, by doubling and halving.

    >>> least(lambda m: m * m > 50)
    8
    """
    high = 1
    while not rare(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rare(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class CubeLaw:
    """The law P[x] ∝ e^(−J(x) / scale), J(x) = max_j ⌈fine · |x_j| / width_j⌉; with one width of 1, integer Laplace.

    Given J, drawn with weight |B(J)| q^J, the vector is uniform in the box B(J): so every chance here is a sum over J.
    Where scales are wide, J runs in blocks.

    >>> CubeLaw((1,), 1, Fraction(1)).reach(0, Fraction(1, 10**6))
    14
    """

    widths: tuple[int, ...]
    fine: int
    scale: Fraction

    def reach(self, place: int, chance: Fraction) -> int:
        """Return an m ≥ 1 with P[x_place ≥ m] ≤ chance, never understated, and nearly the least.

        Over a block of J the weight is at most that of the box at its end and of the power of q at its start, and the
        chance of x ≥ m within a box grows with it; the weights below are bounded the other way round; what lies
        beyond the last block is bounded by a geometric series; rounding is covered by a margin of 10⁻⁹.

        >>> CubeLaw((1, 1), 16, Fraction(16)).reach(0, Fraction(1, 40))
        5
        """
        if chance < _RAREST:
            raise Infeasible("a probability below 1e-40 cannot be computed here: give a larger delta.")
        bounds = _bounds(self)
        half = _half(bounds.last, self.widths[place], self.fine)

        def rare(m: int) -> bool:
            inside = np.maximum(half - m + 1.0, 0.0) / (2.0 * half + 1.0)
            return (float(bounds.above @ inside) + bounds.beyond) * (1.0 + _RELATIVE) <= float(chance) * bounds.total

        return least(rare)

    def within(self, place: int, miss: float) -> int:
        """Return the least w with P[|x_place| > w] ≤ miss, but for blocks."""
        return _within(self, place, miss)

    def combined(self, places: tuple[int, int], factors: tuple[float, float], miss: float) -> float:
        """Return a t with P[|a x_i + b x_j| > t] ≤ miss for two coordinates i ≠ j, but for blocks.

        The coordinate with the coarser steps is summed over; the other one is smeared evenly over a step, which moves
        it by half a step at most, and half a step is added to t.

        >>> law = CubeLaw((1, 1), 16, Fraction(16))
        >>> law.within(0, 0.05) - 0.5 <= law.combined((0, 1), (1.0, 0.0), 0.05) <= law.within(0, 0.05) + 1
        True
        """
        (fine, smear), (coarse, step) = sorted(zip(places, map(abs, factors), strict=True), key=lambda pair: pair[1])
        shells = _shells(self, _NEAR)
        outer = _half(shells.last, self.widths[coarse], self.fine)
        inner = smear * (_half(shells.last, self.widths[fine], self.fine) + 0.5)

        def rare(t: float) -> bool:
            return 2.0 * float(shells.weights @ _beyond(inner, step, outer, t)) <= miss

        if step == 0.0:
            return 0.0
        high = step + smear
        while not rare(high):
            high *= 2.0
        low = 0.0
        for _ in range(24):
            middle = (low + high) / 2.0
            low, high = (low, middle) if rare(middle) else (middle, high)
        return high + smear / 2.0

    def together(self, miss: float) -> tuple[int, ...]:
        """Return half-widths of a box that the whole vector leaves with chance at most `miss`, but for blocks.

        >>> CubeLaw((1, 10), 16, Fraction(16)).together(0.05)
        (5, 50)
        """
        return _box(self, _shells(self, _NEAR), miss)

    def marginal(self, place: int) -> Marginal:
        """Return the law of one coordinate.

        >>> CubeLaw((1,), 1, Fraction(1)).marginal(0).above(14).round(10).tolist()
        6.079e-07
        """
        return _marginal(self, place)

    def conditional(self, place: int, reach: int, miss: float) -> tuple[int, ...]:
        """Return half-widths of a box that all other coordinates leave with chance at most `miss`, given one of them.

        Given |x_place| = reach, J has the weight |B(J)| q^J / (2 h_place + 1) where the box B(J) reaches so far, and
        the others are uniform in B(J) as before: the further the one, the wider the others.

        >>> [CubeLaw((1, 10), 16, Fraction(16)).conditional(0, reach, 0.05)[1] for reach in (0, 5, 20)]
        [30, 62, 199]
        """
        return _conditional(self, place, reach, miss)


@dataclass(frozen=True)
class _Shells:
    """Blocks of J: the last J of each, and its chance by the weight of its middle."""

    last: _Array
    weights: _Array


@dataclass(frozen=True)
class _Bounds:
    """Blocks of J: upper bounds on their weights, on all that lies beyond, and a lower bound on the total."""

    last: _Array
    above: _Array
    beyond: float
    total: float


@lru_cache(maxsize=64)
def _shells(law: CubeLaw, beyond: int) -> _Shells:
    first, last, length = _blocks(law, _COARSE, beyond)
    middle = (first + last) / 2.0
    logs = _log_points(middle, law) - middle / float(law.scale)
    weights = np.exp(logs - logs.max()) * length
    return _Shells(last, weights / weights.sum())


@lru_cache(maxsize=64)
def _bounds(law: CubeLaw) -> _Bounds:
    first, last, length = _blocks(law, _FINEST, _BEYOND)
    scale, end = float(law.scale), float(last[-1]) + 1.0
    above, below = _log_points(last, law) - first / scale, _log_points(first, law) - last / scale
    top = float(above.max())
    polynomial = sum(math.log1p(2.0 * end * width / law.fine) for width in law.widths)
    beyond = math.exp(polynomial - end / scale - top) / -math.expm1(-1.0 / (2.0 * scale))
    return _Bounds(last, np.exp(above - top) * length, beyond, float(np.exp(below - top).sum()) * length)


@lru_cache(maxsize=64)
def _marginal(law: CubeLaw, place: int) -> Marginal:
    """Add up the chances of x ≥ k over the boxes that reach so far: Σ_J w_J (h_J − k + 1) / (2 h_J + 1)."""
    shells = _shells(law, _BEYOND)
    half = _half(shells.last, law.widths[place], law.fine)
    density = shells.weights / (2.0 * half + 1.0)
    ones, times = (np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in (density, density * (half + 1.0)))
    step = max(1, math.floor(law.scale * law.widths[place] / (law.fine * _COARSE)))
    nodes = np.arange(0.0, float(half[-1]) + 1.0, step)
    at = np.searchsorted(half, nodes)
    return Marginal.of(nodes, times[at] - nodes * ones[at])


@lru_cache(maxsize=1024)
def _within(law: CubeLaw, place: int, miss: float) -> int:
    shells = _shells(law, _NEAR)
    half = _half(shells.last, law.widths[place], law.fine)

    def rare(m: int) -> bool:
        return 2.0 * float(shells.weights @ (np.maximum(half - m + 1.0, 0.0) / (2.0 * half + 1.0))) <= miss

    return least(rare) - 1


@lru_cache(maxsize=1024)
def _conditional(law: CubeLaw, place: int, reach: int, miss: float) -> tuple[int, ...]:
    start = -(-reach * law.fine // law.widths[place])
    length = max(1, math.floor(law.scale / _COARSE))
    count = math.ceil((2 * len(law.widths) + _NEAR) * law.scale / length) + 1
    last = start + np.arange(count, dtype=np.float64) * length + (length - 1)
    half = _half(last, law.widths[place], law.fine)
    logs = _log_points(last, law) - last / float(law.scale) - np.log(2.0 * half + 1.0)
    weights = np.exp(logs - logs.max())
    return _box(law, _Shells(last, weights / weights.sum()), miss, place)


def _box(law: CubeLaw, shells: _Shells, miss: float, free: int | None = None) -> tuple[int, ...]:
    """Return half-widths of the least box that all coordinates but a `free` one leave with chance at most `miss`."""
    halves = [_half(shells.last, width, law.fine) for width in law.widths]

    def rare(radius: int) -> bool:
        box = [float(radius * width // law.fine) for width in law.widths]
        shares = [np.minimum(1.0, (2.0 * b + 1.0) / (2.0 * half + 1.0)) for b, half in zip(box, halves, strict=True)]
        if free is not None:
            shares[free] = np.ones_like(shells.last)
        return float(shells.weights @ (1.0 - np.prod(shares, axis=0))) <= miss

    radius = least(rare)
    return tuple(radius * width // law.fine for width in law.widths)


def _blocks(law: CubeLaw, parts: int, beyond: int) -> tuple[_Array, _Array, float]:
    """Cut J = 0, 1, … into blocks up to 2 d + `beyond` scales; from 2 d on weights fall as a geometric series."""
    length = max(1, math.floor(law.scale / parts))
    count = math.ceil((2 * len(law.widths) + beyond) * law.scale / length) + 1
    first = np.arange(count, dtype=np.float64) * length
    return first, first + (length - 1), float(length)


def _log_points(radius: _Array, law: CubeLaw) -> _Array:
    logs = [np.log(2.0 * _half(radius, width, law.fine) + 1.0) for width in law.widths]
    return np.asarray(np.sum(logs, axis=0))


def _half(radius: _Array, width: int, fine: int) -> _Array:
    return np.asarray(np.floor(radius * (width / fine)))


def _beyond(inner: _Array, step: float, outer: _Array, t: float) -> _Array:
    """Return P[y + step · n > t] for y uniform within ±inner and a whole number n uniform within ±outer.

    Given n the chance is p + r n held between 0 and 1; these are summed as an arithmetic series.  An y of no width has
    a thousand millionth of a step: no number here overflows then.
    """
    inner = np.maximum(inner, _THIN * step)
    width = 2.0 * inner
    p, r = (inner - t) / width, step / width
    starts = np.maximum(np.floor(-p / r) + 1.0, -outer)
    full = np.ceil((1.0 - p) / r)
    stops = np.minimum(full - 1.0, outer)
    terms = np.maximum(stops - starts + 1.0, 0.0)
    slope = terms * p + r * np.where(terms > 0, (starts + stops) / 2.0 * terms, 0.0)
    ones = np.maximum(outer - np.maximum(full, -outer) + 1.0, 0.0)
    return np.asarray((slope + ones) / (2.0 * outer + 1.0))
