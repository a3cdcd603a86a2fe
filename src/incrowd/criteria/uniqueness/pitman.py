"""Pitman's model: how many people are unique, if classes grow as tables fill in Pitman's restaurant.

A person who comes joins a class of i people with a weight of i − α, or, where there are u classes, founds one more with
a weight of θ + uα.  That a sample of n rows falls into u classes of certain sizes has a probability proportional to

    Π (θ + iα) over 0 < i < u, divided by Π (θ + i) over 0 < i < n, times Π (i − α) over 0 < i < size for every class,

and θ and α are taken where it is greatest, with α from 0 (Ewens' model) up to 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.criteria.uniqueness.roots import root

_FIRST = 24
"""So many terms of a sum are added one by one; the rest is an integral with corrections below 1e-13 of a term."""
_HIGHEST = 1 - 1e-9
_TINY = 1e-12


@dataclass(frozen=True)
class Pitman:
    """The parameters of a population.

    >>> round(Pitman(theta=10.0, alpha=0.0).uniques(1000), 9)       # Nθ / (θ + N − 1)
    9.910802775
    """

    theta: float
    alpha: float

    def uniques(self, people: int) -> float:
        """Return how many people are expected to be alone in their class among so many.

        The person who comes last is alone with the probability that a new class is founded and, people being
        exchangeable, so is everyone: Π (θ + α + i) / (θ + 1 + i) over i < N − 1.
        """
        theta, alpha = self.theta, self.alpha
        log = math.lgamma(theta + alpha + people - 1) - math.lgamma(theta + people)
        return people * math.exp(log + math.lgamma(theta + 1) - math.lgamma(theta + alpha))


def fitted(sizes: NDArray[np.int64]) -> Pitman | None:
    """Return the most likely parameters for classes of these sizes, or None where no parameters are the most likely.

    For each α the best θ is found by its score, and then α by the score along these θ.  If all rows are alone, or all
    in one class, the likelihood grows without end and there is no estimate.

    Source: Pitman 1995; Hoshino 2001, "Applying Pitman's sampling formula to microdata disclosure risk assessment".

    >>> found = fitted(np.repeat([1, 2, 3, 9, 30], [12, 4, 2, 1, 1]))
    >>> round(found.theta, 6), round(found.alpha, 6)
    (1.475831, 0.556131)
    """
    classes, rows = len(sizes), int(sizes.sum())
    if classes in (1, rows):
        return None
    larger = _larger(sizes)

    def slope(alpha: float) -> float:
        theta = _theta(alpha, classes, rows)
        places = np.arange(1.0, classes)
        inside = np.arange(1.0, len(larger) + 1)
        return float((places / (theta + alpha * places)).sum() - (larger / (inside - alpha)).sum())

    if slope(0.0) <= 0:
        return Pitman(_theta(0.0, classes, rows), 0.0)
    alpha = root(slope, 0.0, _HIGHEST)
    return Pitman(_theta(alpha, classes, rows), alpha) if alpha < _HIGHEST - _TINY else None


def _larger(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for i = 1, 2, … how many classes have more than i rows."""
    each = np.bincount(sizes)
    return (len(sizes) - np.cumsum(each))[1:-1]


def _theta(alpha: float, classes: int, rows: int) -> float:
    """Return the most likely θ for an α: above −α, where the score falls from infinity to below 0."""

    def slope(shift: float) -> float:
        return reciprocals(shift - alpha, alpha, classes - 1) - reciprocals(shift - alpha, 1.0, rows - 1)

    high = 1.0
    while slope(high) > 0:
        high *= 4
    low = high / 4
    while slope(low) < 0:
        low /= 4
    return root(slope, low, high) - alpha


def reciprocals(start: float, step: float, terms: int) -> float:
    """Return Σ 1 / (start + i·step) over i = 1 … terms, by Euler and Maclaurin's formula after the first few.

    >>> round(reciprocals(0.0, 1.0, 100_000) - math.log(100_000), 9), reciprocals(2.0, 0.0, 4)
    (0.577220665, 2.0)
    """
    first = min(terms, _FIRST)
    total = math.fsum(1 / (start + place * step) for place in range(1, first + 1))
    if terms == first:
        return total
    low, high = start + (first + 1) * step, start + terms * step
    rest = (terms - first - 1) / low
    span = rest * (math.log1p(rest * step) / (rest * step) if rest * step > _TINY**2 else 1.0)
    ends = (1 / low + 1 / high) / 2
    bend = step / 12 * (low**-2 - high**-2) - step**3 / 120 * (low**-4 - high**-4)
    return total + span + ends + bend + step**5 / 252 * (low**-6 - high**-6)
