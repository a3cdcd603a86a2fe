"""People with several rows: what a guarantee made to one row is worth to a person, and read backwards.

For sampled suppression a person's δ is the least over smaller ε of a weight times the δ of one row, and that falls with
k and rises with the rate; so both questions are bisections, and what is returned has been evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from incrowd.accounting.suppression.inverses import feasible_k, largest_decimal, least_k, required_delta
from incrowd.accounting.suppression.tight_delta import log_delta
from incrowd.core.rounding import Number, exact, not_below
from incrowd.core.unit import Adjacency
from incrowd.errors import Infeasible, InvalidParameter

RowCurve = Callable[[Fraction], float]
"""ln δ of everything released together, at row level, as a function of ε; never below the truth."""

_RELATIVE = 1e-12  # six roundings of logarithms up to 700 are below 10⁻¹²
_STEPS_PER_DOUBLING = 8  # nine percent a step: fewer is faster; what is returned has been evaluated
_STEP_BACK = Fraction(3, 4)  # of ε: a guarantee at a smaller ε holds at the larger one, so every step is sound
_STEPS_BACK = 120  # (3/4)¹²⁰ < 10⁻¹⁵ of ε: further back nothing changes
_DOUBLINGS = range(-20, 11)  # ε from 10⁻⁶ to 1024: below, δ is asked at 0; above, nothing is protected


def person_delta(row_log_delta: RowCurve, epsilon: Number, rows: int) -> float:
    """Return δ of a person with at most `rows` rows, each row sampled by its own independent coin.

    δ(ε) = δ_row(ε/m)·(e^ε − 1)/(e^(ε/m) − 1), and m·δ_row(0) at ε = 0. Proof (group privacy): take the person's rows
    away one by one. One step costs a factor e^r with failure δ_row(r), r = ε/m, so m steps cost e^(mr) with failure
    δ_row(r)·(1 + e^r + … + e^((m−1)r)); a person with fewer rows takes fewer steps. Where this rises with ε, because
    δ_row has a floor, the value at a smaller ε holds and is returned.

    Requires that rows beyond m were cut by a rule that looks only at that person's rows, before sampling, and that
    `row_log_delta` covers all releases together: compose at row level first, then apply this once. Composing m privacy
    loss distributions instead is wrong, because the rows of a person can share a cell. Nothing is said about crowds:
    k rows may be k/m people.

    >>> person_delta(lambda epsilon: math.log(1e-6), 0, 3)
    3.0000000000...e-06
    """
    _check_rows(rows)
    total = exact(epsilon, "epsilon")
    if total < 0:
        raise InvalidParameter("epsilon cannot be negative.")
    best = _log_person_delta(row_log_delta, total, rows)
    for _ in range(_STEPS_BACK if total else 0):
        total *= _STEP_BACK
        if (log_delta := _log_person_delta(row_log_delta, total, rows)) >= best:
            break
        best = log_delta
    return _exp_up(best)


def smallest_person_epsilon(row_log_delta: RowCurve, delta: Number, rows: int) -> float:
    """Return an ε at which a person's δ is at most `delta`: the first one met when ε grows in steps of nine percent.

    The bound is not monotone in ε (its failure factor grows while δ_row has a floor), so the search walks up and then
    halves the last step; what it returns has been evaluated. A guarantee at that ε holds at every larger one.

    >>> curve = lambda epsilon: -20.0 * float(epsilon) - 2.0
    >>> epsilon = smallest_person_epsilon(curve, "1e-6", 2)
    >>> person_delta(curve, epsilon, 2) <= 1e-6 < person_delta(curve, epsilon - 1e-6, 2)
    True
    """
    _check_rows(rows)
    target = exact(delta, "delta")
    if not 0 < target < 1:
        raise InvalidParameter("delta lies strictly between 0 and 1.")
    limit = math.log(target.numerator) - math.log(target.denominator) - _RELATIVE

    def meets(epsilon: float) -> bool:
        return _log_person_delta(row_log_delta, exact(epsilon), rows) <= limit

    if meets(0.0):
        return 0.0
    low = 0.0
    for doubling in _DOUBLINGS:
        for step in range(_STEPS_PER_DOUBLING):
            high = 2.0 ** (doubling + step / _STEPS_PER_DOUBLING)
            if meets(high):
                return _between(meets, low, high)
            low = high
    raise Infeasible(
        f"no epsilon up to {low:.0f} gives a person with {rows} rows a delta of {float(target):g}: "
        "allow fewer rows per person, a larger k, a lower sampling rate or a larger delta."
    )


def _log_person_delta(row_log_delta: RowCurve, epsilon: Fraction, rows: int) -> float:
    step = float(epsilon / rows)
    # ln(1 + e^r + … + e^((m−1)r)), written so that it neither cancels for small r nor overflows for large r
    falling = math.expm1(-step * rows) / math.expm1(-step) if step > 0.0 else float(rows)
    return row_log_delta(epsilon / rows) + step * (rows - 1) + math.log(falling)


def _between(meets: Callable[[float], bool], low: float, high: float) -> float:
    while high - low > _RELATIVE * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def _exp_up(logarithm: float) -> float:
    if logarithm >= 0.0:
        return 1.0
    return max(not_below(math.exp(logarithm), _RELATIVE), math.ulp(0.0)) if logarithm > -math.inf else 0.0


def _check_rows(rows: int) -> None:
    if rows < 1:
        raise InvalidParameter(f"a person has at least one row; {rows} was given.")


def smallest_k(
    epsilon: Number, delta: Number, rate: Number, rows: int, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> int:
    """Return the least k at which a person with at most `rows` rows, each with its own coin, is (ε, δ)-private.

    >>> smallest_k(1, "1e-6", "0.1", 1), smallest_k(1, "1e-6", "0.1", 3)
    (8, 15)
    """
    target, sampled = required_delta(delta), exact(rate, "the rate")

    def meets(k: int) -> bool:
        return Fraction(person_delta(lambda x: log_delta(k, sampled, x, adjacency), epsilon, rows)) <= target

    return least_k(meets, feasible_k(target, sampled))


def largest_rate(
    epsilon: Number, delta: Number, k: int, rows: int, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> Fraction:
    """Return the largest rate of six significant digits at which k keeps (ε, δ) for a person with several rows.

    >>> float(largest_rate(1, "1e-6", 15, 3)) >= 0.1
    True
    """
    target = required_delta(delta)

    def meets(rate: Fraction) -> bool:
        return Fraction(person_delta(lambda x: log_delta(k, rate, x, adjacency), epsilon, rows)) <= target

    return largest_decimal(meets, target, k)
