"""Estimates: counts, sums, means and variances read off noisy statistics, each with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter
from incrowd.queries.measuring.grid import IntegerGrid
from incrowd.queries.measuring.intervals import MISS, Floats, Interval, NoiseLaw, Ratio, widen
from incrowd.queries.measuring.statistics import Of, Statistic, Statistics, count_of
from incrowd.queries.question import Aggregate, AggregateKind, Value

Numbers = NDArray[np.float64] | NDArray[np.int64]

NO_INTERVAL = "no interval: from a secret sample it is known only for counts, and for sums and means beside a count"

_SIZES = 33


@dataclass(frozen=True)
class Estimate:
    """An aggregate's values, one per group, and the 95 % interval of each."""

    values: Numbers
    interval: Interval | None


@dataclass(frozen=True)
class Reading:
    """How aggregates are read off noisy vectors with a known law; with a rate they are those of a secret sample."""

    statistics: Statistics
    law: NoiseLaw
    miss: float = MISS
    rate: Fraction | None = None

    def half_width(self, aggregate: Aggregate) -> float | None:
        """Return the half-width of the interval of a count or a sum; None for what depends on the size of the group."""
        return self._half_width(aggregate) if self.rate is None else None

    def _half_width(self, aggregate: Aggregate) -> float | None:
        match aggregate.kind:
            case AggregateKind.ROWS | AggregateKind.PEOPLE | AggregateKind.COUNT:
                return float(self.law.within(self._counted(aggregate), self.miss))
            case AggregateKind.SUM:
                place, grid = self._summed(aggregate)
                if grid.center == 0:
                    return float(grid.step) * self.law.within(place, self.miss)
                pair = (place, self.statistics.present(_value(aggregate)))
                return self.law.combined(pair, (float(grid.step), float(grid.center)), self.miss)
        return None

    def meets(self, aggregates: tuple[Aggregate, ...], error: Fraction) -> bool:
        """Return whether every count and sum keeps an error."""
        widths = [width for each in aggregates if (width := self.half_width(each)) is not None]
        if not widths:
            raise InvalidParameter(
                "an error can be asked of counts and sums only, since that of a mean depends on the size of its group: "
                "give epsilon instead."
            )
        return max(widths) <= error

    def of(self, aggregate: Aggregate, noisy: NDArray[np.int64]) -> Estimate:
        """Return the estimates of an aggregate for the noisy vectors of all groups."""
        found = self._of(aggregate, noisy)
        return found if self.rate is None else self._of_all(aggregate, noisy, found, self.rate)

    def _of_all(self, aggregate: Aggregate, noisy: NDArray[np.int64], found: Estimate, rate: Fraction) -> Estimate:
        """Return estimates for all rows from those for a sample: totals grow, intervals hold the sample's error too.

        Σ x² is taken from above: counts times the largest square there can be.
        """
        total = aggregate.kind not in (AggregateKind.MEAN, AggregateKind.VARIANCE, AggregateKind.DEVIATION)
        values = _times(found.values, 1 / rate) if total else found.values
        count, value = self._size(aggregate), aggregate.value
        if (
            count is None
            or found.interval is None
            or aggregate.kind in (AggregateKind.VARIANCE, AggregateKind.DEVIATION)
        ):
            return Estimate(values, None)
        size = np.maximum(noisy[:, count].astype(np.float64), 1.0)
        if value is None or value.low is None or value.high is None or aggregate.kind is AggregateKind.COUNT:
            return Estimate(values, _not_negative(widen(found.interval, rate, size, self.miss)))
        if total:
            most = float(max(abs(value.low), abs(value.high)))
            return Estimate(values, widen(found.interval, rate, most**2 * size, self.miss))
        half = float(value.high - value.low) / 2.0
        low, high = (end * float(rate) for end in found.interval)  # `widen` divides by the rate
        wide = widen(Interval(low, high), rate, (half * float(rate)) ** 2 / size, self.miss)
        return Estimate(values, Interval(*(np.clip(end, float(value.low), float(value.high)) for end in wide)))

    def _size(self, aggregate: Aggregate) -> int | None:
        """Return the coordinate that counts the rows of an aggregate, if there is one."""
        wanted = Statistic(Of.PEOPLE) if aggregate.kind is AggregateKind.PEOPLE else Statistic(Of.ROWS)
        wanted = wanted if aggregate.value is None else count_of(aggregate.value)
        return self.statistics.place(wanted) if wanted in self.statistics.all else None

    def _of(self, aggregate: Aggregate, noisy: NDArray[np.int64]) -> Estimate:
        match aggregate.kind:
            case AggregateKind.ROWS | AggregateKind.PEOPLE | AggregateKind.COUNT:
                counts = noisy[:, self._counted(aggregate)]
                return Estimate(counts, _not_negative(_around(counts, self._half_width(aggregate) or 0.0)))
            case AggregateKind.SUM:
                total = self._sum(aggregate, noisy)
                return Estimate(_whole(total, _value(aggregate)), _around(total, self._half_width(aggregate) or 0.0))
            case AggregateKind.MEAN:
                return self._mean(aggregate, noisy)
            case AggregateKind.VARIANCE:
                return self._variance(aggregate, noisy)
            case AggregateKind.DEVIATION:
                found = self._variance(aggregate, noisy)
                return Estimate(np.sqrt(found.values), Interval(*map(np.sqrt, found.interval or ())))
        raise InvalidParameter(f"{aggregate.kind} is not read off sums.")

    def _sum(self, aggregate: Aggregate, noisy: NDArray[np.int64]) -> Floats:
        place, grid = self._summed(aggregate)
        total = float(grid.step) * noisy[:, place]
        if grid.center == 0:
            return np.asarray(total)
        return np.asarray(total + float(grid.center) * noisy[:, self.statistics.present(_value(aggregate))])

    def _mean(self, aggregate: Aggregate, noisy: NDArray[np.int64]) -> Estimate:
        """Return means: a noisy count below 1 is taken for 1, and the mean is held within its range."""
        place, grid = self._summed(aggregate)
        present = self.statistics.present(_value(aggregate))
        total, count = noisy[:, place].astype(np.float64), noisy[:, present].astype(np.float64)
        step, center, half = float(grid.step), float(grid.center), float(grid.step * grid.width)
        mean = np.clip(step * total / np.maximum(count, 1.0), -half, half)
        low, high = Ratio((place, present), step, half).interval(total, count, self.law, self.miss)
        return Estimate(center + mean, Interval(center + np.minimum(low, mean), center + np.maximum(high, mean)))

    def _variance(self, aggregate: Aggregate, noisy: NDArray[np.int64]) -> Estimate:
        """Return variances, with all that is possible while the statistics stay within a box, as 95 % of vectors do."""
        place, grid = self._summed(aggregate)
        squares = next(s for s in self.statistics.all if s.of is Of.SQUARES and s.value == aggregate.value)
        places = (self.statistics.present(_value(aggregate)), place, self.statistics.place(squares))
        count, total, square = (noisy[:, at].astype(np.float64) for at in places)
        box = self.law.together(self.miss)
        sizes = np.maximum(count + np.linspace(-box[places[0]], box[places[0]], _SIZES)[:, None], 2.0)
        least = np.maximum(np.abs(total) - box[places[1]], 0.0)
        low = _spread(sizes, np.abs(total) + box[places[1]], square - box[places[2]], squares).min(axis=0)
        high = _spread(sizes, least, square + box[places[2]], squares).max(axis=0)
        value = _spread(np.maximum(count, 2.0), total, square, squares)
        unit = float(grid.step) ** 2
        return Estimate(unit * value, Interval(unit * np.minimum(low, value), unit * np.maximum(high, value)))

    def _counted(self, aggregate: Aggregate) -> int:
        if aggregate.kind is AggregateKind.COUNT:
            return self.statistics.place(count_of(_value(aggregate)))
        return self.statistics.place(Statistic(Of.PEOPLE if aggregate.kind is AggregateKind.PEOPLE else Of.ROWS))

    def _summed(self, aggregate: Aggregate) -> tuple[int, IntegerGrid]:
        place = self.statistics.total(_value(aggregate))
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
    grown = values.astype(np.float64) * float(factor)
    return (
        np.rint(grown).astype(np.int64) if values.dtype.kind == "i" and np.abs(grown).max(initial=0) < 2**62 else grown
    )


def _not_negative(interval: Interval) -> Interval:
    return Interval(np.maximum(interval.low, 0.0), np.maximum(interval.high, 0.0))


def _whole(total: Floats, value: Value) -> Numbers:
    """Return sums of whole numbers as whole numbers, while doubles hold them exactly."""
    if value.type is Type.INTEGER and np.abs(total).max(initial=0.0) < math.ldexp(1.0, 53):
        return np.rint(total).astype(np.int64)
    return total


def _value(aggregate: Aggregate) -> Value:
    if aggregate.value is None:
        raise InvalidParameter(f"{aggregate.kind} needs a value.")
    return aggregate.value
