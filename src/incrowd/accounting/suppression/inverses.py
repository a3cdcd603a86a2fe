"""Sampled suppression read backwards: the k, the epsilon or the rate that keeps a wanted guarantee.

The tight delta falls as k grows (suppressing below k + 1 post-processes suppressing below k), rises with the rate (a
smaller sample is a sample of the larger one) and falls, continuously, as epsilon grows: each question is a bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from incrowd.accounting.suppression.sampled_cell import LikelihoodRatio, SampledCell
from incrowd.accounting.suppression.tight_delta import at_floor, log_replace
from incrowd.core.rounding import Number, exact
from incrowd.core.unit import Adjacency
from incrowd.errors import Infeasible, InvalidParameter

_RELATIVE = 1e-12  # a bisection stops here; what is returned has been evaluated
_LARGEST_K = 10**9  # more rows alike than any table has; the search must end
_FIRST_MANTISSA = 100_000  # rates have six significant digits
_MANTISSAS = 9 * _FIRST_MANTISSA  # 100000 to 999999: how many decimals of six digits there are per power of ten
_LOG_LEAST_RATE = -600.0  # e^(−600) = 10⁻²⁶⁰: a rate below it underflows when it is squared in a weight


def smallest_k(epsilon: Number, delta: Number, rate: Number, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> int:
    """Return the least k for which sampled suppression at this rate is (epsilon, delta)-differentially private.

    Requires epsilon >= 0, 0 < delta < 1 and 0 < rate < 1; answers beyond a billion are refused.

    >>> smallest_k(0.5, 1e-6, 0.1)
    10
    """
    target, sampled = required_delta(delta), SampledCell(1, exact(rate, "the rate")).rate
    ratio = LikelihoodRatio(exact(epsilon, "epsilon"))
    return least_k(lambda k: _meets(SampledCell(k, sampled), ratio, target, adjacency), feasible_k(target, sampled))


def smallest_epsilon(delta: Number, k: int, rate: Number, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> float:
    """Return the least epsilon, rounded up, at which sampled suppression has at most this delta.

    Requires delta >= rate ** k: below that no epsilon is enough, and the error names what would be.

    >>> round(smallest_epsilon(1e-6, 20, 0.1), 5)
    0.18299
    """
    target, cell = required_delta(delta), SampledCell(k, exact(rate, "the rate"))
    require_feasible(target, cell)

    def meets(epsilon: float) -> bool:
        return _meets(cell, LikelihoodRatio(exact(epsilon)), target, adjacency)

    # Once the ratio is k (1 - rate) a removal costs rate ** k; from 1 / (1 - rate) on an addition costs nothing.
    enough = math.log(k) + 1.0 - math.log(cell.q)
    return 0.0 if meets(0.0) else least_argument(meets, 0.0, enough)


def largest_rate(epsilon: Number, delta: Number, k: int, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Fraction:
    """Return the largest rate of six significant digits at which k keeps (epsilon, delta).

    >>> largest_rate(2, "1e-9", 5)
    Fraction(158489, 10000000)
    """
    target = required_delta(delta)
    ratio = LikelihoodRatio(exact(epsilon, "epsilon"))
    return largest_decimal(lambda rate: _meets(SampledCell(k, rate), ratio, target, adjacency), target, k)


def least_k(meets: Callable[[int], bool], start: int) -> int:
    """Return the least k >= start that meets, if every larger k does too.

    >>> least_k(lambda k: k * k > 200, start=1)
    15
    """
    low, high = start - 1, start
    while not meets(high):
        low, high = high, 2 * high
        if high > _LARGEST_K:
            raise Infeasible("k would have to be more than a billion. Allow a larger epsilon or delta, or sample less.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def least_argument(meets: Callable[[float], bool], low: float, high: float) -> float:
    """Return an x that meets, the least up to a relative 10⁻¹², given that low does not and high does.

    >>> round(least_argument(lambda x: x * x > 2, 0.0, 2.0), 9)
    1.414213562
    """
    while high - low > _RELATIVE * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def required_delta(delta: Number) -> Fraction:
    """Return delta, if it is a probability worth asking for.

    >>> required_delta("1e-6")
    Fraction(1, 1000000)
    """
    target = exact(delta, "delta")
    if not 0 < target < 1:
        raise InvalidParameter("delta must lie strictly between 0 and 1, such as 1e-6.")
    return target


def require_feasible(delta: Fraction, cell: SampledCell) -> None:
    """Refuse a delta below rate ** k, which no epsilon reaches, and name the nearest that can be had.

    >>> require_feasible(Fraction(1, 10**5), SampledCell(4, Fraction(1, 10)))
    Traceback (most recent call last):
    incrowd.errors.Infeasible: delta 0.00001 is below rate ** k, and no epsilon is enough for that. ...
    """
    if cell.rate**cell.k > delta:
        k, rate = feasible_k(delta, cell.rate), _feasible_rate(delta, cell.k)
        raise Infeasible(
            f"delta {_six_digits(delta)} is below rate ** k, and no epsilon is enough for that. Raise k or lower the "
            f"rate: k = {k} at this rate, or a rate of at most {_six_digits(rate)} at this k."
        )


def feasible_k(delta: Fraction, rate: Fraction) -> int:
    """Return the least k with rate ** k <= delta.

    >>> feasible_k(Fraction(1, 10**4), Fraction(1, 10))
    4
    """
    k = max(1, round(_log(delta) / _log(rate)) - 1)
    while rate**k > delta:
        k += 1
    return k


def log_at_most(logarithm: float, target: Fraction) -> bool:
    """Tell whether e^logarithm is surely at most `wanted`.

    >>> log_at_most(math.log(0.5), Fraction(1, 2)), log_at_most(math.log(0.4), Fraction(1, 2))
    (False, True)
    """
    margin = 4e-16 * (math.log(target.numerator) + math.log(target.denominator))
    return logarithm <= _log(target) - margin


def _meets(cell: SampledCell, ratio: LikelihoodRatio, target: Fraction, adjacency: Adjacency) -> bool:
    replaced = adjacency is Adjacency.REPLACE
    log_delta = log_replace(cell, ratio.epsilon) if replaced else cell.log_worst(ratio)
    return log_at_most(log_delta, target) or (at_floor(cell, ratio, log_delta) and cell.rate**cell.k <= target)


def _feasible_rate(delta: Fraction, k: int) -> Fraction:
    return largest_decimal(lambda rate: rate**k <= delta, delta, k)


def largest_decimal(meets: Callable[[Fraction], bool], delta: Fraction, k: int) -> Fraction:
    """Return the largest rate of six significant digits that meets, if every smaller one does too."""
    # No rate above delta ** (1 / k) can meet; delta(epsilon) <= rate, and at most twice that for a replacement.
    high = min(_place(_log(delta) / k) + 2, _place(0.0))
    low = _place(max(_log(delta), _LOG_LEAST_RATE)) - 1
    while not meets(_decimal(low)):
        low -= _MANTISSAS
        if low < _place(_LOG_LEAST_RATE):
            raise Infeasible("no rate that a computer can draw keeps this guarantee. Allow a larger delta.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if meets(_decimal(middle)) else (low, middle)
    return _decimal(low)


def _decimal(place: int) -> Fraction:
    # The place-th decimal of six significant digits, counted from 1 on; those below 1 have negative places.
    power, mantissa = divmod(place, _MANTISSAS)
    scale = Fraction(10**power) if power >= 0 else Fraction(1, 10**-power)
    return Fraction(_FIRST_MANTISSA + mantissa, _FIRST_MANTISSA) * scale


def _place(logarithm: float) -> int:
    power = math.floor(logarithm / math.log(10))
    mantissa = math.exp(logarithm - power * math.log(10)) * _FIRST_MANTISSA
    return power * _MANTISSAS + int(mantissa) - _FIRST_MANTISSA


def _six_digits(value: Fraction) -> str:
    return f"{Decimal(value.numerator) / value.denominator:.6g}"


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)
