"""Estimates: how many rows are unique among so many people, by each model again, and by other ways to the same numbers.

Sums are written out or taken from SciPy, and equations are solved one inside the other by SciPy's bracketing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from incrowd.workflows.forms.anonymized.classes import unique_share as zayatz

MODELS = ("zayatz", "pitman", "snb", "dankar")
"""The estimates that are known here."""


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
        found = _pitman(sizes, people)
        return first if found is None else min(1.0, found / people)
    found = _snb(Counter(sizes), rows / people)
    if found is None:
        return first
    second = min(1.0, found / people)
    return min(first, second) if estimate == "dankar" else second


def _pitman(sizes: Sequence[int], people: int) -> float | None:
    """Return the expected number of unique people under the most likely parameters of Pitman's model."""
    from scipy.optimize import brentq
    from scipy.special import digamma, gammaln

    classes, rows, times = len(sizes), sum(sizes), Counter(sizes)
    if classes in (1, rows):
        return None
    places = np.arange(1.0, classes)

    def theta_of(alpha: float) -> float:
        def score(log: float) -> float:
            shift = math.exp(log)  # θ + α, which is positive; the places then start at 0
            founding = (1 / (shift + alpha * (places - 1))).sum()
            return float(founding - (digamma(shift - alpha + rows) - digamma(shift - alpha + 1)))

        return math.exp(brentq(score, -40.0, 28.0, xtol=1e-14, rtol=1e-14)) - alpha

    def score(alpha: float) -> float:
        inside = sum(often * (digamma(size - alpha) - digamma(1 - alpha)) for size, often in times.items())
        return float((places / (theta_of(alpha) + alpha * places)).sum() - inside)

    alpha = 0.0 if score(0.0) <= 0 else float(brentq(score, 0.0, 1 - 1e-9, xtol=1e-14, rtol=1e-14))
    theta = theta_of(alpha)
    last = gammaln(theta + alpha + people - 1) - gammaln(theta + people)
    return float(people * np.exp(last + gammaln(theta + 1) - gammaln(theta + alpha)))


def _snb(times: Counter[int], drawn: float) -> float | None:
    """Return the number of unique people under the slide negative binomial model.

    Of a class, the one person whom every class has is drawn with probability π, and of the others a number that is
    negative binomial again, with the same α and b = β/(β + π(1 − β)).
    """
    from scipy.optimize import brentq

    if not times[2]:
        return None
    classes = _shlosser(times, drawn)

    def chances(alpha: float, b: float) -> tuple[float, float]:
        others = [b**alpha * c for c in (1.0, alpha * (1 - b), alpha * (alpha + 1) / 2 * (1 - b) ** 2)]
        return drawn * others[0] + (1 - drawn) * others[1], drawn * others[1] + (1 - drawn) * others[2]

    def alpha_of(b: float) -> float:
        """Both chances have the factor b^α, which their ratio does not."""

        def off(log: float) -> float:
            alpha = math.exp(log)
            one = drawn + (1 - drawn) * alpha * (1 - b)
            two = drawn * alpha * (1 - b) + (1 - drawn) * alpha * (alpha + 1) / 2 * (1 - b) ** 2
            return two * times[1] - one * times[2]

        return math.exp(brentq(off, -60.0, 60.0, xtol=1e-14, rtol=1e-14))

    def excess(logit: float) -> float:
        b = 1 / (1 + math.exp(-logit))
        return classes * chances(alpha_of(b), b)[0] - times[1]

    steps = np.linspace(16.0, -30.0, 185).tolist()
    for high, low in pairwise(steps):
        if (excess(high) > 0) != (excess(low) > 0):
            b = 1 / (1 + math.exp(-brentq(excess, low, high, xtol=1e-14, rtol=1e-14)))
            beta = drawn * b / (1 - b * (1 - drawn))
            return classes * float(beta ** alpha_of(b))
    return None


def _shlosser(times: Counter[int], drawn: float) -> float:
    """Return the estimated number of classes, by the third modification of Shlosser's formula, term by term."""
    above = sum(n * i * drawn**2 * (1 - drawn**2) ** (i - 1) for i, n in times.items())
    below = sum(n * (1 - drawn) ** i * ((1 + drawn) ** i - 1) for i, n in times.items())
    absent = sum(n * (1 - drawn) ** i for i, n in times.items())
    once = sum(n * i * drawn * (1 - drawn) ** (i - 1) for i, n in times.items())
    return times.total() + times[1] * above / below * (absent / once) ** 2
