"""Bound: a number that is never below the truth, with its rule; the basic rules of (ε, δ) guarantees."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from incrowd.core.loss import Approximate, LossRule
from incrowd.core.rounding import float_down, float_up, not_below

_CEILING = 2.0**20  # far above every useful ε: a curve that needs more has a floor above δ, and the search must end
_RELATIVE = 1e-12  # a bisection stops here; and more than the ten roundings of a δ below, none of which cancels
_ULPS = 2.0**-50  # `epsilon_at` rounds eight times, each by at most 2⁻⁵³ of 1 or of ε₀


@dataclass(frozen=True, order=True)
class LossBound:
    """An upper bound on an ε or a δ, with the rules that prove it; bounds order by value.

    >>> min(LossBound(2.0, (LossRule.SUMS,)), LossBound(1.5, (LossRule.DISTRIBUTION,))).rule
    (<LossRule.DISTRIBUTION: 'privacy-loss-distribution'>,)
    """

    value: float
    rule: tuple[LossRule, ...]


INFINITE = LossBound(math.inf, (LossRule.NONE,))


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


def delta_at(guarantee: Approximate, epsilon: float) -> float:
    """Return δ such that an (ε₀, δ₀) guarantee is also an (ε, δ) guarantee.

    Source: Kairouz, Oh & Viswanath 2015, Theorem 3.1: the worst pair reveals everything with probability δ₀ and else
    is one randomized response at ε₀, so δ = δ₀ + (1−δ₀)(e^ε₀ − e^ε)/(1 + e^ε₀) below ε₀, and δ₀ from there on.

    >>> delta_at(Approximate(Fraction(1), Fraction(0)), 1.0)
    0.0
    >>> delta_at(Approximate(Fraction(1), Fraction(1, 100)), 2.0)
    0.01
    """
    floor = float_up(guarantee.delta)
    if Fraction(epsilon) >= guarantee.epsilon:
        return floor
    inner = float_up(guarantee.epsilon)
    rest = -math.expm1(epsilon - inner) / (1.0 + math.exp(-inner))
    return min(1.0, not_below(floor + (1.0 - float_down(guarantee.delta)) * rest, _RELATIVE))


def epsilon_at(guarantee: Approximate, delta: Fraction) -> float:
    """Return the least ε of an (ε₀, δ₀) guarantee read at `delta`; infinity below δ₀.

    >>> epsilon_at(Approximate(Fraction(1), Fraction(1, 10**6)), Fraction(1, 10**7))
    inf
    >>> epsilon_at(Approximate(Fraction(1), Fraction(0)), Fraction(0))
    1.0
    """
    if delta < guarantee.delta:
        return math.inf
    if delta == guarantee.delta:
        return float_up(guarantee.epsilon)
    inner, slack = float_up(guarantee.epsilon), (delta - guarantee.delta) / (1 - guarantee.delta)
    # e^(ε − ε₀); 1 − slack is exact before it is rounded, else the digits of a slack near 1 are lost
    odds = float_up(1 - slack) - float_down(slack) * math.exp(-inner)
    if odds <= 0.0:
        return 0.0
    return min(inner, max(0.0, inner + math.log(odds) + _ULPS * (1.0 + inner)))


def shares_of(delta: Fraction, floors: tuple[Fraction, ...]) -> tuple[Fraction, ...] | None:
    """Split a δ over releases: each gets at least its floor, the rest is shared equally; None if δ is too small.

    >>> shares_of(Fraction(1, 10), (Fraction(0), Fraction(1, 20)))
    (Fraction(1, 40), Fraction(3, 40))
    """
    rest = delta - sum(floors, Fraction(0))
    if rest < 0:
        return None
    return tuple(floor + rest / max(1, len(floors)) for floor in floors)
