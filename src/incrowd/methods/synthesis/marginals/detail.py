"""Detail: which values a class holds and how often each occurs, from one noisy table of each column in fine pieces.

A model knows classes: intervals of numbers, months, groups of categories.  For each column whose values are drawn
inside its classes, one more table is measured, over the column alone: of its single values where they can be listed,
else of parts of its intervals and of values where counts may pile up.  What stands above the noise is inside: values
that occur far more often than their neighbors, parts of a class that are fuller than others, last digits.  The rest is
even.  All of that follows from noisy counts and declared classes alone (post-processing).

Guarantee: a unit moves such a table as it moves any other, by at most its reach; it is paid from the same ρ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.domain import Categories, Dates, Numbers, Type
from incrowd.core.hierarchy.intervals import Cuts, Intervals, just_above, spiked
from incrowd.core.recoding import Classes, Recoding
from incrowd.core.steps.bins import BinColumn
from incrowd.methods.shared.columns import digest_of
from incrowd.methods.synthesis.marginals.number_range import NumberRange, default_decimals

if TYPE_CHECKING:
    from incrowd.core.schema import Column

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
MOST_PIECES = 2**15
"""A column with more values than this is measured in parts of its classes."""
_MOST_NUMBERS = 512  # the same for numbers: noise adds up over small pieces, and only dates have weekdays
_PARTS, _ALL_PARTS = 8, 2048  # parts of an interval, and of all intervals of a column together
_WIDE = 1.5  # an interval that ends at more than so many times its start has parts that grow
_SPLIT, _CLEAR = 3.0, 2.0  # standard deviations of noise above which a part, or a category, is not even
_DIGITS = 10


@dataclass(frozen=True, eq=False)
class FinerPieces:
    """A column's classes in a model, the finer ones that are measured, and for each of those the class it is in."""

    classes: Classes
    fine: Classes
    starts: pa.Array | None
    owners: Codes

    @classmethod
    def of(cls, classes: Classes) -> FinerPieces | None:
        """Return the pieces of a column whose values are drawn inside its classes, else None."""
        if not drawn_inside(classes):
            return None
        recoding = classes.recoding
        listed = Recoding(recoding.column, 0).classes
        most = _MOST_NUMBERS if isinstance(recoding.column.domain, Numbers) else MOST_PIECES
        if listed is not None and len(listed) <= most:
            fine, starts = listed, listed.marks
        elif isinstance(recoding.column.domain, Numbers):
            starts = _parts(classes)
            column = replace(recoding.column, hierarchy=Cuts(recoding.column.domain, (tuple(starts[1:].tolist()),)))
            fine = Recoding(column, 1).classes  # type: ignore[assignment]
            starts = pa.array(starts, recoding.column.type.storage)
        else:
            return None
        owners = recoding.codes_of(starts).astype(np.int64)[:-1]
        extra = [classes.other] * fine.has_other + [classes.missing] * fine.has_missing
        numeric = isinstance(recoding.column.domain, Numbers | Dates)
        return cls(classes, fine, starts if numeric else None, np.append(owners, np.array(extra, np.int64)))

    @property
    def labels(self) -> list[str | None]:
        """The pieces as text: values, or where each part starts."""
        if self.starts is None:
            labels: list[str | None] = self.fine.values().cast(pa.string()).to_pylist()
            return labels
        return [*self.starts.cast(pa.string()).to_pylist(), *([None] * (len(self.fine) - len(self.starts)))]

    def range(
        self,
        noisy: NDArray[np.int64],
        scale: float,
        weekdays: Floats | None = None,
        grains: tuple[tuple[int, float], ...] = (),
    ) -> NumberRange:
        """Return the range of a column's numbers with the chances that noisy counts give.

        `weekdays` say how much fuller each day of the week is than an even one, `grains` what is round.
        """
        plain, number = range_of(self.classes), len(self.starts or ())
        starts = on_a_line(self.starts)
        owners = tuple(self.owners[:number].tolist())
        pieces = replace(plain, starts=tuple(starts.tolist()), classes=owners, grains=grains)
        values = pieces.values
        digits = plain.whole and not plain.days and number == values.sum()
        expected = np.zeros(number)
        for code in range(plain.size):
            own = np.flatnonzero(self.owners[:number] == code)
            shape = shape_of(noisy[own].astype(np.float64), values[own], scale)
            expected[own] = shape if shape.sum() > 0 else values[own]
        if digits:
            expected *= _seasons(noisy[:number], expected, (starts % _DIGITS).astype(np.int64), scale)
        if weekdays is not None:
            expected *= weekdays[(starts % len(weekdays)).astype(np.int64)]
        return replace(pieces, chances=tuple(_shares(expected, self.owners[:number]).tolist()))

    def chances(self, noisy: NDArray[np.int64], scale: float) -> tuple[float, ...]:
        """Return the chance of each value among those of its class: clear ones by their counts, the others alike."""
        counts = noisy.astype(np.float64)
        expected = np.zeros(len(counts))
        for code in np.unique(self.owners):
            own = np.flatnonzero(self.owners == code)
            clear = counts[own] > _CLEAR * scale
            rest = max(0.0, float(counts[own][~clear].sum())) / max(1, int((~clear).sum()))
            expected[own] = np.where(clear, counts[own], rest)
        return tuple(_shares(expected, self.owners).tolist())


def detail_column(pieces: FinerPieces) -> BinColumn:
    """Return the pieces of a column as steps list them: by their number and hash."""
    labels = pieces.labels
    return BinColumn(pieces.classes.recoding.column.name, number=len(labels), sha256=digest_of(labels))


def drawn_inside(classes: Classes) -> bool:
    """Whether values are drawn inside a column's classes: numbers of intervals, or categories too many for a model."""
    if drawn_number(classes):
        return True
    recoding = classes.recoding
    members = recoding.column.hierarchy.members(0) if isinstance(recoding.column.domain, Categories) else None
    many = members is not None and FINEST < len(members) <= MOST_PIECES
    return many and 0 < recoding.level < recoding.column.hierarchy.height and not recoding.column.pseudonymous


FINEST = 128
"""A column with more classes than this is taken at a coarser level, if it has one."""
MOST_INTERVALS, _FEWEST = 48, 8
"""A column of numbers with more classes than this is taken as intervals, if a level has enough of them."""


def enough_intervals(classes: Classes) -> bool:
    """Whether a level has few enough classes for tables of pairs, and enough to tell what depends on what."""
    return _FEWEST <= len(classes) <= MOST_INTERVALS


def drawn_number(classes: Classes) -> bool:
    """Whether a column's numbers are drawn inside its classes: where those are intervals between declared bounds."""
    column = classes.recoding.column
    domain = column.domain
    closed = isinstance(domain, Numbers | Dates) and None not in domain.bounds
    return closed and not classes.has_other and 0 < classes.recoding.level < column.hierarchy.height


def with_zero(column: Column) -> Column:
    """Return a column of numbers with a class for 0 alone, where it lies within bounds: a part of a sum often is 0.

    >>> from incrowd.core.schema import Column
    >>> debt = Column("debt", type=Type.INTEGER, hierarchy=Cuts(Numbers(0, 900), ((100,),)))
    >>> with_zero(debt).hierarchy.labels(1)
    ('<= 0', '[1, 100)', '>= 100')
    """
    hierarchy, domain = column.hierarchy, column.domain
    if not isinstance(hierarchy, Intervals | Cuts) or not isinstance(domain, Numbers) or None in domain.bounds:
        return column
    low, high = exact_bounds(column)
    return replace(column, hierarchy=spiked(hierarchy, (0,))) if low <= 0 <= high else column


def range_of(classes: Classes) -> NumberRange:
    """Return where the numbers of a column lie, by its classes."""
    column, marks = classes.recoding.column, classes.marks
    days = column.type is Type.DATE
    ends = pa.array(column.stored_bounds, marks.type)
    low, high, *starts = on_a_line(pa.concat_arrays([ends, marks])).tolist()
    whole = days or column.type is Type.INTEGER
    inside = (low, *(min(max(start, low), high) for start in starts[1:]))
    decimals = 0 if whole else decimals_of(column, inside, high)
    return NumberRange(inside, high + whole, whole, days, decimals, allowed=column.days)


def decimals_of(column: Column, starts: Sequence[float], high: float) -> int:
    """Return how many decimals a column's numbers have: the declared ones, else as many as its classes need."""
    stated = column.decimals
    return default_decimals(column.type, np.array(starts), high) if stated is None else stated


def on_a_line(values: pa.Array) -> Floats:
    """Return numbers as they are, and days as their number since 1970-01-01."""
    plain = values.cast(pa.int32()) if pa.types.is_date32(values.type) else values
    places: Floats = plain.to_numpy(zero_copy_only=False).astype(np.float64)
    return places


def _parts(classes: Classes) -> NDArray[np.generic]:
    """Return where the parts of intervals start: equal ones, and one for each value where counts may pile up."""
    column, ranges = classes.recoding.column, range_of(classes)
    low, high = (float(end) for end in exact_bounds(column))
    edges = np.append(np.array(ranges.starts), high)
    parts = max(1, min(_PARTS, _ALL_PARTS // max(1, len(ranges.starts))))
    cuts = {float(cut) for a, b in pairwise(edges) for cut in _spaced(a, b, parts)}
    whole = column.type is Type.INTEGER
    points = {float(round(cut)) for cut in cuts} | set(ranges.starts) if whole else cuts | set(ranges.starts)
    for spike in _round_numbers(low, high):
        points |= {spike, spike + 1 if whole else just_above(spike)}
    inside = sorted({low, *(point for point in points if low < point <= high)})
    return np.array(inside, np.int64 if whole else np.float64)


def _spaced(start: float, end: float, parts: int) -> Floats:
    """Return where equal parts of an interval start; of one that spans a large factor, parts by equal factors."""
    wide = start > 0 and end > _WIDE * start
    return (np.geomspace if wide else np.linspace)(start, end, parts + 1)[:-1]


def exact_bounds(column: Column) -> tuple[float, float]:
    """Return the bounds of a column of numbers."""
    low, high = column.stored_bounds
    return float(low), float(high)  # type: ignore[arg-type]


def _round_numbers(low: float, high: float) -> set[float]:
    """Return where counts of numbers often pile up: at the ends, at 0, at one digit and zeros.

    >>> sorted(_round_numbers(0, 3000))[:4], len(_round_numbers(0, 3000))
    ([0.0, 10.0, 20.0, 30.0], 22)
    """
    top = math.floor(math.log10(max(abs(low), abs(high), 1e-9)))
    round_ones = {
        sign * digit * 10.0**power for power in (top, top - 1, top - 2) for digit in range(1, 10) for sign in (1, -1)
    }
    return {float(low), float(high), *(number for number in {0.0, *round_ones} if low <= number <= high)}


def shape_of(noisy: Floats, values: NDArray[np.int64], scale: float) -> Floats:
    """Return expected counts of the pieces of one class, which hold so many values each.

    Single values far above what is even are set apart; the rest is halved again and again while the halves differ by
    more than noise explains.
    """
    widths = values.astype(np.float64)
    spikes: NDArray[np.bool_] = np.zeros(len(noisy), np.bool_)
    limit = scale * (1.5 + math.sqrt(2.0 * math.log(max(2, len(noisy)))))
    for _ in range(2):
        rest = ~spikes
        even = widths * max(0.0, float(noisy[rest].sum())) / max(1.0, float(widths[rest].sum()))
        spikes[np.logical_and(values == 1, noisy - even > limit)] = True
    expected, others = np.where(spikes, np.maximum(noisy, 0.0), 0.0), np.flatnonzero(~spikes & (values > 0))
    if len(others):
        expected[others] = _halved(noisy[others], widths[others], max(0.0, float(noisy[others].sum())), scale)
    return expected


def _halved(noisy: Floats, widths: Floats, total: float, scale: float) -> Floats:
    """Return a total over pieces: evenly by their widths, or in two halves that clearly differ."""
    middle, width = len(noisy) // 2, float(widths.sum())
    if middle:
        share = float(widths[:middle].sum()) / width
        left, right = float(noisy[:middle].sum()), float(noisy[middle:].sum())
        away = (1 - share) * left - share * right
        spread = scale * math.sqrt(middle * (1 - share) ** 2 + (len(noisy) - middle) * share**2)
        if abs(away) > _SPLIT * spread:
            own = min(total, max(0.0, share * total + away))
            halves = (noisy[:middle], widths[:middle], own), (noisy[middle:], widths[middle:], total - own)
            return np.concatenate([_halved(*half, scale) for half in halves])
        return np.concatenate(
            [
                _halved(noisy[:middle], widths[:middle], share * total, scale),
                _halved(noisy[middle:], widths[middle:], (1 - share) * total, scale),
            ]
        )
    return widths * (total / width)


def tail_of(noisy: Floats, scale: float, limit: float) -> int:
    """Return where the longest tail starts that holds no more than noise: no run from its start on is clearly above.

    >>> tail_of(np.array([90.0, 60, 9, -4, 12, -11]), 10.0, 2.0)
    2
    """
    for start in range(len(noisy)):
        sums = np.cumsum(noisy[start:])
        if np.all(sums < limit * scale * np.sqrt(np.arange(1, len(sums) + 1))):
            return start
    return len(noisy)


def _seasons(noisy: NDArray[np.int64], expected: Floats, phase: Codes, scale: float) -> Floats:
    """Return by how much pieces of each phase, such as a last digit, are fuller than expected, where noise is less."""
    own, there, number = (np.bincount(phase, values) for values in (noisy, expected, np.ones(len(phase))))
    clear = np.abs(own - there) > _SPLIT * scale * np.sqrt(number)
    factors = np.where(clear, np.maximum(own, 0.0) / np.maximum(there, 1.0), 1.0)
    taken: Floats = factors[phase]
    return taken


def _shares(expected: Floats, owners: Codes) -> Floats:
    """Return what part of its class each piece is; 0 throughout where nothing was measured, which is drawn evenly."""
    sums = np.bincount(owners, expected)[owners]
    shares: Floats = np.where(sums > 0, expected / np.maximum(sums, 1e-300), 0.0)
    return shares
