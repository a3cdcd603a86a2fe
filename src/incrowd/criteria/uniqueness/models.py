"""Models of a population: how many of its people are unique, from the classes of a sample.

Pitman's model: how many people are unique, if classes grow as tables fill in Pitman's restaurant.

A person who comes joins a class of i people with a weight of i − α, or, where there are u classes, founds one more with
a weight of θ + uα.  That a sample of n rows falls into u classes of certain sizes has a probability proportional to

    Π (θ + iα) over 0 < i < u, divided by Π (θ + i) over 0 < i < n, times Π (i − α) over 0 < i < size for every class,

and θ and α are taken where it is greatest, with α from 0 (Ewens' model) up to 1.

The slide negative binomial model: each class of the population has one person, and as many more as a coin decides.

The number of further people is negative binomial with size α and probability β, so P(one person) = β^α.  If a share π
of the people is drawn, a class of the model shows one row, or two, with the probabilities (q = 1 − β, D = β + πq)

    P₁ = π (β/D)^α (1 + α(1 − π)q/D)        P₂ = π²αq (β/D)^α (2D + (1 − π)(α + 1)q) / (2D²):

put 1 − π + πs for s in the generating function s·(β/(1 − qs))^α, and take the coefficients of s and s².
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function goes from above to below 0, to the last digits, by false position and halving in turn.

    Precondition: it is not below 0 at `low` and not above at `high`; otherwise an end comes back.

    >>> round(root(lambda x: 2 - x * x, 0.0, 9.0), 12)
    1.414213562373
    """
    above, below = function(low), function(high)
    for turn in range(200):
        if high - low <= 4e-16 * max(abs(low), abs(high)):
            break
        middle = (low + high) / 2
        if turn % 3 and above != below and math.isfinite(above - below):
            middle = low + (high - low) * above / (above - below)
        value = function(middle)
        if value > 0:
            low, above = middle, value
        else:
            high, below = middle, value
    return (low + high) / 2


_FIRST = 24
"""So many terms of a sum are added one by one; the rest is an integral with corrections below 1e-13 of a term."""
_HIGHEST = 1 - 1e-9  # α of Pitman's model lies below 1; at 1 its equations are singular
_TINY = 1e-12  # the root search ends at its bound where there is no root


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


def fit_pitman(sizes: NDArray[np.int64]) -> Pitman | None:
    """Return the most likely parameters for classes of these sizes, or None where no parameters are the most likely.

    For each α the best θ is found by its score, and then α by the score along these θ.  If all rows are alone, or all
    in one class, the likelihood grows without end and there is no estimate.

    Source: Pitman 1995; Hoshino 2001, "Applying Pitman's sampling formula to microdata disclosure risk assessment".

    >>> found = fit_pitman(np.repeat([1, 2, 3, 9, 30], [12, 4, 2, 1, 1]))
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
    by_size = np.bincount(sizes)
    return (len(sizes) - np.cumsum(by_size))[1:-1]


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


_LOGITS = np.linspace(-30.0, 15.0, 361)


def classes_of_population(sizes: NDArray[np.int64], rate: float) -> float:
    """Return an estimate of how many classes the population has, from those of a sample that drew a share of it.

    Source: Haas & Stokes 1998, the third modification of Shlosser's estimator.

    >>> classes_of_population(np.array([1, 1, 2, 3]), 1.0)
    4.0
    """
    distinct_sizes, times = np.unique(sizes, return_counts=True)
    alone = float(times[distinct_sizes == 1].sum())
    absent = (1 - rate) ** distinct_sizes * times
    if not alone or rate == 1:
        return float(len(sizes))
    once = (distinct_sizes * rate * (1 - rate) ** (distinct_sizes - 1.0) * times).sum()
    squared = (distinct_sizes * rate**2 * (1 - rate**2) ** (distinct_sizes - 1.0) * times).sum()
    spread = (
        (1 - rate**2) ** distinct_sizes - (1 - rate) ** distinct_sizes
    ) * times  # the second factor of `absent`, which overflows
    return float(len(sizes) + alone * squared / spread.sum() * (absent.sum() / once) ** 2)


def snb_uniques(sizes: NDArray[np.int64], people: int) -> float | None:
    """Return the estimated number of unique people in a population of so many, or None if no parameters fit.

    With the number of classes estimated first, α and β are where the expected numbers of classes of one row and of two
    are those seen.  For each β, P₂/P₁ grows with α, and the α that gives the seen ratio solves a quadratic equation;
    what is left is one equation in β.

    Precondition: the rows are a simple random sample of the population.

    Source: Chen & Keller-McNulty 1998, "Estimation of identification disclosure risk in microdata"; the probabilities
    are derived in the module.

    >>> round(snb_uniques(np.repeat([1, 2, 3, 4], [50, 30, 15, 5]), 400), 3)
    28.676
    """
    rate = float(sizes.sum()) / people
    one, two = int((sizes == 1).sum()), int((sizes == 2).sum())
    if not one or rate == 1:
        return float(one)
    if not two:
        return None
    classes = classes_of_population(sizes, rate)

    def excess(logit: float) -> float:
        alpha, rest, inner = _fitting(logit, rate, two / one)
        beta = 1 - rest
        share = np.exp(alpha * np.log(beta / inner)) * (1 + alpha * (1 - rate) * rest / inner)
        return float(classes * rate * share - one)

    values = np.array([excess(float(logit)) for logit in _LOGITS])
    turns = np.flatnonzero(np.diff(np.sign(values)) != 0)
    if not len(turns) or not np.isfinite(values).all():
        return None
    place = int(turns[-1])
    sign = 1.0 if values[place] > 0 else -1.0
    logit_root = root(lambda logit: sign * excess(logit), float(_LOGITS[place]), float(_LOGITS[place + 1]))
    alpha, rest, _ = _fitting(logit_root, rate, two / one)
    return min(float(people), classes * float(np.exp(alpha * np.log1p(-rest))))


def _fitting(logit: float, rate: float, ratio: float) -> tuple[float, float, float]:
    """Return for β, given by its logit, the α with which P₂/P₁ is the ratio, and q and D."""
    rest = float(1 / (1 + np.exp(logit)))
    inner = 1 - (1 - rate) * rest
    more = (1 - rate) * rest
    target = 2 * inner * ratio / (rate * rest)  # α(2D + B(α + 1)) / (D + αB) with B = (1 − π)q
    half = 2 * inner + more - target * more
    reach = float(np.sqrt(half**2 + 4 * more * target * inner))
    alpha = 2 * target * inner / (half + reach) if half > 0 else (reach - half) / (2 * more)  # neither cancels
    return alpha, rest, inner
