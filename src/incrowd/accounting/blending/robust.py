"""Crowd-blending after a biased sample, part of which the adversary may know."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from incrowd.accounting.blending.sampled_crowd import divergence, log_target
from incrowd.accounting.blending.worst_crowd import WorstCrowd
from incrowd.accounting.bound import least_epsilon
from incrowd.core.rounding import Number, exact, not_below, probability_up
from incrowd.errors import Infeasible, InvalidParameter

_RELATIVE = 1e-12  # of ε: e^ε up to e^300 is off by 3·10⁻¹⁴; of ln δ: a dozen roundings of logarithms up to 745
_CHERNOFF = 2.0 * math.log(2.0) - 1.0  # (1+d)ln(1+d) − d ≥ this·d² for 0 ≤ d ≤ 1


@dataclass(frozen=True)
class Bias:
    """How far a sample is from even: all but `irregular` people are drawn at rates from `low` to `high`.

    Everyone has an own independent coin. The irregular ones may have any rate up to `max_rate`, and the adversary may
    know who they are and whether they were drawn.

    >>> Bias(Fraction(1, 10), Fraction(3, 25), 5, Fraction(1)).irregular
    5
    """

    low: Fraction
    high: Fraction
    irregular: int
    max_rate: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high < 1 or not self.high <= self.max_rate <= 1:
            raise InvalidParameter("a biased sample needs rates with 0 < low ≤ high < 1 and high ≤ max_rate ≤ 1.")
        if type(self.irregular) is not int or self.irregular < 0:
            raise InvalidParameter("the number of irregular people is a whole number, 0 or more.")


def delta(k: int, crowd_epsilon: Number, bias: Bias, epsilon: Number) -> float:
    """Return a δ that holds for every (k, crowd ε)-crowd-blending mechanism on a biased sample; rounded up.

    Source: Gehrke, Hay, Lui & Pass 2012, Theorem 2, at every ε. Proof: let l people be irregular. Given how many of
    t's crowd are sampled, t can still be exchanged for the last one drawn, and t is ignored if at most k−l−2 regular
    others are sampled, since the irregular ones fill up the crowd by at most l. So `WorstCrowd` holds with k−l, its
    count being a sum of unequal coins (such sums are log-concave too). Its hockey sticks are convex in every single
    rate on [0, high], the pair of laws being affine in it, so the worst rates are 0 and `high`, and rate 0 is a person
    less. A regular t is drawn at rate `high` at most; an irregular t at `max_rate` at most, with only l−1 irregular
    others. `low` plays no part.

    Requires irregular < k − 1 (or none), a fixed population, and one record per person.

    >>> bias = Bias(Fraction(1, 10), Fraction(3, 25), 5, Fraction(1))
    >>> f"{delta(50, '0.1', bias, '1.0744816703'):.4g}"
    '3.851e-09'
    """
    return probability_up(log_delta(k, crowd_epsilon, bias, epsilon))


def log_delta(k: int, crowd_epsilon: Number, bias: Bias, epsilon: Number) -> float:
    """Return the natural logarithm of `delta`, rounded up.

    >>> even = Bias(Fraction(1, 10), Fraction(1, 10), 0, Fraction(1, 10))
    >>> round(log_delta(20, 0, even, "0.5"), 6)
    -24.360774
    """
    target_epsilon = exact(epsilon, "epsilon")
    if target_epsilon < 0:
        raise InvalidParameter("epsilon cannot be negative.")
    return max(worst.log_delta(target_epsilon) for worst in _worst(k, crowd_epsilon, bias))


def smallest_epsilon(delta: Number, k: int, crowd_epsilon: Number, bias: Bias) -> float:
    """Return the least ε, rounded up, at which `delta` holds; δ does not rise with ε.

    >>> bias = Bias(Fraction(1, 10), Fraction(3, 25), 2, Fraction(1, 2))
    >>> round(smallest_epsilon("1e-6", 30, "0.1", bias), 2)
    0.65
    """
    members, target = _worst(k, crowd_epsilon, bias), log_target(delta)
    least = least_epsilon(lambda epsilon: max(worst.log_delta(exact(epsilon)) for worst in members), target)
    if math.isinf(least):
        raise Infeasible(
            f"no epsilon gives k = {k} with {bias.irregular} irregular people a delta of {float(exact(delta)):g}. "
            "Raise k, or lower the rates or the number of irregular people."
        )
    return least


def zero_knowledge_epsilon(crowd_epsilon: Number, bias: Bias) -> float:
    """Return the ε of the published theorem, ln(max_rate·x·e^crowd + 1 − max_rate), rounded up.

    x = (high/low)(1−low)(2−low)/(1−high)². Source: Gehrke, Hay, Lui & Pass 2012, Theorem 2.

    >>> round(zero_knowledge_epsilon("0.1", Bias(Fraction(1, 10), Fraction(3, 25), 5, Fraction(1))), 6)
    1.074482
    """
    crowd = _crowd(crowd_epsilon)
    if crowd > 300:
        raise InvalidParameter("the closed forms need a crowd's epsilon between 0 and 300.")
    x = _stretch(bias)
    growth = float(bias.max_rate) * (float(x) * math.expm1(float(crowd)) + float(x - 1))
    return not_below(math.log1p(growth), _RELATIVE)


def theorem2_delta(k: int, bias: Bias) -> float:
    """Return a closed bound on δ at ε = `zero_knowledge_epsilon`, for every crowd ε.

    The larger of (max/high)·e^(−(k−l)·KL(g‖high)/g), g = low·x/(low·x + 1 − low), for removing t, and
    (max/(1−low))·e^(−(k−l−1)·KL(h‖low)/h), h = high/(high + x(1−high)), for adding t. Proof: neighboring probabilities
    of the crowd's count differ by the odds of low and high at most. Taken away, t shows only if m ≥ k−l−1 others are
    sampled and m+1 > g(n+1), a tail of Bin(n, high); added, only if at most k−l−1 are and n+1 ≥ (k−l−1)/h, a tail of
    Bin(n, low). One more coin turns n into n+1 at a price of 1/high or 1/(1−low); Chernoff.

    >>> round(theorem2_delta(50, Bias(Fraction(1, 10), Fraction(3, 25), 5, Fraction(1))), 6)
    0.00117
    """
    effective = _effective(k, bias)
    low, high, x = float(bias.low), float(bias.high), float(_stretch(bias))
    g, h = low * x / (low * x + 1.0 - low), high / (high + x * (1.0 - high))
    removed = math.log(bias.max_rate / bias.high) - effective * divergence(g, high) / g
    added = math.log(bias.max_rate / (1 - bias.low)) - (effective - 1) * divergence(h, low) / h
    return probability_up(max(removed, added) + _RELATIVE)


def theorem2_simple_delta(k: int, bias: Bias) -> float:
    """Return a simpler and larger bound than `theorem2_delta`, since g ≥ high(2 − high) and h ≤ low/2.

    It is the larger of (max/high)·e^(−C(k−l)(1−high)²/(2−high)), C = 2·ln 2 − 1, and
    (max/(1−low))·e^(−(1−ln 2)(k−l−1)).

    >>> round(theorem2_simple_delta(50, Bias(Fraction(1, 10), Fraction(3, 25), 5, Fraction(1))), 6)
    0.006473
    """
    effective, rest = _effective(k, bias), float(1 - bias.high)
    removed = math.log(bias.max_rate / bias.high) - _CHERNOFF * effective * rest**2 / (1.0 + rest)
    added = math.log(bias.max_rate / (1 - bias.low)) - (1.0 - math.log(2.0)) * (effective - 1)
    return probability_up(max(removed, added) + _RELATIVE)


def _worst(k: int, crowd_epsilon: Number, bias: Bias) -> tuple[WorstCrowd, ...]:
    effective, crowd = _effective(k, bias), _crowd(crowd_epsilon)
    regular = WorstCrowd(effective, crowd, bias.high, bias.high)
    if not bias.irregular:
        return (regular,)
    return regular, WorstCrowd(effective + 1, crowd, bias.high, bias.max_rate)


def _effective(k: int, bias: Bias) -> int:
    if type(k) is not int or k < 1:
        raise InvalidParameter("k must be a whole number, 1 or more: the size of the crowd to blend with.")
    if bias.irregular and bias.irregular >= k - 1:
        raise InvalidParameter(
            f"{bias.irregular} irregular people leave nobody of a crowd of k = {k} to hide among: "
            f"raise k to at least {bias.irregular + 2}."
        )
    return k - bias.irregular


def _crowd(crowd_epsilon: Number) -> Fraction:
    crowd = exact(crowd_epsilon, "the crowd's epsilon")
    if crowd < 0:
        raise InvalidParameter("the crowd's epsilon cannot be negative.")
    return crowd


def _stretch(bias: Bias) -> Fraction:
    return bias.high / bias.low * (1 - bias.low) * (2 - bias.low) / (1 - bias.high) ** 2
