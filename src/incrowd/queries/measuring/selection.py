"""Selection: what is known of a group that nobody listed, given that its noisy count was high enough to be shown."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from incrowd.queries.measuring.intervals import Floats, Interval, NoiseLaw

_NODES = 4096
_SURE = 1e-12
_NEARLY = 0.01
_SHARE = 0.04
_STEPS = 4


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
        halves = self._given(reach, miss / 2.0)
        ends = noisy - halves, noisy + halves
        for end, number in zip(ends, (low, high), strict=True):
            end[:, self.place] = number
        return CountBox(*ends, needed)

    def _given(self, reach: Floats, miss: float) -> Floats:
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
    numbers = np.unique(np.floor(np.linspace(1.0, end, int(min(end, _NODES)))))
    radius = marginal.radius(selection.least - numbers, miss)
    fewest = np.minimum.accumulate(np.maximum(selection.least, numbers - radius)[::-1])[::-1]
    return _Table(numbers, fewest, np.maximum.accumulate(numbers + radius), float(radius[-1]))
