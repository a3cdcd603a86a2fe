"""Sampled suppression: a Poisson sample, recoded blindly, with cells below k suppressed; its tight delta.

Each record enters the sample by its own secret coin; a recoding chosen without looking at the data puts it into a cell;
cells with fewer than k sampled records are dropped, the others are published with their counts. Every released column
belongs to the cell. Neither the size of the sample nor the number of suppressed records is published.
"""

from __future__ import annotations

import math
import sys

from incrowd.accounting.suppression.likelihood_ratio import LikelihoodRatio
from incrowd.accounting.suppression.replacement import log_replace
from incrowd.accounting.suppression.sampled_cell import SampledCell
from incrowd.core.rounding import Number, exact, float_up
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter

_LEAST_FLOAT = math.ulp(0.0)
_EXACT_BITS = 1 << 14


def delta(
    k: int,
    rate: Number,
    epsilon: Number,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    population: int | None = None,
) -> float:
    """Return the delta of sampled suppression at epsilon, rounded up.

    For added and removed records it is the least possible one (see `SampledCell`): some pair of datasets attains it.
    For replaced records it is the best of three bounds (see `replacement`). A population, if given, must be a public
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
        return max(float_up(cell.rate**k), _LEAST_FLOAT)
    return probability(logarithm)


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


def log_delta_remove(k: int, rate: Number, epsilon: Number, population: int | None = None) -> float:
    """Return the logarithm of the delta of removing a record: published with it against published without it.

    >>> log_delta_remove(5, 0.1, 100) == log_delta(5, 0.1, 100)
    True
    """
    return SampledCell(k, exact(rate, "the rate")).log_remove(_ratio(epsilon), _checked(population))


def log_delta_add(k: int, rate: Number, epsilon: Number, population: int | None = None) -> float:
    """Return the logarithm of the delta of adding a record; minus infinity from epsilon = -ln(1 - rate) on.

    >>> log_delta_add(20, 0.1, 0.5)
    -inf
    >>> log_delta_add(35, 0.97, 0.05) > log_delta_remove(35, 0.97, 0.05)  # adding can be the worse of the two
    True
    """
    return SampledCell(k, exact(rate, "the rate")).log_add(_ratio(epsilon), _checked(population))


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


def probability(logarithm: float) -> float:
    """Return the float at or above e^logarithm: at least the smallest positive one, at most 1.

    >>> probability(-1e6) > 0.0
    True
    """
    if logarithm >= 0.0:
        return 1.0
    return max(math.exp(logarithm) * (1.0 + 4.0 * sys.float_info.epsilon), _LEAST_FLOAT)


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
