"""Sampled suppression: a Poisson sample, recoded blindly, with cells below k suppressed; its tight delta.

Each record enters the sample by its own secret coin; a recoding chosen without looking at the data puts it into a cell;
cells with fewer than k sampled records are dropped, the others are published with their counts. Every released column
belongs to the cell. Neither the size of the sample nor the number of suppressed records is published.

A replaced record leaves one cell and enters another, so what is published changes by a removal in the one and, with
independent coins, an addition in the other. The exact supremum over both sizes has no known closed form; it is truly
larger than that of a removal alone. There are three sound bounds, and the least of them is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from incrowd.accounting.suppression.loss_distribution import Dots, Floats, connect_the_dots
from incrowd.accounting.suppression.sampled_cell import LikelihoodRatio, SampledCell
from incrowd.core.rounding import Number, exact, float_up, probability_up
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter

SHIFTED = "removal, after what an addition can cost at most"
TWO_STEPS = "removal and addition, half of epsilon each"

# losses of an addition: more is sharper, fewer is faster; chords lie above the curve, so any number is sound
_KNOTS = 33
_BELOW = 3.0  # how far below zero the losses of an addition are distinguished, in units of their maximum
_SLACK = 1e-12  # thirty roundings of numbers up to 700, on the logarithm
# rate ** k is computed exactly up to so many bits: microseconds; beyond, by its logarithm, rounded up
_EXACT_BITS = 1 << 14


def log_replace(cell: SampledCell, epsilon: Fraction, population: int | None = None) -> float:
    """Return the least of the bounds on ln(delta); within a bounded population, the least of the closed ones.

    * An addition's loss is at most L = -ln(1 - rate), with delta 0, so delta <= delta of a removal at epsilon - L.
    * From (epsilon, delta) for a removal and an addition follows (2 epsilon, (1 + e^epsilon) delta) for both.
    * The worst removal and the worst addition, as dominating pairs, dominate jointly (see `envelope`): delta is at most
      the sum over the losses x of an addition of their mass times the delta of a removal at epsilon - x. The
      addition's losses are discretized upwards, at knots that do not depend on epsilon.

    >>> cell = SampledCell(3, Fraction(1, 4))
    >>> f"{math.exp(log_replace(cell, Fraction('0.4054651081081644'))):.3g}"
    '0.0322'
    """
    closed = min(_closed_bounds(cell, epsilon, population).values())
    if population is not None or closed == cell.log_floor():
        return min(0.0, closed)
    return min(0.0, closed, _log_product(cell, epsilon))


def _closed_bounds(cell: SampledCell, epsilon: Fraction, population: int | None) -> dict[str, float]:
    """Return the closed bounds on ln(delta) that hold at epsilon, by the names of their rules."""
    shifted, half = LikelihoodRatio(epsilon, discount=cell.rate), LikelihoodRatio(epsilon / 2)
    factor = math.log(2.0 + half.less_one) if half.less_one < math.inf else float(epsilon)
    two_steps = cell.log_worst(half, population) + factor * (1.0 + _SLACK)
    removal = {SHIFTED: cell.log_remove(shifted, population)} if shifted.less_one >= 0.0 else {}
    return {**removal, TWO_STEPS: two_steps}


def _log_product(cell: SampledCell, epsilon: Fraction) -> float:
    added = _losses_of_addition(cell)
    logs = [
        math.log(mass) + _log_removal(cell, epsilon - Fraction(loss))
        for loss, mass in zip(added.losses.tolist(), added.masses.tolist(), strict=True)
        if mass > 0.0
    ]
    largest = max(logs)
    return largest + math.log(math.fsum(math.exp(log - largest) for log in logs)) + _SLACK


@lru_cache(maxsize=64)
def _losses_of_addition(cell: SampledCell) -> Dots:
    most = -math.log1p(-cell.p) if cell.p < 0.5 else -math.log(cell.q)
    squares = np.linspace(0.0, 1.0, _KNOTS) ** 2
    above = most * (1.0 + _SLACK) * squares
    below = _BELOW * most * squares
    return connect_the_dots((above, _exponentials(cell.log_add, above)), (below, _exponentials(cell.log_remove, below)))


def _exponentials(log_of: Callable[[LikelihoodRatio], float], knots: Floats) -> Floats:
    return np.exp([log_of(LikelihoodRatio(Fraction(knot))) for knot in knots.tolist()])


def _log_removal(cell: SampledCell, epsilon: Fraction) -> float:
    # Below zero by duality: the excess over a < 1 is 1 - a + a times that of an addition over 1 / a.
    if epsilon >= 0:
        return cell.log_remove(LikelihoodRatio(epsilon))
    retained = -math.expm1(cell.log_add(LikelihoodRatio(-epsilon)))
    return math.log1p(-math.exp(epsilon) * retained)


def delta(
    k: int,
    rate: Number,
    epsilon: Number,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    population: int | None = None,
) -> float:
    """Return the delta of sampled suppression at epsilon, rounded up.

    For added and removed records it is the least possible one (see `SampledCell`): some pair of datasets attains it.
    For replaced records it is the best of three bounds (see `log_replace`). A population, if given, must be a public
    bound on the number of records; none need be known. Requires k >= 1, 0 < rate < 1, epsilon >= 0.

    >>> f"{delta(20, 0.1, 0.5):.4g}"
    '2.632e-11'
    >>> delta(4, 0.1, 10)  # no epsilon brings it below rate ** k
    0.0001
    """
    cell, ratio = SampledCell(k, exact(rate, "the rate")), _ratio(epsilon)
    logarithm = _log_delta(cell, ratio, adjacency, population)
    if logarithm == -math.inf:
        return 0.0
    if at_floor(cell, ratio, logarithm) and cell.rate.denominator.bit_length() * k <= _EXACT_BITS:
        return max(float_up(cell.rate**k), math.ulp(0.0))
    return probability_up(logarithm)


def log_delta(
    k: int,
    rate: Number,
    epsilon: Number,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    population: int | None = None,
) -> float:
    """Return the natural logarithm of `delta`, rounded up; it reaches far below the smallest float.

    >>> round(log_delta(1000, "0.01", "0.5") / math.log(10), 3)
    -1280.683
    """
    return _log_delta(SampledCell(k, exact(rate, "the rate")), _ratio(epsilon), adjacency, population)


def worst_size_remove(k: int, rate: Number, epsilon: Number) -> int:
    """Return how many records a cell has from which removing one shows most at epsilon.

    >>> [worst_size_remove(5, 0.2, epsilon) for epsilon in (0.1, 0.5, 1, 2)]
    [15, 8, 6, 5]
    """
    return SampledCell(k, exact(rate, "the rate")).worst_size_remove(_ratio(epsilon))


def worst_size_add(k: int, rate: Number, epsilon: Number) -> int | None:
    """Return how many records a cell has, with the new one, in which an addition shows most; None if it never shows.

    >>> worst_size_add(20, 0.1, 0.05), worst_size_add(20, 0.1, 0.5)
    (353, None)
    """
    return SampledCell(k, exact(rate, "the rate")).worst_size_add(_ratio(epsilon))


def at_floor(cell: SampledCell, ratio: LikelihoodRatio, logarithm: float) -> bool:
    """Tell whether a delta, given by its rounded logarithm, is rate ** k and nothing more.

    >>> cell, ratio = SampledCell(4, exact("0.1")), LikelihoodRatio(exact(10))
    >>> at_floor(cell, ratio, cell.log_remove(ratio))
    True
    """
    return logarithm == cell.log_floor() and cell.worst_size_remove(ratio) == cell.k


def _log_delta(cell: SampledCell, ratio: LikelihoodRatio, adjacency: Adjacency, population: int | None) -> float:
    if adjacency is Adjacency.REPLACE:
        return log_replace(cell, ratio.epsilon, _checked(population))
    return cell.log_worst(ratio, _checked(population))


def _ratio(epsilon: Number) -> LikelihoodRatio:
    return LikelihoodRatio(exact(epsilon, "epsilon"))


def _checked(population: int | None) -> int | None:
    if population is not None and (type(population) is not int or population < 1):
        raise InvalidParameter("the population must be a whole number, 1 or more: a public bound on the records.")
    return population
