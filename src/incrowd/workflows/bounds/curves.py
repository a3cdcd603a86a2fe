"""Trade-off curves: δ over ε around the promise that was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from incrowd.accounting.suppression.theorems import log_theorem1_delta
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter
from incrowd.workflows.bounds.crowd import CrowdBound, CrowdQuestion, crowd_of
from incrowd.workflows.bounds.plot import Curve, Plot
from incrowd.workflows.bounds.safe import SafeBound, SafeQuestion, log_delta_of

_STEPS = 120
_LEAST_WIDTH = 2

LogDelta = Callable[[Fraction], float]


def safe_curve(found: SafeBound) -> Plot:
    """Return δ over ε for these k and rate: the tight curve, and Theorem 1 where it speaks."""
    question = SafeQuestion(found.k, found.rate, adjacency=found.adjacency, rows_per_person=found.rows_per_person)
    grid = epsilon_grid(found.epsilon)
    curves = [curve("tight", lambda epsilon: log_delta_of(question, epsilon), grid)]
    if found.adjacency is Adjacency.ADD_REMOVE and found.rows_per_person == 1:
        curves.append(curve("Theorem 1", lambda epsilon: log_theorem1_delta(found.k, found.rate, epsilon), grid))
    title = f"Sampled suppression, k = {found.k}, rate {found.rate:.6g}: {found.unit}"
    return Plot(title, "ε", "δ", tuple(curves), mark=(found.epsilon, found.log10_delta))


def crowd_curve(found: CrowdBound) -> Plot:
    """Return δ over ε for this crowd under its sample."""
    crowd = crowd_of(
        CrowdQuestion(
            found.k,
            found.rate,
            found.crowd_epsilon,
            high_rate=found.high_rate,
            irregular=found.irregular,
            max_rate=found.max_rate,
        )
    )
    curves = (curve("exact worst case", crowd.log_delta, epsilon_grid(found.epsilon)),)
    title = f"Crowd-blending after sampling, k = {found.k}, crowd ε = {found.crowd_epsilon:.6g}, rate {found.rate:.6g}"
    return Plot(title, "ε", "δ", curves, mark=(found.epsilon, found.log10_delta))


def epsilon_grid(around: float) -> tuple[Fraction, ...]:
    """Return evenly spaced ε from 0 to a round number that holds what was asked for.

    >>> [float(epsilon) for epsilon in epsilon_grid(0.5)][-1]
    2.0
    """
    width = max(_LEAST_WIDTH, math.ceil(1.25 * around))
    return tuple(Fraction(width * step, _STEPS) for step in range(_STEPS + 1))


def curve(name: str, log_delta: LogDelta, grid: tuple[Fraction, ...]) -> Curve:
    """Return log₁₀ δ over the grid, without the points at which the rule says nothing or δ is 0."""
    points = []
    for epsilon in grid:
        try:
            value = log_delta(epsilon)
        except InvalidParameter:  # below the reach of the theorem
            continue
        if value > -math.inf:
            points.append((float(epsilon), value / math.log(10.0)))
    return Curve(name, tuple(points))
