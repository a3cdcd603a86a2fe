"""Regression: the same regression on both tables, coefficient by coefficient.

The *overlap* of two 95 % intervals is the mean of what they share over the length of each: 1 if they are the same,
0 if they do not meet.  The *distance* is how far the coefficient moved, in standard errors of the original one.

Source: Karr, Kohnen, Oganian, Reiter & Sanil 2006.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.measures.coded import Coded
from incrowd.measures.utility.features import Features, Matrix

_Z = 1.959963984540054
_MOST = 50_000


@dataclass(frozen=True)
class CoefficientEstimate:
    """A coefficient with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Coefficient:
    """A coefficient before and after, with how far the intervals overlap and how far it moved."""

    before: CoefficientEstimate
    after: CoefficientEstimate

    @property
    def overlap(self) -> float:
        """How far the two intervals overlap, from 0 to 1."""
        one, other = self.before, self.after
        shared = min(one.high, other.high) - max(one.low, other.low)
        lengths = (one.high - one.low, other.high - other.low)
        if shared < 0 or min(lengths) <= 0:
            return 0.0 if shared < 0 or max(lengths) > 0 else 1.0
        return float(sum(shared / length for length in lengths) / 2.0)

    @property
    def distance(self) -> float:
        """How far it moved, in standard errors of the original one."""
        error = (self.before.high - self.before.low) / (2.0 * _Z)
        return abs(self.after.value - self.before.value) / error if error > 0 else 0.0


def least_squares(design: Matrix, target: NDArray[np.float64]) -> tuple[CoefficientEstimate, ...]:
    """Return the coefficients of a linear regression with their intervals, the constant first.

    >>> [round(each.value, 6) for each in least_squares(np.array([[0.0], [1], [2]]), np.array([1.0, 3, 5]))]
    [1.0, 2.0]
    """
    whole = np.hstack([np.ones((len(design), 1)), design])
    products = whole.T @ whole
    inverse = np.linalg.pinv(products, hermitian=True)
    found = inverse @ whole.T @ target
    left = target - whole @ found
    variance = float(left @ left) / max(1, len(target) - np.linalg.matrix_rank(products, hermitian=True))
    errors = _Z * np.sqrt(np.maximum(variance * np.diag(inverse), 0.0))
    return tuple(CoefficientEstimate(float(b), float(b - e), float(b + e)) for b, e in zip(found, errors, strict=True))


def coefficients(before: Coded, after: Coded, target: str) -> tuple[Coefficient, ...]:
    """Return the regression of one ordered column on all others, before and after, without the constant."""
    place = before.place(target)
    if before.positions[place] is None:
        raise InvalidParameter(f"{target!r} is neither numbers nor days: a regression needs one of those.")
    others = [column for column in range(len(before.names)) if column != place]
    if not others:
        return ()
    features, fits = Features(before, others), []
    for table in (before.picked(_MOST), after.picked(_MOST)):
        values = table.numbers(place)
        known = np.isfinite(values)
        if np.count_nonzero(known) <= features.width + 1:
            return ()
        fits.append(least_squares(features.of(table)[known], values[known]))
    return tuple(Coefficient(one, other) for one, other in zip(fits[0][1:], fits[1][1:], strict=True))
