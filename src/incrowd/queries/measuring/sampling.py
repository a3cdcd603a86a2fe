"""Sampling: intervals for all rows from noisy statistics of a secret sample of them, also where it holds few."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtr, ndtri

from incrowd.noise.marginal import Marginal
from incrowd.queries.measuring.intervals import Floats, Interval, NoiseLaw, Ratio, reaches

_CELLS = 4.0  # cells per typical noise: more is finer and slower
_REST = 1e-3  # of the miss: noise beyond the cells, which is added to each chance
_NORMAL = 10_000.0  # from this variance on the normal law differs from the binomial one by less than a row
_PRECISE = 0.005  # of the width: bisections stop here, at the outer end, so that an interval is never too narrow
_AT_ONCE = 2**14  # different counts at a time: times the cells, some megabytes
# of the miss for the noise, the rest for the sample; each gives an interval, and all hold
_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
# of the miss for how many rows there are; any share is sound, a larger one widens what it is taken from
_SIZE_SHARE = 0.1
_HALVINGS = 26  # to 2⁻²⁶ of a range, at the outer end
_NODES = np.concatenate([[0.0], 2.0 ** (-np.arange(48, -1, -1) / 2.0)])

Reach = Callable[[float], float]
"""How far noise reaches but for a chance."""


@dataclass(frozen=True)
class SampleInterval:
    """A Poisson sample of the rows, and how often intervals for all rows may miss.

    Of totals and means the miss is shared between the noise and the sample.  Each way to share it gives an interval;
    for each true number the narrowest may be taken, so the interval is what all of them have in common.
    """

    rate: float
    miss: float

    def counts(self, noisy: NDArray[np.int64], marginal: Marginal) -> Interval:
        """Return all numbers N of rows for which neither tail of Bin(N, rate) + noise at the noisy number is too rare.

        Tails are those of the binomial law, where its variance is beyond ten thousand those of its normal neighbor; the
        law of the noise is added up in cells.  Both tails are monotone in N.
        """
        unique, which = np.unique(noisy, return_inverse=True)
        noise = _Cells.of(marginal, self.miss)
        parts = [
            _SampledRows(unique[at : at + _AT_ONCE].astype(np.float64), self.rate, noise)
            for at in range(0, max(1, unique.size), _AT_ONCE)
        ]
        ends = (np.concatenate([end(part, self.miss / 2.0) for part in parts]) for end in (_fewest, _most))
        return Interval(*(end[which.reshape(-1)] for end in ends))

    def totals(self, noisy: Floats, most: float, reach: Reach) -> Interval:
        """Return intervals of totals of numbers between 0 and `most`.

        If T is the true total, the variance of the sampled one is rate · (1 − rate) · Σ x², at most rate · (1 − rate) ·
        most · T, and Bernstein's inequality bounds how far it is from rate · T.
        """
        low, high = np.zeros_like(noisy), np.full_like(noisy, np.inf)
        for share in _SHARES:
            log = math.log(2.0 / ((1.0 - share) * self.miss))
            root = math.sqrt(2.0 * self._variance * most * log)
            fixed = reach(share * self.miss) + most * self._jump * log / 3.0
            above = np.sqrt(root**2 + 4.0 * self.rate * np.maximum(noisy + fixed, 0.0)) + root
            below = np.sqrt(root**2 + 4.0 * self.rate * np.maximum(noisy - fixed, 0.0)) - root
            low = np.maximum(low, (below / (2.0 * self.rate)) ** 2)
            high = np.minimum(high, (above / (2.0 * self.rate)) ** 2)
        return Interval(low, np.maximum(high, low))

    def signed_totals(self, noisy: Floats, most: float, rows: Floats, reach: Reach) -> Interval:
        """Return intervals of totals of numbers within ±most, at most so many of them: Σ x² ≤ rows · most²."""
        halves = []
        for share in _SHARES:
            left = (1.0 - _SIZE_SHARE) * self.miss
            log = math.log(2.0 / ((1.0 - share) * left))
            sampled = np.sqrt(2.0 * self._variance * rows * log) + self._jump * log / 3.0
            halves.append(reach(share * left) + most * sampled)
        half = np.min(halves, axis=0)
        return Interval((noisy - half) / self.rate, (noisy + half) / self.rate)

    def most_rows(self, noisy: NDArray[np.int64], marginal: Marginal) -> Floats:
        """Return how many rows there are at most, but for a tenth of the miss."""
        return SampleInterval(self.rate, 2.0 * _SIZE_SHARE * self.miss).counts(noisy, marginal).high

    def means(self, ratio: Ratio, law: NoiseLaw, noisy: tuple[Floats, Floats], rows: Floats) -> Interval:
        """Return intervals of means, as distances from the center of their range.

        If a is the true one, step · total − a · count holds Σ (x − a) over the sample, and noise.  The mean of that sum
        is 0 and its variance rate · (1 − rate) · Σ (x − a)², at most rate · (1 − rate) · rows · (half² − a²) since the
        x lie within ±half; Bernstein's inequality bounds it.  The interval is the hull of all a that pass.
        """
        total, count = ratio.step * noisy[0], noisy[1]
        left = (1.0 - _SIZE_SHARE) * self.miss

        def passes(points: Floats) -> NDArray[np.bool_]:
            rest, squares = np.abs(total[:, None] - points * count[:, None]), ratio.half**2 - points**2
            allowed = np.full_like(rest, np.inf)
            for share in _SHARES:
                log = math.log(2.0 / ((1.0 - share) * left))
                spread = np.sqrt(2.0 * self._variance * rows[:, None] * np.maximum(squares, 0.0) * log)
                jump = (ratio.half + np.abs(points)) * self._jump * log / 3.0
                noise = np.interp(np.abs(points), *reaches(ratio, law, share * left))
                allowed = np.minimum(allowed, noise + spread + jump)
            return np.asarray(rest <= allowed)

        start = np.clip(total / np.maximum(count, 1.0), -ratio.half, ratio.half)
        return Interval(_furthest(passes, start, -ratio.half), _furthest(passes, start, ratio.half))

    @property
    def _variance(self) -> float:
        return self.rate * (1.0 - self.rate)

    @property
    def _jump(self) -> float:
        return max(self.rate, 1.0 - self.rate)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Noise as points with their masses; `rest` is the mass beyond on each side."""

    points: Floats
    masses: Floats
    rest: float

    @classmethod
    def of(cls, marginal: Marginal, miss: float) -> _Cells:
        end = float(marginal.least(math.log(_REST * miss)))
        step = max(1.0, math.floor(float(marginal.least(math.log(0.2))) / _CELLS))
        edges = np.arange(-end, end + step, step)
        tails = marginal.above(edges)
        return cls(edges[:-1] + (step - 1.0) / 2.0, -np.diff(tails), float(tails[-1]))


@dataclass(frozen=True, eq=False)
class _SampledRows:
    """Noisy numbers of rows of a sample."""

    noisy: Floats
    rate: float
    noise: _Cells

    def brackets(self, chance: float) -> tuple[Floats, Floats]:
        """Return the number of rows that is expected, and how far it is off for certain."""
        spread = np.sqrt(np.maximum(self.noisy, 0.0) * (1.0 - self.rate)) + 2.0 * math.sqrt(-math.log(chance))
        wide = 2.0 * (1.0 - float(ndtri(chance))) * spread + self.noise.points[-1]
        return np.maximum(np.round(self.noisy / self.rate), 0.0), np.ceil(wide / self.rate)

    def chance(self, rows: Floats, *, below: bool) -> Floats:
        """Return P[Bin(rows, rate) + x ≤ noisy] if `below`, else P[Bin(rows, rate) + x ≥ noisy]."""
        many = rows[:, None]
        seen = self.noisy[:, None] - self.noise.points[None, :] - (0.0 if below else 1.0)
        scale = np.sqrt(many * self.rate * (1.0 - self.rate))
        at_most = np.where(seen < 0.0, 0.0, 1.0) * np.ones_like(many)
        inside = (seen >= 0.0) & (seen < many)
        wide = inside & (scale**2 > _NORMAL)
        for which, law in ((wide, _normal), (inside & ~wide, _binomial)):
            at, number = (np.broadcast_to(numbers, seen.shape)[which] for numbers in (seen, many))
            at_most[which] = law(at, number, self.rate)
        return np.asarray((at_most if below else 1.0 - at_most) @ self.noise.masses + self.noise.rest)


def _normal(seen: Floats, rows: Floats, rate: float) -> Floats:
    return np.asarray(ndtr((seen + 0.5 - rows * rate) / np.sqrt(rows * rate * (1.0 - rate))))


def _binomial(seen: Floats, rows: Floats, rate: float) -> Floats:
    """Return P[Bin(rows, rate) ≤ seen]."""
    return np.asarray(betainc(rows - seen, seen + 1.0, 1.0 - rate))


def _most(sampled: _SampledRows, chance: float) -> Floats:
    """Return the most rows for which so few in the sample are not too rare, rounded up."""
    inner, wide = sampled.brackets(chance)
    outer = inner + wide
    while np.any(outer - inner > np.maximum(1.0, np.floor(_PRECISE * wide))):
        middle = np.floor((inner + outer) / 2.0)
        likely = sampled.chance(middle, below=True) > chance
        inner, outer = np.where(likely, middle, inner), np.where(likely, outer, middle)
    return np.maximum(outer - 1.0, inner)


def _fewest(sampled: _SampledRows, chance: float) -> Floats:
    """Return the fewest rows for which so many in the sample are not too rare, rounded down; −1 is too rare."""
    inner, wide = sampled.brackets(chance)
    outer = np.maximum(inner - wide, -1.0)
    while np.any(inner - outer > np.maximum(1.0, np.floor(_PRECISE * wide))):
        middle = np.floor((inner + outer) / 2.0)
        likely = (middle >= 0.0) & (sampled.chance(np.maximum(middle, 0.0), below=False) > chance)
        inner, outer = np.where(likely, middle, inner), np.where(likely, outer, middle)
    return np.minimum(outer + 1.0, inner)


def _furthest(passes: Callable[[Floats], NDArray[np.bool_]], start: Floats, end: float) -> Floats:
    """Return the point nearest to `end` that passes, on the way from `start`, which is taken to pass itself."""
    points = start[:, None] + _NODES[None, :] * (end - start)[:, None]
    points[:, -1] = end
    passed = passes(points)
    passed[:, 0] = True
    last = passed.shape[1] - 1 - passed[:, ::-1].argmax(axis=1)
    rows = np.arange(len(points))
    inner, outer = points[rows, last], points[rows, np.minimum(last + 1, passed.shape[1] - 1)]
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2.0
        good = passes(middle[:, None])[:, 0]
        inner, outer = np.where(good, middle, inner), np.where(good, outer, middle)
    return np.asarray(outer)
