"""Recount: how many rows are unique among so many people, by each model again, and by other ways to the same numbers.

Sums are written out, and equations are solved one inside the other by halving.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

MODELS = ("zayatz", "pitman", "snb", "dankar")
"""The estimates that are known here."""
_LAST = 1 - 1e-9  # α of Pitman's model lies below 1; at 1 its equations are singular


def unique_share(sizes: Sequence[int], people: int, estimate: str) -> float | None:
    """Return the estimated share of rows that are unique among so many people; None if they cannot be so few.

    Where a model has no estimate, Zayatz's stands in; Dankar's rule takes Pitman's model for samples of up to a tenth,
    and beyond it the smaller of the two others.

    >>> round(unique_share([1] * 50 + [2] * 30 + [3] * 15 + [4] * 5, 400, "snb") * 400, 3)
    28.676
    """
    if estimate not in MODELS:
        raise ValueError("an estimate that is not known here")
    first, rows = zayatz(sizes, people), sum(sizes)
    if first is None or 1 not in sizes or rows == people or estimate == "zayatz":
        return first
    if estimate == "pitman" or (estimate == "dankar" and rows * 10 <= people):
        uniques = _pitman(sizes, people)
        return first if uniques is None else min(1.0, uniques / people)
    uniques = _snb(Counter(sizes), rows / people)
    if uniques is None:
        return first
    second = min(1.0, uniques / people)
    return min(first, second) if estimate == "dankar" else second


def zayatz(sizes: Sequence[int], people: int) -> float | None:
    """Return Zayatz's estimate of the share of rows that are unique among so many people; None if they cannot be.

    A class of i people leaves one of n sampled rows i·C(N−i, n−1) times in C(N, n); from i to i + 1 the binomial falls
    by the factor (N−i−n+1)/(N−i).

    >>> round(zayatz([1, 1, 2], 4), 9)
    0.5
    """
    rows, times = sum(sizes), Counter(sizes)
    if rows > people:
        return None
    if not times[1]:
        return 0.0
    chance, weights = 1.0, {}
    for size in range(1, max(times) + 1):
        weights[size] = times[size] * size * chance
        chance *= max(0, people - size - rows + 1) / max(1, people - size)
    return weights[1] / math.fsum(weights.values()) * times[1] / rows


def _pitman(sizes: Sequence[int], people: int) -> float | None:
    """Return the expected number of unique people under the most likely parameters of Pitman's model."""
    classes, rows, times = len(sizes), sum(sizes), Counter(sizes)
    if classes in (1, rows):
        return None
    places = np.arange(1.0, classes)

    def theta_of(alpha: float) -> float:
        def score(log: float) -> float:
            shift = math.exp(log)  # θ + α, which is positive; the places then start at 0
            founding = (1 / (shift + alpha * (places - 1))).sum()
            return float(founding - (digamma(shift - alpha + rows) - digamma(shift - alpha + 1)))

        return math.exp(_zero(score, -40.0, 28.0)) - alpha

    def score(alpha: float) -> float:
        inside = sum(often * (digamma(size - alpha) - digamma(1 - alpha)) for size, often in times.items())
        return float((places / (theta_of(alpha) + alpha * places)).sum() - inside)

    if score(_LAST) > 0:
        return None
    alpha = 0.0 if score(0.0) <= 0 else _zero(score, 0.0, _LAST)
    theta = theta_of(alpha)
    last = math.lgamma(theta + alpha + people - 1) - math.lgamma(theta + people)
    return people * math.exp(last + math.lgamma(theta + 1) - math.lgamma(theta + alpha))


def _snb(times: Counter[int], rate: float) -> float | None:
    """Return the number of unique people under the slide negative binomial model.

    Of a class, the one person whom every class has is drawn with probability π, and of the others a number that is
    negative binomial again, with the same α and b = β/(β + π(1 − β)).
    """
    if not times[2]:
        return None
    classes = _shlosser(times, rate)

    def chance_of_one(alpha: float, b: float) -> float:
        return float(b**alpha * (rate + (1 - rate) * alpha * (1 - b)))

    def alpha_of(b: float) -> float:
        """Return where the chances of one and of two rows stand as they were met; both have the factor b^α."""

        def short(log: float) -> float:
            alpha = math.exp(log)
            one = rate + (1 - rate) * alpha * (1 - b)
            two = rate * alpha * (1 - b) + (1 - rate) * alpha * (alpha + 1) / 2 * (1 - b) ** 2
            return one * times[2] - two * times[1]

        return math.exp(_zero(short, -60.0, 60.0))

    def excess(logit: float) -> float:
        b = 1 / (1 + math.exp(-logit))
        return classes * chance_of_one(alpha_of(b), b) - times[1]

    for high, low in pairwise(np.linspace(16.0, -30.0, 185).tolist()):
        if (excess(high) > 0) != (excess(low) > 0):
            sign = 1.0 if excess(low) > 0 else -1.0
            b = 1 / (1 + math.exp(-_zero(lambda logit: sign * excess(logit), low, high)))  # noqa: B023 - used at once
            beta = rate * b / (1 - b * (1 - rate))
            return classes * float(beta ** alpha_of(b))
    return None


def _shlosser(times: Counter[int], rate: float) -> float:
    """Return the estimated number of classes, by the third modification of Shlosser's formula, term by term."""
    above = sum(n * i * rate**2 * (1 - rate**2) ** (i - 1) for i, n in times.items())
    below = sum(n * (1 - rate) ** i * ((1 + rate) ** i - 1) for i, n in times.items())
    absent = sum(n * (1 - rate) ** i for i, n in times.items())
    once = sum(n * i * rate * (1 - rate) ** (i - 1) for i, n in times.items())
    return times.total() + times[1] * above / below * (absent / once) ** 2


def digamma(number: float) -> float:
    """Return ψ of a positive number: by ψ(x) = ψ(x + 1) − 1/x up to 15, and by Stirling's series from there.

    >>> abs(digamma(1.0) + 0.5772156649015329) < 1e-14
    True
    """
    lower = 0.0
    while number < 15:
        lower += 1 / number
        number += 1
    square = number**-2
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    return math.log(number) - 1 / (2 * number) - series - lower


def _zero(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function goes from above to below 0, by halving."""
    while True:
        middle = (low + high) / 2
        if not low < middle < high or high - low < 1e-14:
            return middle
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
