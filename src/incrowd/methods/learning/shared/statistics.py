"""Statistics: what models are made from: integer sums over records, with integer noise.

All rows with the same codes are one record with the number of them, as the engine counted them: nothing depends on the
order or the batches of rows, or on how many there are.  Every sum is one of integers that doubles hold exactly
(below 2^53), or of 64-bit integers, so no order of adding changes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.coins import Coins
from incrowd.core.steps.counts import Law
from incrowd.mechanisms.numbers import plus
from incrowd.methods.learning.shared.inputs import UNIT, NumberScale, features_of
from incrowd.methods.learning.shared.moves import gaussian_scale, squared_move
from incrowd.methods.learning.shared.steps import MultiplyColumns
from incrowd.methods.shared.columns import row_limits

if TYPE_CHECKING:
    from incrowd.core.counts import Counts
    from incrowd.core.recoding import Classes
    from incrowd.core.table import Table
    from incrowd.core.unit import Unit
    from incrowd.methods.learning.shared.fits import Floats


Integers = NDArray[np.int64]
_CHUNK = 2**14  # rows of counts at a time
_FEW = 2**18  # up to so many they stay unpacked, 2 MB a column; else they are unpacked again in each round
# below it sums of whole numbers are exact in floats, whatever their order, and NumPy's products may be used
_EXACT = 2**53


@dataclass(frozen=True, eq=False)
class Records:
    """Distinct records as keys, with how many rows are like each; `sizes` are the classes of the columns in order."""

    counts: Counts
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, table: Table, classes: Sequence[Classes], coins: Coins) -> Records:
        """Count the records of a table in one pass, at most so many rows of each person as the unit allows."""
        cells = Cells(tuple(item.recoding for item in classes))
        counts = table.engine.count(table.rows, cells, *row_limits(table, coins))
        return cls(counts, tuple(map(len, classes)))

    def pieces(self) -> Iterator[tuple[Integers, Integers]]:
        """Return the codes of some records at a time, a row each, and how many rows are like each."""
        return iter(self._held) if len(self.counts) <= _FEW else self._unpacked()

    @cached_property
    def _held(self) -> tuple[tuple[Integers, Integers], ...]:
        """All pieces, where they are few: they are read once for each round."""
        return tuple(self._unpacked())

    def _unpacked(self) -> Iterator[tuple[Integers, Integers]]:
        for start in range(0, len(self.counts), _CHUNK):
            codes = self.counts.layout.unpack(self.counts.keys[start : start + _CHUNK])
            yield np.stack(codes, axis=1).astype(np.int64), self.counts.counts[start : start + _CHUNK]


def added(places: Integers, amounts: Integers, size: int) -> Integers:
    """Return the sum of the amounts at each place, exactly.

    >>> added(np.array([0, 2, 0]), np.array([5, -1, 2]), 3).tolist()
    [7, 0, -1]
    """
    if int(np.abs(amounts).sum()) < _EXACT:
        return np.bincount(places, amounts, size).astype(np.int64)
    total = np.zeros(size, np.int64)
    np.add.at(total, places, amounts)
    return total


def crossed(left: Integers, right: Integers) -> Integers:
    """Return leftᵀ · right exactly: by doubles where every partial sum is below 2^53, else in 64-bit integers.

    >>> crossed(np.array([[1, 2]]), np.array([[3]])).tolist()
    [[3], [6]]
    """
    most = int(np.abs(left).max(initial=0)) * int(np.abs(right).sum(axis=0).max(initial=0))
    if most < _EXACT:
        return np.rint(left.T.astype(np.float64) @ right.astype(np.float64)).astype(np.int64)
    return left.T @ right


def clipped(vectors: Integers, square: int) -> Integers:
    """Return each vector, or if its squared length is above `square` a shorter one in about the same direction.

    A vector is multiplied by √square over its length and every number is cut towards zero: its length can only shrink.

    >>> clipped(np.array([[3, 4], [6, 8]]), 25).tolist()
    [[3, 4], [3, 4]]
    """
    lengths = (vectors * vectors).sum(axis=1)
    roots = np.sqrt(lengths.astype(np.float64)).astype(np.int64)
    roots += roots * roots < lengths
    radius = int(np.sqrt(float(square)))
    radius -= radius * radius > square
    shorter = np.sign(vectors) * (np.abs(vectors) * radius // np.maximum(1, roots)[:, None])
    return np.where((lengths > square)[:, None], shorter, vectors)


RESIDUAL = 2**16
"""What a residual of 1 is in integers."""
SCORE = 2**10
"""What a score of 1 is in integers."""
_WIDEST = 16  # beyond ±16 the sigmoid is 0 or 1 to the last digit of `RESIDUAL`
_GRID = np.arange(2 * _WIDEST * SCORE + 1)
_SIGMOID: Integers = np.rint(RESIDUAL / (1.0 + np.exp(_WIDEST - _GRID / SCORE))).astype(np.int64)
_DECAY: Integers = np.rint(2.0**30 * np.exp(-_GRID / SCORE)).astype(np.int64)


def noisy(values: Integers, scale: Fraction, coins: Coins, law: Law = Law.GAUSSIAN) -> Integers:
    """Return whole numbers with integer noise of a scale, each with its own."""
    draw = coins.gaussian if law is Law.GAUSSIAN else coins.laplace
    return plus(values, draw(scale, values.size))


def class_tables(records: Records, outputs: int) -> Integers:
    """Return how many rows of each class of the target have each class of the other columns, one column after another.

    The target is the last column; rows of classes of it from `outputs` on take no part.  A row adds 1 to one place for
    each column.
    """
    places = _Places.of(records.sizes)
    total = np.zeros((places.size, outputs), np.int64)
    for codes, times in records.pieces():
        inside, times_, target = _with_target(codes, times, outputs)
        for column, start in enumerate(places.starts):
            cells = (inside[:, column] + start) * outputs + target
            total += added(cells, times_, places.size * outputs).reshape(total.shape)
    return total


@dataclass(frozen=True)
class _Places:
    """Where the classes of each column start in a list of the classes of all columns but the target."""

    starts: tuple[int, ...]
    size: int

    @classmethod
    def of(cls, sizes: Sequence[int]) -> _Places:
        ends = np.cumsum([0, *sizes[:-1]]).tolist()
        return cls(tuple(ends[:-1]), ends[-1])


def _with_target(codes: Integers, times: Integers, outputs: int) -> tuple[Integers, Integers, Integers]:
    inside = codes[:, -1] < outputs
    return codes[inside, :-1], times[inside], codes[inside, -1]


def residuals(scores: Integers, target: Integers) -> Integers:
    """Return by how much each class of the target differs from what scores say, in units of `RESIDUAL`.

    With one score for two classes the residual is at most RESIDUAL; with a score each, their squares add up to at most
    2 · RESIDUAL², because the expected shares are not negative and add up to at most RESIDUAL.

    >>> residuals(np.array([[0]]), np.array([1])).tolist()
    [[32768]]
    """
    if scores.shape[1] == 1:
        expected = _SIGMOID[np.clip(scores[:, 0] + _WIDEST * SCORE, 0, len(_SIGMOID) - 1)]
        alone: Integers = (RESIDUAL * target - expected)[:, None]
        return alone
    below = scores.max(axis=1, keepdims=True) - scores
    weights = _DECAY[np.minimum(below, len(_DECAY) - 1)]
    result: Integers = -(weights * RESIDUAL // weights.sum(axis=1, keepdims=True))
    result[np.arange(len(target)), target] += RESIDUAL
    return result


def gradient(records: Records, outputs: int, intercepts: Integers, scores: Integers) -> Integers:
    """Return the sum of residuals over rows: for each class of each column, and in the last line over all rows.

    `scores` are integers for each class of all columns but the target, a column for each output.
    """
    places = _Places.of(records.sizes)
    width = scores.shape[1]
    total = np.zeros((places.size + 1, width), np.int64)
    for codes, times in records.pieces():
        inside, times_, target = _with_target(codes, times, outputs)
        cells = inside + np.array(places.starts)
        errors = residuals(intercepts + scores[cells].sum(axis=1), target) * times_[:, None]
        for output in range(width):
            own = np.repeat(errors[:, output], cells.shape[1])
            total[:-1, output] += added(cells.ravel(), own, places.size)
        total[-1] += errors.sum(axis=0)
    return total


def target_sums(records: Records, units: Integers, weight: int) -> Integers:
    """Return for each class of each column `weight` for each row and the sum of targets, one column after another.

    `units` has the number of each class of the target (the last column); rows of other classes take no part.
    """
    places = _Places.of(records.sizes)
    total = np.zeros((places.size, 2), np.int64)
    for codes, times in records.pieces():
        inside, times_, target = _with_target(codes, times, len(units))
        for column, start in enumerate(places.starts):
            cells = inside[:, column] + start
            total[:, 0] += weight * added(cells, times_, places.size)
            total[:, 1] += added(cells, units[target] * times_, places.size)
    return total


def number_gradient(records: Records, units: Integers, intercepts: Integers, scores: Integers) -> Integers:
    """Return the sum of residuals over rows as `gradient` does, for a number: how far it lies from what scores say.

    `units` has the number of each class of the target in units of `SCORE`.  A residual is cut at 1 and at −1, which
    are RESIDUAL here.
    """
    places = _Places.of(records.sizes)
    total = np.zeros((places.size + 1, 1), np.int64)
    for codes, times in records.pieces():
        inside, times_, target = _with_target(codes, times, len(units))
        cells = inside + np.array(places.starts)
        off = units[target] - intercepts[0] - scores[cells, 0].sum(axis=1)
        errors = np.clip(off * (RESIDUAL // SCORE), -RESIDUAL, RESIDUAL) * times_
        total[:-1, 0] += added(cells.ravel(), np.repeat(errors, cells.shape[1]), places.size)
        total[-1] += errors.sum()
    return total


@dataclass(frozen=True, eq=False)
class Vectors:
    """Records as vectors: the features of each column, of which numbers are clipped together, then what follows them.

    `numbers` are the places of the features that are clipped to a squared length; the others have the length that
    categories have.
    """

    features: tuple[Integers, ...]
    numbers: NDArray[np.bool_]
    square: int

    def of(self, codes: Integers) -> Integers:
        """Return the vector of each record."""
        whole = np.concatenate([table[codes[:, place]] for place, table in enumerate(self.features)], axis=1)
        if self.numbers.any():
            whole[:, self.numbers] = clipped(whole[:, self.numbers], self.square)
        return whole


def moments(records: Records, vectors: Vectors, ends: Integers | None, one: int) -> Integers:
    """Return the sum over rows of z zᵀ, where z is the row's vector, then `one`, then what its target is.

    `ends` has a line for each class of the target (the last column), None where there is none; rows of other classes
    of it take no part.
    """
    total: Integers | None = None
    for codes, times in records.pieces():
        inside, times_, tail = codes, times, np.zeros((len(codes), 0), np.int64)
        if ends is not None:
            inside, times_, target = _with_target(codes, times, len(ends))
            tail = ends[target]
        z = np.concatenate([vectors.of(inside), np.full((len(inside), 1), one), tail], axis=1)
        part = crossed(z, z * times_[:, None])
        total = part if total is None else total + part
    width = int(vectors.numbers.size) + 1 + (0 if ends is None else ends.shape[1])
    return np.zeros((width, width), np.int64) if total is None else total


def noisy_moments(total: Integers, scales: tuple[Fraction, Fraction], coins: Coins) -> Integers:
    """Return a symmetric matrix with noise of the first scale on its diagonal and of the second beside it."""
    above = np.triu_indices(len(total), 1)
    result = np.diag(noisy(np.diagonal(total).copy(), scales[0], coins))
    result[above] = noisy(total[above], scales[1], coins)
    return result + np.triu(result, 1).T


def cluster_sums(records: Records, vectors: Vectors, centers: Integers, weight: int) -> Integers:
    """Return for each center, over the rows that are nearest to it, `weight` for each row and the sum of their vectors.

    Distances are whole numbers; among equally near centers the first one counts.
    """
    total = np.zeros((len(centers), centers.shape[1] + 1), np.int64)
    lengths = (centers * centers).sum(axis=1)
    for codes, times in records.pieces():
        points = vectors.of(codes)
        nearest = (lengths - 2 * crossed(points.T, centers.T)).argmin(axis=1)
        total[:, 0] += weight * added(nearest, times, len(centers))
        for place in range(points.shape[1]):
            total[:, place + 1] += added(nearest, points[:, place] * times, len(centers))
    return total


def grid_counts(records: Records, parts: Sequence[Integers], size: int) -> Integers:
    """Return how many rows lie in each cell of a grid; `parts` has for each column the part of each code."""
    total = np.zeros(size ** len(parts), np.int64)
    for codes, times in records.pieces():
        cells = np.zeros(len(codes), np.int64)
        for column, own in enumerate(parts):
            cells = cells * size + own[codes[:, column]]
        total += added(cells, times, len(total))
    return total


@dataclass(frozen=True, eq=False)
class VectorSpace:
    """The vectors of some columns, and the most that the squares of one of them add up to."""

    inputs: tuple[Classes, ...]
    vectors: Vectors
    square: int

    @classmethod
    def of(cls, inputs: Sequence[Classes], reach: Fraction) -> VectorSpace:
        """Return the space of some columns, of which numbers are clipped to a share of their longest vector.

        The share is `reach` where there are many columns of numbers, of which few are at their bounds at once, and all
        of it where there is one.
        """
        features = tuple(map(features_of, inputs))
        number = [NumberScale.of(item) is not None for item in inputs]
        places = np.concatenate(
            [np.full(table.shape[1], own) for table, own in zip(features, number, strict=True)]
        ).astype(np.bool_)
        share = reach + (1 - reach) / max(1, sum(number))
        clip = math.floor(share**2 * sum(number) * UNIT**2)
        return cls(tuple(inputs), Vectors(features, places, clip), clip + UNIT**2 * (len(number) - sum(number)))

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return int(self.vectors.numbers.size)

    def tables(self, slopes: Floats) -> tuple[Floats, ...]:
        """Return what each class of each column adds to a linear function, a column for each output."""
        parts, start = [], 0
        for table in self.vectors.features:
            parts.append(table @ slopes[start : start + table.shape[1]])
            start += table.shape[1]
        return tuple(parts)

    def declared_units(self, points: Floats) -> Floats:
        """Return points where numbers have the units of their column, and classes of others are shares."""
        units, start = np.array(points, np.float64), 0
        for classes, table in zip(self.inputs, self.vectors.features, strict=True):
            part = slice(start, start + table.shape[1])
            scale = NumberScale.of(classes)
            units[:, part] /= UNIT
            if scale is not None:
                units[:, part] = scale.center + scale.half * units[:, part]
            start += table.shape[1]
        return units


def product_step(numbers: int, square: int, rho: Fraction, unit: Unit) -> MultiplyColumns:
    """Return the step that sums products with noise that costs at most ρ."""
    most = squared_move(unit, square**2, aligned=True)
    scale = gaussian_scale(rho, most)
    return MultiplyColumns(numbers, square, scale, gaussian_scale(Fraction(1), scale**2))
