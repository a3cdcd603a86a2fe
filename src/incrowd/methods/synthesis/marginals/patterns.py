"""Patterns: small tables that say how values are written and how far two dates lie apart, each measured once.

Classes of a model hide three things at which people look first: on which days of the week something happens, which
numbers are round, and how long it takes from one date to another.  For each a table of few cells is counted: the seven
days of the week; by which of 1,000, 500, …, 5 a whole number can be divided; in which class the distance of two ordered
columns lies, from single days to years.  Few cells stand far above noise that would hide them in finer pieces.

Guarantee: the cell of a row follows from that row alone, so a unit moves each table as it moves any other, by its
reach; they are paid from the share of ρ for detail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.domain import Type
from incrowd.core.recoding import Classes, Recoding
from incrowd.methods.synthesis.marginals.constraints import ConstraintKind, NumberConstraint
from incrowd.methods.synthesis.marginals.detail import FinerPieces, drawn_number, on_a_line, range_of, shape_of, tail_of
from incrowd.methods.synthesis.marginals.number_range import NumberRange

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Count = Callable[[tuple[Recoding, ...]], tuple[Sequence[Codes], Codes]]
_WEEK = 7
_GRAINS = (1000, 500, 100, 50, 10, 5)
_COARSE = 20  # a column of numbers has so many multiples of a grain, or the grain is not counted
_SINGLE, _GROWTH = 15, 1.25  # distances up to this one by one, longer ones in classes that grow so
_WIDEST = 1100  # values of a class, of columns whose distance is drawn: about three years of days
_CLEAR = 3.0  # standard deviations of noise above which a cell is not even, or not empty
_FAINT = 3.5  # the same for a run of cells with which a tail begins


class PatternKind(StrEnum):
    """What a pattern counts."""

    WEEKDAY = "weekday"
    ROUND = "round"
    DISTANCE = "distance"


@dataclass(frozen=True)
class ValuePattern:
    """One small table: what it counts, of which columns, and where its cells start.

    For round numbers the cells are multiples of each start but of none before, and the last cell has all others.
    """

    kind: PatternKind
    columns: tuple[str, ...]
    starts: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many cells it has."""
        return len(self.starts) + (self.kind is PatternKind.ROUND)

    @property
    def words(self) -> str:
        """What is counted, for people."""
        names = [f"“{name}”" for name in self.columns]
        return {
            PatternKind.WEEKDAY: f"days of the week of {names[0]}",
            PatternKind.ROUND: f"round numbers of {names[0]}",
            PatternKind.DISTANCE: f"distances from {names[0]} to {names[-1]}",
        }[self.kind]

    def cells(self, numbers: Sequence[Codes]) -> Codes:
        """Return the cell of each row, given whole numbers of its columns; -1 for none.

        >>> ValuePattern(PatternKind.ROUND, ("pay",), (100, 10)).cells([np.array([0, 30, 200, 7])]).tolist()
        [-1, 1, 0, 2]
        >>> days = ValuePattern(PatternKind.DISTANCE, ("from", "to"), (0, 1, 4))
        >>> days.cells([np.array([5, 5]), np.array([8, 4])]).tolist()
        [1, -1]
        """
        if self.kind is PatternKind.WEEKDAY:
            cells: Codes = numbers[0] % _WEEK
        elif self.kind is PatternKind.ROUND:
            divided = np.array(
                [numbers[0] % grain == 0 for grain in self.starts] + [np.ones(len(numbers[0]), np.bool_)]
            )
            cells = np.where(numbers[0] == 0, -1, np.argmax(divided, axis=0))
        else:
            cells = np.searchsorted(np.array(self.starts), numbers[1] - numbers[0], side="right") - 1
        return cells


def patterns_of(
    classes: Sequence[Classes], pieces: Mapping[int, FinerPieces], constraints: Sequence[NumberConstraint]
) -> tuple[ValuePattern, ...]:
    """Return the patterns that are counted, from what is declared: of columns that have finer pieces."""
    own = {classes[place].recoding.column.name: (classes[place], pieces[place]) for place in pieces}
    listed = {name: item for name, item in own.items() if drawn_number(item[0]) and _listed(item[0])}
    single = [_of_column(name, *item) for name, item in listed.items()]
    ranges = {name: range_of(item) for name, (item, _) in listed.items()}
    return (*(pattern for pattern in single if pattern is not None), *_distances(ranges, constraints))


def _listed(classes: Classes) -> bool:
    return Recoding(classes.recoding.column, 0).classes is not None


def _of_column(name: str, classes: Classes, pieces: FinerPieces) -> ValuePattern | None:
    """Return the pattern of a column by itself; none of declared weekdays, or of whole numbers counted one by one."""
    numbers, kind = range_of(classes), classes.recoding.column.type
    if kind is Type.DATE:
        rule = numbers.allowed
        declared = rule is not None and bool(rule.weekdays or rule.last_of)
        return None if declared else ValuePattern(PatternKind.WEEKDAY, (name,), tuple(range(_WEEK)))
    span = int(numbers.values.sum())
    grains = tuple(grain for grain in _GRAINS if span >= _COARSE * grain)
    several = kind is Type.INTEGER and len(pieces.starts or ()) < span
    return ValuePattern(PatternKind.ROUND, (name,), grains) if several and grains else None


def _distances(ranges: Mapping[str, NumberRange], constraints: Sequence[NumberConstraint]) -> list[ValuePattern]:
    """Return the distances of ordered pairs of days or whole numbers, of which neither is in another constraint."""
    named = [name for constraint in constraints for name in constraint.columns]
    pairs = [item.columns for item in constraints if item.kind is ConstraintKind.ORDER and len(item.columns) == 2]
    patterns = []
    for first, second in pairs:
        if not {first, second} <= ranges.keys() or named.count(first) + named.count(second) > 2:
            continue
        most = int(ranges[second].end - ranges[first].starts[0]) - 1
        if max(int(ranges[name].values.max()) for name in (first, second)) <= _WIDEST and most > 0:
            patterns.append(ValuePattern(PatternKind.DISTANCE, (first, second), distance_starts(most)))
    return patterns


def distance_starts(most: int) -> tuple[int, ...]:
    """Return where classes of distances start, up to the largest distance.

    >>> distance_starts(31)[-5:]
    (15, 19, 24, 30, 31)
    """
    starts = list(range(min(_SINGLE, most) + 1))
    while (following := math.ceil(starts[-1] * _GROWTH)) <= most and starts[-1] >= _SINGLE:
        starts.append(following)
    return (*starts, *([most] if starts[-1] < most else []))


def values_of(classes: Classes) -> Codes:
    """Return the whole number of each single value of a column, by its code."""
    listed = Recoding(classes.recoding.column, 0).classes
    if listed is None:
        raise AssertionError("patterns are counted of listed values")
    return on_a_line(listed.marks).astype(np.int64)


def measured_patterns(
    patterns: Sequence[ValuePattern], classes: Sequence[Classes], count: Count, noise: tuple[Fraction, Coins]
) -> tuple[NoisyPattern, ...]:
    """Count each pattern with noise of a scale; `count` counts rows by single values of some columns."""
    named, (scale, coins) = {item.recoding.column.name: item for item in classes}, noise
    noisy = []
    for pattern in patterns:
        own = [named[name] for name in pattern.columns]
        codes, times = count(tuple(Recoding(item.recoding.column, 0) for item in own))
        table = counted_cells(pattern, list(map(values_of, own)), codes, times)
        noisy.append(NoisyPattern(pattern, table + coins.gaussian(scale, pattern.size), scale))
    return tuple(noisy)


def counted_cells(pattern: ValuePattern, values: Sequence[Codes], codes: Sequence[Codes], times: Codes) -> Codes:
    """Return the table of a pattern: rows by codes of single values, each so many times; none where one is missing."""
    present = np.logical_and.reduce([(own >= 0) & (own < len(v)) for own, v in zip(codes, values, strict=True)])
    numbers = [v[own[present]] for own, v in zip(codes, values, strict=True)]
    cells, own_times = pattern.cells(numbers), times[present]
    return np.bincount(cells[cells >= 0], own_times[cells >= 0], pattern.size).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Distance:
    """Two columns of days or whole numbers in order, and the law of how far the second lies above the first."""

    columns: tuple[str, str]
    law: NumberRange


@dataclass(frozen=True, eq=False)
class NoisyPattern:
    """The noisy table of a pattern, and the scale of its noise."""

    pattern: ValuePattern
    counts: Codes
    scale: Fraction

    def weekdays(self) -> Floats:
        """Return how much fuller each phase of the week is than an even one; a phase within the noise is empty.

        >>> counts = np.array([900, 4, 900, 900, 900, 900, 900])
        >>> noisy = NoisyPattern(ValuePattern(PatternKind.WEEKDAY, ("day",), tuple(range(7))), counts, Fraction(10))
        >>> noisy.weekdays().round(2).tolist()
        [1.17, 0.0, 1.17, 1.17, 1.17, 1.17, 1.17]
        """
        own = np.where(self.counts < _CLEAR * float(self.scale), 0.0, self.counts.astype(np.float64))
        even: Floats = np.ones(_WEEK)
        return own * _WEEK / own.sum() if own.sum() > 0 else even

    def grains(self) -> tuple[tuple[int, float], ...]:
        """Return which part of the numbers is made a multiple of each grain: where that is clearly not chance.

        >>> pay = ValuePattern(PatternKind.ROUND, ("pay",), (100, 10))
        >>> NoisyPattern(pay, np.array([120, 875, 5]), Fraction(10)).grains()
        ((100, 0.120603), (10, 0.879397))
        """
        total = max(1.0, float(self.counts.sum()))
        even = np.bincount(self.pattern.cells([np.arange(1, _GRAINS[0] + 1)]), minlength=self.pattern.size)
        clear = self.counts - total * even / _GRAINS[0] > _CLEAR * float(self.scale)
        shares = {
            g: float(n) / total for g, n, own in zip(self.pattern.starts, self.counts, clear, strict=False) if own
        }
        rest = total * (1.0 - sum(shares.values()))
        every = sum(shares.values()) if rest < _CLEAR * float(self.scale) else 1.0
        return tuple((grain, round(share / every, 6)) for grain, share in shares.items())

    def distances(self) -> NumberRange | None:
        """Return the law of a distance, or None if no distance stands above the noise; a faint tail is empty."""
        widths = np.diff(np.array([*self.pattern.starts, self.pattern.starts[-1] + 1]))
        clear = tail_of(self.counts.astype(np.float64), float(self.scale), _FAINT)
        expected = shape_of(self.counts[:clear].astype(np.float64), widths[:clear], float(self.scale))
        if expected.sum() <= 0:
            return None
        chances = (*(expected / expected.sum()).tolist(), *[0.0] * (self.pattern.size - clear))
        starts = tuple(map(float, self.pattern.starts))
        return NumberRange(starts, starts[-1] + 1, whole=True, classes=(0,) * len(starts), chances=chances)


def manners(noisy: Sequence[NoisyPattern], name: str) -> tuple[Floats | None, tuple[tuple[int, float], ...]]:
    """Return how full the days of the week of a column are, and which of its numbers are round."""
    own = {item.pattern.kind: item for item in noisy if item.pattern.columns == (name,)}
    days, numbers = own.get(PatternKind.WEEKDAY), own.get(PatternKind.ROUND)
    return None if days is None else days.weekdays(), () if numbers is None else numbers.grains()


def distances_of(noisy: Sequence[NoisyPattern]) -> tuple[Distance, ...]:
    """Return the laws of distances that stand above the noise."""
    laws = [(item.pattern, item.distances()) for item in noisy if item.pattern.kind is PatternKind.DISTANCE]
    return tuple(Distance((pattern.columns[0], pattern.columns[1]), law) for pattern, law in laws if law is not None)
