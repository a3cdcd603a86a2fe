"""Estimates: counts, sums, means and variances read off noisy statistics, each with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter
from incrowd.queries.measuring.intervals import MISS, Floats, Interval, NoiseLaw, Ratio, ShownGroup
from incrowd.queries.measuring.sampling import SampleInterval
from incrowd.queries.measuring.statistics import IntegerGrid, Of, Statistic, Statistics, count_of
from incrowd.queries.query import Aggregate, AggregateKind, Value

Numbers = NDArray[np.float64] | NDArray[np.int64]

NO_INTERVAL = (
    "no interval: from a secret sample it is known for counts and means, and for sums of values of one sign or beside "
    "their count"
)

COUNTS = (AggregateKind.ROWS, AggregateKind.PEOPLE, AggregateKind.COUNT, AggregateKind.DISTINCT)
SPREADS = (AggregateKind.VARIANCE, AggregateKind.DEVIATION)
_SIZES = 33  # group sizes tried between both ends: a spread is smooth in the size, and more is finer


@dataclass(frozen=True)
class Estimate:
    """An aggregate's values, one per group, and the 95 % interval of each."""

    values: Numbers
    interval: Interval | None


@dataclass(frozen=True)
class Reading:
    """How aggregates are read off noisy vectors with a known law.

    With a rate they are those of a secret sample; with a selection those of groups that were shown for their count.
    """

    statistics: Statistics
    law: NoiseLaw
    miss: float = MISS
    rate: Fraction | None = None
    selection: ShownGroup | None = None

    def half_width(self, aggregate: Aggregate) -> float | None:
        """Return the half-width of the interval of a count or a sum; None for what depends on the size of the group."""
        if self.rate is not None:
            return None
        decided = aggregate.kind in COUNTS and self.selection and self._counted(aggregate) == self.selection.place
        miss = self.miss if self.selection is None or decided else self.selection.share(self.miss)
        return self._half_width(aggregate, miss)

    def meets(self, aggregates: tuple[Aggregate, ...], error: Fraction) -> bool:
        """Return whether every count and sum keeps an error."""
        widths = [width for aggregate in aggregates if (width := self.half_width(aggregate)) is not None]
        if not widths:
            raise InvalidParameter("an error can be asked of counts and sums only: give epsilon instead.")
        return max(widths) <= error

    def of(self, aggregate: Aggregate, noisy: NDArray[np.int64]) -> Estimate:
        """Return the estimates of an aggregate for the noisy vectors of all groups, held within their intervals.

        What is clipped, estimates and ends of intervals alike, are released numbers, and at what declarations say that
        an aggregate can be: nothing else is learned of the rows, and an interval holds the truth as often as before.
        """
        values = self._values(aggregate, noisy)
        interval = self._interval(aggregate, noisy)
        possible = _possible(aggregate)
        if interval is None:
            least, most = (np.full(len(values), end) for end in possible)
            return Estimate(_held(values, least, most), None)
        low, high = (np.clip(end, *possible) for end in interval)
        return Estimate(_held(values, low, high), Interval(low, high))

    def _values(self, aggregate: Aggregate, noisy: NDArray[np.int64]) -> Numbers:
        """Return the estimates before they are held anywhere."""
        times = Fraction(1) if self.rate is None else 1 / self.rate
        match aggregate.kind:
            case AggregateKind.ROWS | AggregateKind.PEOPLE | AggregateKind.COUNT | AggregateKind.DISTINCT:
                return _times(noisy[:, self._counted(aggregate)], times)
            case AggregateKind.SUM:
                return _times(_whole(self._sum(aggregate, noisy), aggregate.needed_value), times)
            case AggregateKind.MEAN:
                place, grid = self._summed(aggregate)
                count = noisy[:, self.statistics.present(aggregate.needed_value)].astype(np.float64)
                half = float(grid.step * grid.width)
                mean = float(grid.step) * noisy[:, place] / np.maximum(count, 1.0)
                return float(grid.center) + np.clip(mean, -half, half)
        squares, (present, total, square), unit = self._moments(aggregate)
        at = noisy.astype(np.float64)
        variance = unit * _spread(np.maximum(at[:, present], 2.0), at[:, total], at[:, square], squares)
        return np.sqrt(variance) if aggregate.kind is AggregateKind.DEVIATION else variance

    def _interval(self, aggregate: Aggregate, noisy: NDArray[np.int64]) -> Interval | None:
        if self.rate is not None:
            return self._of_all_rows(aggregate, noisy, SampleInterval(float(self.rate), self.miss))
        if self.selection is None:
            return self._alone(aggregate, noisy, self.miss)
        counts = noisy[:, self.selection.place].astype(np.float64)
        if aggregate.kind in COUNTS and self._counted(aggregate) == self.selection.place:
            return self.selection.counts(counts, self.miss)
        many, box = self.selection.large(counts, self.miss), self.selection.box(noisy, self.miss)
        low, high = self._within(aggregate, box.low, box.high)
        alone = self._alone(aggregate, noisy, self.selection.share(self.miss))
        low = np.minimum(np.where(box.needed, low, np.inf), np.where(many, alone.low, np.inf))
        high = np.maximum(np.where(box.needed, high, -np.inf), np.where(many, alone.high, -np.inf))
        lost = low > high
        return Interval(np.where(lost, alone.low, low), np.where(lost, alone.high, high))

    def _alone(self, aggregate: Aggregate, noisy: NDArray[np.int64], miss: float) -> Interval:
        """Return intervals from the law of the noise alone."""
        if aggregate.kind in COUNTS:
            return _around(noisy[:, self._counted(aggregate)], self._half_width(aggregate, miss) or 0.0)
        if aggregate.kind is AggregateKind.SUM:
            return _around(self._sum(aggregate, noisy), self._half_width(aggregate, miss) or 0.0)
        if aggregate.kind is AggregateKind.MEAN:
            ratio, center = self._ratio(aggregate)
            total, count = (noisy[:, place].astype(np.float64) for place in ratio.places)
            low, high = ratio.interval(total, count, self.law, miss)
            return Interval(center + low, center + high)
        box = np.array(self.law.together(miss), dtype=np.float64)
        return self._within(aggregate, noisy - box, noisy + box)

    def _of_all_rows(self, aggregate: Aggregate, noisy: NDArray[np.int64], sample: SampleInterval) -> Interval | None:
        """Return intervals for all rows from a sample of them, None for what is not known of it."""
        size = self._size(aggregate)
        if aggregate.kind in SPREADS:
            return None
        if aggregate.kind in COUNTS:
            place = self._counted(aggregate)
            return sample.counts(noisy[:, place], self.law.marginal(place))
        if aggregate.kind is AggregateKind.MEAN:
            ratio, center = self._ratio(aggregate)
            rows = sample.most_rows(noisy[:, ratio.places[1]], self.law.marginal(ratio.places[1]))
            total, count = (noisy[:, place].astype(np.float64) for place in ratio.places)
            low, high = sample.means(ratio, self.law, (total, count), rows)
            return Interval(center + low, center + high)
        value, total = aggregate.needed_value, self._sum(aggregate, noisy)
        least, most = _ends(value)

        def reach(miss: float) -> float:
            return self._half_width(aggregate, miss) or 0.0

        if least >= 0.0:
            return sample.totals(total, most, reach)
        if most <= 0.0:
            low, high = sample.totals(-total, -least, reach)
            return Interval(-high, -low)
        if size is None:
            return None
        rows = sample.most_rows(noisy[:, size], self.law.marginal(size))
        return sample.signed_totals(total, max(-least, most), rows, reach)

    def _within(self, aggregate: Aggregate, low: Floats, high: Floats) -> Interval:
        """Return all that an aggregate can be while the true statistics lie between two ends, one row a group."""
        if aggregate.kind in COUNTS:
            place = self._counted(aggregate)
            return Interval(low[:, place], high[:, place])
        if aggregate.kind in SPREADS:
            return self._spreads(aggregate, low, high)
        place, grid = self._summed(aggregate)
        step, center = float(grid.step), float(grid.center)
        if aggregate.kind is AggregateKind.SUM:
            ends = step * low[:, place], step * high[:, place]
            if center == 0.0:
                return Interval(*ends)
            counts = [center * end[:, self.statistics.present(aggregate.needed_value)] for end in (low, high)]
            return Interval(ends[0] + np.minimum(*counts), ends[1] + np.maximum(*counts))
        sizes = [np.maximum(end[:, self.statistics.present(aggregate.needed_value)], 1.0) for end in (low, high)]
        ratios = np.stack([step * end[:, place] / size for end in (low, high) for size in sizes])
        half = float(grid.step * grid.width)
        least, most = (np.clip(end, -half, half) for end in (ratios.min(axis=0), ratios.max(axis=0)))
        return Interval(center + least, center + most)

    def _spreads(self, aggregate: Aggregate, low: Floats, high: Floats) -> Interval:
        squares, (present, total, square), unit = self._moments(aggregate)
        sizes = np.maximum(np.linspace(low[:, present], high[:, present], _SIZES), 2.0)
        ends = np.abs(low[:, total]), np.abs(high[:, total])
        least = np.where(low[:, total] * high[:, total] <= 0.0, 0.0, np.minimum(*ends))
        least_spread = _spread(sizes, np.maximum(*ends), low[:, square], squares).min(axis=0)
        most_spread = _spread(sizes, least, high[:, square], squares).max(axis=0)
        variances = Interval(unit * least_spread, unit * most_spread)
        return Interval(*map(np.sqrt, variances)) if aggregate.kind is AggregateKind.DEVIATION else variances

    def _half_width(self, aggregate: Aggregate, miss: float) -> float | None:
        if aggregate.kind in COUNTS:
            return float(self.law.within(self._counted(aggregate), miss))
        if aggregate.kind is not AggregateKind.SUM:
            return None
        place, grid = self._summed(aggregate)
        if grid.center == 0:
            return float(grid.step) * self.law.within(place, miss)
        pair = (place, self.statistics.present(aggregate.needed_value))
        return self.law.combined(pair, (float(grid.step), float(grid.center)), miss)

    def _size(self, aggregate: Aggregate) -> int | None:
        """Return the coordinate that counts the rows of an aggregate, if there is one."""
        counting = Statistic(Of.ROWS) if aggregate.value is None else count_of(aggregate.value)
        return self.statistics.place(counting) if counting in self.statistics.all else None

    def _sum(self, aggregate: Aggregate, noisy: NDArray[np.int64]) -> Floats:
        place, grid = self._summed(aggregate)
        total = float(grid.step) * noisy[:, place]
        if grid.center == 0:
            return np.asarray(total)
        return np.asarray(total + float(grid.center) * noisy[:, self.statistics.present(aggregate.needed_value)])

    def _ratio(self, aggregate: Aggregate) -> tuple[Ratio, float]:
        """Return the mean as a ratio, and the center of its range."""
        place, grid = self._summed(aggregate)
        places = (place, self.statistics.present(aggregate.needed_value))
        return Ratio(places, float(grid.step), float(grid.step * grid.width)), float(grid.center)

    def _moments(self, aggregate: Aggregate) -> tuple[Statistic, tuple[int, int, int], float]:
        """Return the statistic of squares, the places of count, total and squares, and the square of a step."""
        place, grid = self._summed(aggregate)
        squares = next(s for s in self.statistics.all if s.of is Of.SQUARES and s.value == aggregate.value)
        places = (self.statistics.present(aggregate.needed_value), place, self.statistics.place(squares))
        return squares, places, float(grid.step) ** 2

    def _counted(self, aggregate: Aggregate) -> int:
        match aggregate.kind:
            case AggregateKind.COUNT:
                return self.statistics.place(count_of(aggregate.needed_value))
            case AggregateKind.PEOPLE:
                return self.statistics.place(Statistic(Of.PEOPLE, aggregate.value))
            case AggregateKind.DISTINCT:
                return self.statistics.place(Statistic(Of.DISTINCT, aggregate.needed_value))
        return self.statistics.place(Statistic(Of.ROWS))

    def _summed(self, aggregate: Aggregate) -> tuple[int, IntegerGrid]:
        place = self.statistics.total(aggregate.needed_value)
        grid = self.statistics.all[place].grid
        if grid is None:
            raise InvalidParameter("a sum has a grid.")
        return place, grid


def _spread(count: Floats, total: Floats, square: Floats, squares: Statistic) -> Floats:
    """Return the variance of z, from counts, totals of z and totals of (2 z² − width²) / coarse."""
    width = 1 if squares.grid is None else squares.grid.width
    second = (float(squares.coarse) * square + float(width) ** 2 * count) / 2.0
    most = float(width) ** 2 * count / (count - 1.0)
    return np.asarray(np.clip((second - total**2 / count) / (count - 1.0), 0.0, most))


def _around(center: Numbers, half: float) -> Interval:
    middle = center.astype(np.float64)
    return Interval(middle - half, middle + half)


def _times(values: Numbers, factor: Fraction) -> Numbers:
    if factor == 1:
        return values
    grown = values.astype(np.float64) * float(factor)
    return (
        np.rint(grown).astype(np.int64) if values.dtype.kind == "i" and np.abs(grown).max(initial=0) < 2**62 else grown
    )


def _possible(aggregate: Aggregate) -> tuple[float, float]:
    """Return what an aggregate can be at all: counts and spreads from 0, sums of values of one sign, means in range."""
    if aggregate.kind in COUNTS or aggregate.kind in SPREADS:
        return 0.0, math.inf
    least, most = _ends(aggregate.needed_value)
    if aggregate.kind is AggregateKind.MEAN:
        return least, most
    return 0.0 if least >= 0.0 else -math.inf, 0.0 if most <= 0.0 else math.inf


def _held(values: Numbers, low: Floats, high: Floats) -> Numbers:
    """Return values within their intervals; whole numbers stay whole."""
    if values.dtype.kind != "i":
        return np.asarray(np.clip(values, low, high), dtype=np.float64)
    whole = np.clip(values.astype(np.float64), np.ceil(low), np.maximum(np.floor(high), np.ceil(low)))
    inside = (values >= low) & (values <= high)
    return np.where(inside, values, whole.astype(np.int64))


def _whole(total: Floats, value: Value) -> Numbers:
    """Return sums of whole numbers as whole numbers, while doubles hold them exactly."""
    if value.type is Type.INTEGER and np.abs(total).max(initial=0.0) < math.ldexp(1.0, 53):
        return np.rint(total).astype(np.int64)
    return total


def _ends(value: Value) -> tuple[float, float]:
    if value.low is None or value.high is None:
        raise InvalidParameter(f"{value.name} has no bounds.")
    return float(value.low), float(value.high)
