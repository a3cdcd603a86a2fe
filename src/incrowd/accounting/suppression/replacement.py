"""Sampled suppression when one record is replaced by another: three sound bounds, and the least of them.

A replaced record leaves one cell and enters another, so what is published changes by a removal in the one and, with
independent coins, an addition in the other. The exact supremum over both sizes has no known closed form. It is truly
larger than that of a removal alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from incrowd.accounting.bound import LossBound
from incrowd.accounting.suppression.likelihood_ratio import LikelihoodRatio
from incrowd.accounting.suppression.loss_distribution import Dots, Floats, connect_the_dots
from incrowd.accounting.suppression.sampled_cell import SampledCell

SHIFTED = "removal, after what an addition can cost at most"
TWO_STEPS = "removal and addition, half of epsilon each"

_KNOTS = 33
_BELOW = 3.0  # how far below zero the losses of an addition are told apart, in units of their maximum
_SLACK = 1e-12


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
    closed = min(bound.value for bound in _closed_bounds(cell, epsilon, population))
    if population is not None or closed == cell.log_floor():
        return min(0.0, closed)
    return min(0.0, closed, _log_product(cell, epsilon))


def _closed_bounds(cell: SampledCell, epsilon: Fraction, population: int | None) -> Iterator[LossBound]:
    shifted = LikelihoodRatio(epsilon, discount=cell.rate)
    if shifted.less_one >= 0.0:
        yield LossBound(cell.log_remove(shifted, population), SHIFTED)
    half = LikelihoodRatio(epsilon / 2)
    each = math.log(2.0 + half.less_one) if half.less_one < math.inf else float(epsilon)
    yield LossBound(cell.log_worst(half, population) + each * (1.0 + _SLACK), TWO_STEPS)


def _log_product(cell: SampledCell, epsilon: Fraction) -> float:
    added = _losses_of_addition(cell)
    logs = [
        math.log(mass) + _log_removal(cell, epsilon - Fraction(loss))
        for loss, mass in zip(added.losses.tolist(), added.masses.tolist(), strict=True)
        if mass > 0.0
    ]
    largest = max(logs)
    return largest + math.log(math.fsum(math.exp(each - largest) for each in logs)) + _SLACK


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
    kept = -math.expm1(cell.log_add(LikelihoodRatio(-epsilon)))
    return math.log1p(-math.exp(epsilon) * kept)
