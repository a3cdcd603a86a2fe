"""Vectors: rows as vectors of whole numbers whose length is bounded by declaration, and by clipping each by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from incrowd.methods.learning.inputs import UNIT, NumberScale, features_of
from incrowd.methods.learning.moves import gaussian_scale, squared_move
from incrowd.methods.learning.statistics import Vectors
from incrowd.methods.learning.steps import MultiplyColumns

if TYPE_CHECKING:
    from incrowd.core.recoding import Classes
    from incrowd.core.unit import Unit
    from incrowd.methods.learning.fits import Floats


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
        number = [NumberScale.of(each) is not None for each in inputs]
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
        found, start = [], 0
        for table in self.vectors.features:
            found.append(table @ slopes[start : start + table.shape[1]])
            start += table.shape[1]
        return tuple(found)

    def declared_units(self, points: Floats) -> Floats:
        """Return points where numbers have the units of their column, and classes of others are shares."""
        found, start = np.array(points, np.float64), 0
        for classes, table in zip(self.inputs, self.vectors.features, strict=True):
            part = slice(start, start + table.shape[1])
            scale = NumberScale.of(classes)
            found[:, part] /= UNIT
            if scale is not None:
                found[:, part] = scale.center + scale.half * found[:, part]
            start += table.shape[1]
        return found


def product_step(numbers: int, square: int, rho: Fraction, unit: Unit) -> MultiplyColumns:
    """Return the step that sums products with noise that costs at most ρ."""
    most = squared_move(unit, square**2, aligned=True)
    scale = gaussian_scale(rho, most)
    return MultiplyColumns(numbers, square, scale, gaussian_scale(Fraction(1), scale**2))
