"""Intervals: what the law of the noise says about numbers, and about ratios of two."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from incrowd.noise.marginal import Marginal

MISS = 0.05
"""Intervals miss the truth this often."""


class NoiseLaw(Protocol):
    """What is known about the noise of one vector, whatever the rows."""

    def __hash__(self) -> int:
        """Laws are values: the same law is asked the same thing once."""

    def reach(self, place: int, chance: Fraction) -> int:
        """Return an m ≥ 1 with P[x_place ≥ m] ≤ chance, never understated."""

    def within(self, place: int, miss: float) -> int:
        """Return a w with P[|x_place| > w] ≤ miss."""

    def combined(self, places: tuple[int, int], factors: tuple[float, float], miss: float) -> float:
        """Return a t with P[|a x_i + b x_j| > t] ≤ miss."""

    def together(self, miss: float) -> tuple[int, ...]:
        """Return half-widths of a box that the whole vector leaves with chance at most `miss`."""

    def marginal(self, place: int) -> Marginal:
        """Return the law of one coordinate."""

    def conditional(self, place: int, reach: int, miss: float) -> tuple[int, ...]:
        """Return half-widths of a box that the others leave with chance `miss` at most, given |x_place| = reach."""


Floats = NDArray[np.float64]

_NODES = 12  # the width is convex between nodes, so a chord lies above it: fewer is wider, never too narrow
_CHUNK = 4096  # groups at a time: 25 nodes each, below a megabyte


class Interval(NamedTuple):
    """Lower and upper ends, one pair per group."""

    low: Floats
    high: Floats


@dataclass(frozen=True)
class Ratio:
    """A mean's distance from the center of its range, |a| ≤ half: total · step over count."""

    places: tuple[int, int]
    step: float
    half: float

    def interval(self, total: Floats, count: Floats, law: NoiseLaw, miss: float = MISS) -> Interval:
        """Return all distances that the noisy total and count do not speak against, by inverting a test.

        If a is the true one, step · total − a · count holds noise alone, so it stays within C(a) with the wanted
        chance; the interval is the hull of all a in ±half for which it does.  C is convex, as quantiles of a fixed
        level of linear forms in symmetric log-concave noise are norms of the form; so the chord between nodes is
        above it.
        Where nothing is left, which the noise makes rare, both ends are the nearest end of the range.

        Source: Fieller 1954, for the law of this noise.
        """
        right, wide = reaches(self, law, miss)
        nodes, reach = np.array([*(-node for node in right[:0:-1]), *right]), np.array([*wide[:0:-1], *wide])
        parts = [
            _accepted(nodes, reach, self.step * total[at : at + _CHUNK], count[at : at + _CHUNK])
            for at in range(0, max(1, total.size), _CHUNK)  # also where no group is shown
        ]
        low, high = (np.concatenate(ends) for ends in zip(*parts, strict=True))
        return Interval(low, high)


@lru_cache(maxsize=64)
def reaches(ratio: Ratio, law: NoiseLaw, miss: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return nodes from the center to the end of the range, and C at them."""
    nodes = tuple(ratio.half * node / _NODES for node in range(_NODES + 1))
    return nodes, tuple(law.combined(ratio.places, (ratio.step, node), miss) for node in nodes)


def _accepted(nodes: Floats, reach: Floats, total: Floats, count: Floats) -> Interval:
    """Return the hull of what is accepted: segments between nodes as a whole, and those of which a part is."""
    rest = total - nodes[:, None] * count
    above, below = rest > reach[:, None], rest < -reach[:, None]
    whole = ~(above[:-1] | above[1:] | below[:-1] | below[1:])
    at, group = np.nonzero(~(whole | (above[:-1] & above[1:]) | (below[:-1] & below[1:])))
    left, right = rest[at, group], rest[at + 1, group]
    starts, stops = zip(
        _where_negative(left - reach[at], right - reach[at + 1]),
        _where_negative(-left - reach[at], -right - reach[at + 1]),
        strict=True,
    )
    start, stop = np.maximum(*starts), np.minimum(*stops)
    open_, some, width = start <= stop, whole.any(axis=0), np.diff(nodes)
    low = np.where(some, nodes[whole.argmax(axis=0)], np.inf)
    high = np.where(some, (nodes[:-1] + width)[::-1][whole[::-1].argmax(axis=0)], -np.inf)
    np.minimum.at(low, group[open_], (nodes[at] + start * width[at])[open_])
    np.maximum.at(high, group[open_], (nodes[at] + stop * width[at])[open_])
    nearest = np.where((total > 0) == (count > 0), nodes[-1], nodes[0])
    lost = low > high
    return Interval(np.where(lost, nearest, low), np.where(lost, nearest, high))


def _where_negative(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Return for each segment from where to where (0 to 1) a linear function with these ends is at most zero."""
    root = left / np.where(left == right, 1.0, left - right)
    start = np.where(left <= 0, 0.0, np.where(right <= 0, root, np.inf))
    stop = np.where(right <= 0, 1.0, np.where(left <= 0, root, -np.inf))
    return start, stop


_COUNT_NODES = 4096  # true numbers tried; with gaps the intervals grow to the next one, never shrink
_SURE = 1e-12  # beyond this tail the threshold cannot be noticed, and the interval is that of the noise alone
_NEARLY = 0.01  # `sure` is where a group is shown in 99 of 100 cases; its intervals pay for the rest
_SHARE = 0.04  # of the miss, for calling a large group small; the rest is for its interval, so any share is sound
_STEPS = 4  # steps per typical noise, rounded up: finer is narrower and slower, any is sound


class CountBox(NamedTuple):
    """For each group the least and the most that each of its statistics can be, and whether the box is needed."""

    low: Floats
    high: Floats
    needed: NDArray[np.bool_]


@dataclass(frozen=True)
class ShownGroup:
    """Groups are shown where the noisy number at a place is `least` or more; a group that is there has 1 at least.

    Chances are those given that the group is shown.  Of a true number n the noise x is then at least `least` − n, and
    its likeliest 95 % are those within a radius; the interval holds all n for which the noisy number lies among them.
    """

    place: int
    least: int
    law: NoiseLaw

    def counts(self, noisy: Floats, miss: float) -> Interval:
        """Return the intervals of the number that decided; each holds the noisy number itself."""
        table = _table(self, miss)
        first = np.searchsorted(table.most, noisy)
        last = np.searchsorted(table.fewest, noisy, "right")
        far = np.maximum(noisy - table.radius, table.numbers[-1] + 1.0)
        low = np.where(first < len(table.numbers), np.append(0.0, table.numbers)[first] + 1.0, far)
        high = np.append(table.numbers - 1.0, np.inf)[last]
        return Interval(low, np.where(np.isinf(high), noisy + table.radius, high))

    @property
    def sure(self) -> int:
        """From which true number on a group is shown in 99 of 100 cases."""
        return self.least - 1 + int(self.law.marginal(self.place).least(np.log(_NEARLY)))

    def large(self, noisy: Floats, miss: float) -> NDArray[np.bool_]:
        """Return which groups may have `sure` or more, but for a small share of the miss."""
        marginal = self.law.marginal(self.place)
        below = -np.expm1(marginal.log_above(noisy + 1.0 - self.sure) - marginal.log_above(self.least - self.sure))
        return np.asarray(below > _SHARE * miss)

    def share(self, miss: float) -> float:
        """Return the miss, in groups of `sure` or more, of intervals that know nothing of the selection.

        Where a group is shown in 99 of 100 cases, what misses with chance m misses with m / 0.99 among those shown.
        """
        return (1.0 - _SHARE) * miss * (1.0 - _NEARLY)

    def box(self, noisy: NDArray[np.int64], miss: float) -> CountBox:
        """Return what the statistics of a group with fewer than `sure` can be, needed where it may have fewer.

        For a true number n its noise is known, c − n, and given that noise the others do not depend on the selection
        any more: half of the miss is for n, half for the others given n.
        """
        counts = noisy[:, self.place].astype(np.float64)
        low, high = self.counts(counts, miss / 2.0)
        high = np.minimum(high, self.sure - 1.0)
        needed = low <= high
        reach = np.where(needed, np.maximum(np.abs(counts - low), np.abs(counts - high)), 0.0)
        halves = self._conditional_halves(reach, miss / 2.0)
        ends = noisy - halves, noisy + halves
        for end, number in zip(ends, (low, high), strict=True):
            end[:, self.place] = number
        return CountBox(*ends, needed)

    def _conditional_halves(self, reach: Floats, miss: float) -> Floats:
        """Return half-widths of all others given how far the one is off, at the next of some steps."""
        step = max(1.0, float(self.law.marginal(self.place).least(np.log(0.3))) / _STEPS)
        nodes, which = np.unique(np.ceil(np.append(0.0, reach) / step), return_inverse=True)
        wide = [self.law.conditional(self.place, int(node * step), miss) for node in nodes]
        return np.array(wide, dtype=np.float64)[which.reshape(-1)[1:]]


@dataclass(frozen=True, eq=False)
class _Table:
    """For true numbers: the fewest and the most that a noisy number is among its likeliest, made monotone."""

    numbers: Floats
    fewest: Floats
    most: Floats
    radius: float


@lru_cache(maxsize=64)
def _table(selection: ShownGroup, miss: float) -> _Table:
    marginal = selection.law.marginal(selection.place)
    end = max(1.0, selection.least + float(marginal.least(np.log(_SURE))))
    numbers = np.unique(np.floor(np.linspace(1.0, end, int(min(end, _COUNT_NODES)))))
    radius = marginal.radius(selection.least - numbers, miss)
    fewest = np.minimum.accumulate(np.maximum(selection.least, numbers - radius)[::-1])[::-1]
    return _Table(numbers, fewest, np.maximum.accumulate(numbers + radius), float(radius[-1]))
