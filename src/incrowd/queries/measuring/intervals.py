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

_NODES = 12
_CHUNK = 4096


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
