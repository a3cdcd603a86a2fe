"""Frequency bounds: what the class sizes of a sample show about a population, whatever that population is like.

N_F is the unknown number of classes with F people in the population.  Each person was sampled with probability π, so a
class of F people has f rows in the sample with the binomial probability p_F(f).  The numbers of classes with 1, 2, 3, …
rows, in bins b, have the means Σ N_F·p_F(b).  They were observed, and each lies near its mean: sums of independent
variables in [0, 1] with mean m reach x with probability at most exp(−(x·ln(x/m) − x + m)), on either side (Chernoff).

The two measures have means that are linear in N_F, too, over the rows that are unique in the sample:

    τ₁, how many are unique in the population          π·N₁
    τ₂, right guesses, one for each: Σ 1/F             Σ N_F·π(1 − π)^(F − 1)

So two linear programs give the least and the largest mean that the observed sizes allow, and the same inequality gives
the measure itself.  No model of the population is assumed.  All errors add up to 1 − confidence: an interval is wide
where the sample cannot tell, and for small samples it usually cannot tell τ₁.

Source: Chernoff 1952; Efron & Thisted 1976 for linear programs over unseen frequencies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.score import CONFIDENCE

Numbers = NDArray[np.float64]
_EDGES = (1, 2, 3, 4, 5, 6, 8, 11, 16, 23, 33)
"""The first sizes of the bins of class sizes."""
_SINGLE, _RATIO, _TOP = 64, 1.02, 60.0
"""Population sizes of classes: each up to 64, then in steps of 2 %, until a class has 60 rows on average."""
_OWN = 0.2
"""The share of the error that a measure's distance from its mean gets; the bins divide the rest."""
_STEPS = 60


@dataclass(frozen=True)
class FrequencyBounds:
    """Intervals of τ₁ and τ₂; `possible` is false where no population explains the sizes as a random sample."""

    tau1: tuple[float, float]
    tau2: tuple[float, float]
    possible: bool = True


def frequency_bounds(sizes: NDArray[np.int64], sampled: float, confidence: float = CONFIDENCE) -> FrequencyBounds:
    """Return intervals of τ₁ and τ₂ from the class sizes of a sample, which hold with the confidence at least.

    >>> bounds = frequency_bounds(np.repeat([1, 2, 3], [400, 20, 1]), 0.5)
    >>> [round(end) for end in bounds.tau2]
    [239, 400]
    """
    alone = float(np.count_nonzero(sizes == 1))
    people = _people(sampled)
    chances = _chances(people, sampled)
    observed = np.diff(np.append(np.searchsorted(np.sort(sizes), _EDGES), len(sizes)))
    error = 1.0 - confidence
    depth = math.log(2 * len(_EDGES) / (error * (1.0 - _OWN)))
    limits = np.array([_means_of(float(number), depth) for number in observed])
    intervals = []
    for means in (np.where(people == 1, sampled, 0.0), sampled * (1.0 - sampled) ** (people - 1.0)):
        ends = _program(means, chances, limits)
        if ends is None:
            return FrequencyBounds((0.0, alone), (0.0, alone), possible=False)
        low, high = _values_of(*ends, math.log(2.0 / (error * _OWN)))
        intervals.append((min(low, alone), min(high, alone)))
    return FrequencyBounds(intervals[0], intervals[1])


def _people(sampled: float) -> Numbers:
    """Return the numbers of people of a class that the program may use."""
    top = max(2.0 * _SINGLE, _TOP / sampled)
    later = _SINGLE * _RATIO ** np.arange(1, math.ceil(math.log(top / _SINGLE, _RATIO)) + 1)
    return np.concatenate([np.arange(1.0, _SINGLE + 1), np.unique(np.ceil(later))])


def _chances(people: Numbers, sampled: float) -> Numbers:
    """Return for each bin and each number of people the probability that the sampled rows of a class are in the bin."""
    from scipy.special import betainc  # scipy.stats, which has it as binom.sf, takes longer to load than all else here

    above = np.array(
        [np.where(people >= edge, betainc(edge, np.maximum(people - edge, 0.0) + 1.0, sampled), 0.0) for edge in _EDGES]
    )
    return np.asarray(above - np.vstack([above[1:], np.zeros(len(people))]))


def _program(means: Numbers, chances: Numbers, limits: Numbers) -> tuple[float, float] | None:
    """Return the least and the largest mean of a measure over all populations whose bins are within their limits."""
    from scipy.optimize import linprog

    scale = 1.0 / np.maximum(1.0, limits[:, 1])[:, None]
    matrix = np.vstack([chances * scale, -chances * scale])
    room = np.concatenate([limits[:, 1:] * scale, -limits[:, :1] * scale])[:, 0]
    ends = [linprog(sign * means, A_ub=matrix, b_ub=room, method="highs") for sign in (1.0, -1.0)]
    if any(end.status != 0 for end in ends):
        return None
    return max(0.0, float(ends[0].fun)), max(0.0, -float(ends[1].fun))


def _means_of(value: float, depth: float) -> tuple[float, float]:
    """Return the least and the largest mean from which an observed sum is not too far.

    >>> [round(mean, 2) for mean in _means_of(100.0, 4.0)]
    [74.32, 131.01]
    """
    high = _last(lambda mean: _exponent(value, mean) <= depth, value, _above(value, depth))
    low = value - _last(lambda less: _exponent(value, value - less) <= depth, 0.0, value)
    return low, high


def _values_of(low: float, high: float, depth: float) -> tuple[float, float]:
    """Return the least and the largest sum that is not too far from a mean between `low` and `high`."""
    largest = _last(lambda value: _exponent(value, high) <= depth, high, _above(high, depth))
    least = low - _last(lambda less: _exponent(low - less, low) <= depth, 0.0, low)
    return least, largest


def _exponent(value: float, mean: float) -> float:
    """Return x·ln(x/m) − x + m."""
    if mean <= 0.0:
        return math.inf if value > 0.0 else 0.0
    return (value * math.log(value / mean) if value > 0.0 else 0.0) - value + mean


def _above(value: float, depth: float) -> float:
    """Return a number that is certainly too far above."""
    return value + 3.0 * depth + 3.0 * math.sqrt(depth * value) + 1.0


def _last(near: Callable[[float], bool], low: float, high: float) -> float:
    """Return the last number that is near, rounded up, where all numbers are near at first and then none is."""
    if near(high):
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if near(middle) else (low, middle)
    return high
