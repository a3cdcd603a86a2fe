"""Joint numbers: the numbers of several columns drawn row by row so that declared constraints hold in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.marginals.constraints import Codes, ConstraintKind, NumberConstraint
from incrowd.methods.synthesis.marginals.number_range import NumberRange

_FAINT = 1e-9  # the chance of two classes that no distance joins: numbers are then drawn in order
_ROOM = 2**22  # weights that are held at once: 32 MB

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointNumbers:
    """Columns of numbers with the class of each row, and what holds between them; orders are closed.

    Numbers are drawn column after column.  Each lies in its class and between the ends that are left by the numbers
    drawn before and the classes of those drawn later.  Where the classes of a row can fulfil every constraint, there
    is always such a number: the lower end of each is the largest of lower ends, pair by pair below every upper end.
    The numbers of a column in `groups` rise from row to row in each class of a group.  The two of a pair in
    `distances` are drawn together, so far apart as its law says, and are in no other constraint.
    """

    ranges: Mapping[str, NumberRange]
    codes: Mapping[str, Codes]
    constraints: Sequence[NumberConstraint]
    groups: Mapping[str, Codes] = field(default_factory=dict)
    distances: Mapping[tuple[str, str], NumberRange] = field(default_factory=dict)

    def steps(self, chance: np.random.Generator) -> dict[str, Codes]:
        """Return a number for each column and row, in steps."""
        ends = {name: self.ranges[name].ends(codes) for name, codes in self.codes.items()}
        numbers = dict[str, Codes]()
        for pair, distance in self.distances.items():
            own = [self.ranges[name] for name in pair], [self.codes[name] for name in pair]
            steps = distant_steps(*own, distance, chance, self.groups.get(pair[0]))
            numbers |= dict(zip(pair, steps, strict=True))
        for name in sorted(self.codes.keys() - numbers.keys(), key=self._place):
            number_range, codes = self.ranges[name], self.codes[name]
            if self._kinds(name) == {ConstraintKind.UNIQUE}:
                numbers[name] = unique_steps(number_range, codes, chance)
                continue
            low, high = ends[name]
            for constraint in self.constraints:
                if name in constraint.columns:
                    low, high = self._left(constraint, name, (low, high), ends)
            numbers[name] = number_range.steps(codes, low, high, chance)
            if name in self.groups:
                numbers[name] = number_range.within(rising(numbers[name], codes, self.groups[name]), low, high)
            ends[name] = numbers[name], numbers[name]
        return numbers

    def _kinds(self, name: str) -> set[ConstraintKind]:
        return {constraint.kind for constraint in self.constraints if name in constraint.columns}

    def _place(self, name: str) -> int:
        """Return before how many others a column is drawn: those that it is not below, or those that it sums."""
        return sum(
            constraint.columns.index(name)
            for constraint in self.constraints
            if name in constraint.columns and constraint.kind is not ConstraintKind.UNIQUE
        )

    def _left(
        self,
        constraint: NumberConstraint,
        name: str,
        own: tuple[Codes, Codes],
        ends: Mapping[str, tuple[Codes, Codes]],
    ) -> tuple[Codes, Codes]:
        """Return the ends of a column's numbers that a constraint leaves, in rows where nothing of it is missing."""
        others = [other for other in constraint.columns if other != name]
        missing = [self.ranges[other].missing(self.codes[other]) for other in constraint.columns]
        present = ~np.logical_or.reduce(missing)
        low, high = own
        if constraint.kind is ConstraintKind.ORDER:
            first = constraint.columns[0] == name
            high = np.minimum(high, ends[others[0]][1]) if first else high
            low = low if first else np.maximum(low, ends[others[0]][0])
        else:
            total = constraint.columns[-1]
            parts = [other for other in others if other != total]
            least, most = (np.sum([ends[part][side] for part in parts], axis=0) for side in (0, 1))
            if name != total:
                least, most = ends[total][0] - most, ends[total][1] - least
            low, high = np.maximum(low, least), np.minimum(high, most)
        return np.where(present, low, own[0]), np.where(present, high, own[1])


def distant_steps(
    ranges: Sequence[NumberRange],
    codes: Sequence[Codes],
    distance: NumberRange,
    chance: np.random.Generator,
    group: Codes | None = None,
) -> tuple[Codes, Codes]:
    """Return numbers of two columns, the second as far above the first as a law of distances says.

    In rows of the same two classes every pair of numbers has the chance of both times that of their distance; where
    none has one, any pair in order.  The first numbers rise in each class of a group, where groups are given.

    >>> months = NumberRange((0.0, 31.0), 59.0, whole=True, days=True)
    >>> week = NumberRange((0.0, 7.0), 8.0, whole=True, classes=(0, 0), chances=(0.0, 1.0))
    >>> codes = np.array([0, 0, 2]), np.array([0, 1, 1])
    >>> first, second = distant_steps([months] * 2, codes, week, np.random.default_rng(1))
    >>> (second - first)[:2].tolist(), bool(first[1] >= 24)
    ([7, 7], True)
    """
    first, second = (own.steps(code, *own.ends(code), chance) for own, code in zip(ranges, codes, strict=True))
    both = np.flatnonzero(~(ranges[0].missing(codes[0]) | ranges[1].missing(codes[1])))
    for (one, other), rows in _alike(both, codes):
        low, weights = ranges[0].law(one)
        high, shares = ranges[1].law(other)
        above = _above(distance, low, (high, shares)).sum(axis=1)
        likely = above * weights if np.any(above * weights > 0) else above  # below some second number in any case
        first[rows] = low[_chosen(np.broadcast_to(likely, (1, len(low))), len(rows), chance)]
    if group is not None:
        first[both] = rising(first[both], codes[0][both], group[both])
    for (_, other), rows in _alike(both, codes):
        high, shares = ranges[1].law(other)
        for part in np.array_split(rows, 1 + len(rows) * len(high) // _ROOM):
            second[part] = high[_chosen(_above(distance, first[part], (high, shares)), len(part), chance)]
    return first, second


def _alike(rows: Codes, codes: Sequence[Codes]) -> Iterator[tuple[tuple[int, int], Codes]]:
    """Return the rows of each two classes of two columns."""
    width = int(codes[1][rows].max(initial=0)) + 1
    both = codes[0][rows] * width + codes[1][rows]
    order = np.argsort(both, kind="stable")
    cells, starts = np.unique(both[order], return_index=True)
    for cell, own in zip(cells.tolist(), np.split(rows[order], starts[1:]), strict=True):
        yield (cell // width, cell % width), own


def _above(distance: NumberRange, first: Codes, second: tuple[Codes, Floats]) -> Floats:
    """Return for each first number the weight of each second one; of those not below, where no distance has any."""
    numbers, shares = second
    apart = numbers[None, :] - first[:, None]
    weights: Floats = shares * (distance.below(apart + 1) - distance.below(apart))
    even = np.where(apart >= 0, _FAINT / max(1, len(numbers)), 0.0)
    return np.where(weights.sum(axis=1, keepdims=True) > 0, weights, even)


def _chosen(weights: Floats, rows: int, chance: np.random.Generator) -> Codes:
    """Return for each row a place, drawn by its line of weights or by the only one."""
    ends = np.cumsum(weights, axis=1)
    aim = chance.random(rows) * ends[:, -1]
    single = len(ends) == 1
    places = np.searchsorted(ends[0], aim, side="right") if single else (ends <= aim[:, None]).sum(axis=1)
    within: Codes = np.minimum(places, ends.shape[1] - 1)
    return within


def rising(steps: Codes, codes: Codes, group: Codes) -> Codes:
    """Return numbers in an order that rises within the rows of one group and class.

    >>> rising(np.array([7, 5, 6, 9]), np.array([0, 0, 0, 1]), np.array([1, 1, 2, 2])).tolist()
    [5, 7, 6, 9]
    """
    ordered = steps.copy()
    places = np.lexsort((np.arange(len(steps)), codes, group))
    ordered[places] = steps[np.lexsort((steps, codes, group))]
    return ordered


def unique_steps(number_range: NumberRange, codes: Codes, chance: np.random.Generator) -> Codes:
    """Return numbers of which no two are equal; rows that a class has no number for take one of another class.

    >>> numbers = NumberRange((0.0, 2.0), 4.0, whole=True)
    >>> sorted(unique_steps(numbers, np.array([0, 0, 0]), np.random.default_rng(2)).tolist())[:2]
    [0, 1]
    """
    classes = np.arange(number_range.size)
    lows, highs = number_range.ends(classes)
    room, present = highs - lows + 1, ~number_range.missing(codes)
    if present.sum() > room.sum():
        raise InvalidParameter(
            f"{int(present.sum()):,} rows cannot have {int(room.sum()):,} different values: draw fewer rows."
        )
    places = _placed(np.where(present, codes, -1), room, chance)
    steps = np.zeros(len(codes), np.int64)
    for code in classes:
        rows = np.flatnonzero(places == code)
        steps[rows] = lows[code] + chance.choice(int(room[code]), len(rows), replace=False)
    return steps


def _placed(codes: Codes, room: Codes, chance: np.random.Generator) -> Codes:
    """Return classes with no more rows than each has room for; those too many go where there is room."""
    places, count = codes.copy(), np.bincount(codes[codes >= 0], minlength=len(room))
    excess = np.concatenate(
        [np.flatnonzero(codes == code)[room[code] :] for code in range(len(room))] or [np.zeros(0, np.int64)]
    )
    ends = np.cumsum(np.maximum(room - count, 0))
    spare = chance.choice(int(ends[-1]), len(excess), replace=False)
    places[excess] = np.searchsorted(ends, spare, side="right")
    return places
