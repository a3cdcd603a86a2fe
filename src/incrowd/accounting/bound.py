"""Bound: a number that is never below the truth, and the rule that gave it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

_CEILING = 2.0**20
_RELATIVE = 1e-12


@dataclass(frozen=True, order=True)
class LossBound:
    """An upper bound on an ε or a δ, with the rule that proves it; bounds order by value.

    >>> min(LossBound(2.0, "sums"), LossBound(1.5, "privacy loss distribution")).rule
    'privacy loss distribution'
    """

    value: float
    rule: str


INFINITE = LossBound(math.inf, "no finite bound")


def least_epsilon(delta_of: Callable[[float], float], delta: float) -> float:
    """Return an ε with δ(ε) ≤ `delta`, the least one up to a relative 10⁻¹², for a curve that does not rise.

    Infinity if no ε up to 2²⁰ is enough.

    >>> round(least_epsilon(lambda epsilon: math.exp(-epsilon), 0.5), 9)
    0.693147181
    """
    if delta_of(0.0) <= delta:
        return 0.0
    high = 1.0
    while delta_of(high) > delta:
        high *= 2.0
        if high > _CEILING:
            return math.inf
    low = 0.0
    while high - low > _RELATIVE * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if delta_of(middle) <= delta else (middle, high)
    return high
