"""Tables: the δ of several releases of sampled crowds together, at every ratio.

For each ratio a the excess of "with you" over a times "without you" is taken at its largest over all sizes of a crowd.
Between the ratios of a fine grid a straight line is used, which lies above (such a function is convex).  A function
that consists of lines is the excess of two laws with finitely many losses: the bend at a is the mass of "without you"
there, and a times that the mass of "with you".  Losses of independent tables add up, so their masses are convolved.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from incrowd.verifier.slow_accountant.crowds import Law, binomials, suppressed
from incrowd.verifier.slow_accountant.noise import NOTHING, LossSpread

_WORK = 1e8  # sizes of crowds times outcomes and ratios: some seconds
_FAINT = 36.0  # what is left out has a chance of e^-36 at most
# half of what the fast accountant uses, so that rounding the losses differs between both
_WIDEST, _FINEST = 0.0025, 0.00025
_TOP, _BOTTOM = 1e-40, 1e-12  # masses cut at both ends; δ grows by that much, see `_trimmed`
_MOST = 64  # tables convolved one by one: bounds the time
HIGH = Fraction(9, 10)
"""Above this rate an addition can show more than a removal in crowds of every size."""


def tables_delta(k: int, rate: Fraction, tables: int, epsilon: float, beside: LossSpread = NOTHING) -> float | None:
    """Return δ at ε of so many tables, each with its own sample, beside other losses; None if it cannot be tried.

    Of each loss x beside them, ε − x is left for the tables.

    >>> one, two = tables_delta(8, Fraction(1, 10), 1, 0.5), tables_delta(8, Fraction(1, 10), 2, 0.8527)
    >>> from incrowd.verifier.slow_accountant.crowds import suppression_delta
    >>> math.isclose(one, suppression_delta(8, Fraction(1, 10), 0.5), rel_tol=1e-4)
    True
    >>> two < 1.0001e-6
    True
    """
    if rate > HIGH or tables > _MOST or (excesses := _excesses(k, rate)) is None:
        return None
    knots, removed, added = excesses
    worst = 0.0
    for ahead, behind in ((removed, added), (added, removed)):
        losses, masses, infinite = _together(knots, ahead, behind, tables)
        total = beside.infinite
        for loss, mass in beside.masses:
            total += mass * (infinite + float(masses @ np.maximum(0.0, -np.expm1(epsilon - loss - losses))))
        worst = max(worst, total)
    return worst


def _together(knots: Law, ahead: Law, behind: Law, tables: int) -> tuple[Law, Law, float]:
    """Return losses, their masses and the mass of an infinite loss, for so many tables; knots are losses of one."""
    one = _trimmed(1 - len(knots), _masses(knots, ahead, behind), float(ahead[-1]))
    first, sums, infinite = one
    for _ in range(tables - 1):
        both = infinite + one[2] - infinite * one[2]
        first, sums, infinite = _trimmed(first + one[0], np.convolve(sums, one[1]), both)
    return (first + np.arange(len(sums))) * knots[1], sums, infinite


def _trimmed(first: int, masses: Law, infinite: float) -> tuple[int, Law, float]:
    """Return the place of the first loss, the masses from there on and that of an infinite loss, both ends cut.

    The top that is cut becomes infinite, the bottom joins the lowest that is kept: both ways δ can only grow, by 1e-40,
    and by one part in 10¹², since all the rest, which shows at least as much, weighs 10¹² times as much.
    """
    last = len(masses) - int(np.searchsorted(np.cumsum(masses[::-1]), _TOP))
    lowest = min(int(np.searchsorted(np.cumsum(masses), _BOTTOM)), last - 1)
    retained = masses[lowest:last].copy()
    retained[0] += masses[:lowest].sum()
    return first + lowest, retained, infinite + float(masses[last:].sum())


def _masses(knots: Law, ahead: Law, behind: Law) -> Law:
    """Return the masses of "with you" at the losses −last … last, from the excess on either side.

    Exchange the two laws and a loss changes its sign: there "with you" stands where "without you" stood, so the bend of
    the other side's excess is its mass at once.  What is left lies at a loss of 0.
    """
    ratios = np.exp(knots)
    gained = _bends(ratios, ahead) * ratios[1:]
    lost = _bends(ratios, behind)
    rest = max(0.0, 1.0 - float(ahead[-1]) - float(gained.sum()) - float(lost.sum()))
    return np.concatenate([lost[::-1], [rest], gained])


def _bends(ratios: Law, excess: Law) -> Law:
    """Return by how much the slope changes at each ratio but the first; beyond the last the excess stays the same."""
    slopes = np.append(np.diff(excess) / np.diff(ratios), 0.0)
    bends: Law = np.maximum(np.diff(slopes), 0.0)
    return bends


@lru_cache(maxsize=8)
def _excesses(k: int, rate: Fraction) -> tuple[Law, Law, Law] | None:
    """Return a grid of logarithms of ratios, and there the largest excess of a removal and of an addition.

    A removal shows most in a crowd of at most k/rate; an addition, near the ratio 1/(1 − rate), in ever larger ones,
    where it shows next to nothing: from the last ratio that was tried a line leads to 0, above what is convex, and the
    crowd is large enough that this is faint.  Beyond that an addition shows nothing; a removal beyond k·(1 − rate)
    shows rate to the k.
    """
    times = _enough(k)
    largest = math.ceil(times * k / float(rate)) + 2
    step = max(_FINEST, min(_WIDEST, 0.1 / k))
    reach = max(math.log(k) + math.log(float(1 - rate)), -math.log(float(1 - rate)), step)
    if largest * (largest + reach / step) > _WORK:
        return None
    knots = np.arange(math.ceil(reach / step) + 2, dtype=np.float64) * step
    ratios = np.exp(knots)
    removed, added = np.zeros(len(knots)), np.zeros(len(knots))
    published, laws = suppressed(k), binomials(rate)
    without = published(next(laws))
    for _ in range(largest):
        with_you = published(next(laws))
        removed = np.maximum(removed, _excess(with_you, np.append(without, 0.0), ratios))
        added = np.maximum(added, _excess(np.append(without, 0.0), with_you, ratios))
        without = with_you
    left = np.maximum(1.0 - ratios * float(1 - rate), 0.0)
    last = int(np.flatnonzero(left * largest >= k)[-1])
    added[last:] = added[last] * left[last:] / left[last]
    return knots, removed, added


def _excess(one: Law, other: Law, ratios: Law) -> Law:
    """Return for each ratio a the sum of max(0, one − a·other), over outcomes in the order of their quotients."""
    quotients = np.divide(one, other, out=np.full(len(one), np.inf), where=other > 0.0)
    order = np.argsort(-quotients, kind="stable")
    ones, others = (np.concatenate([[0.0], np.cumsum(law[order])]) for law in (one, other))
    gaining = np.searchsorted(-quotients[order], -ratios, side="left")
    excess: Law = np.maximum(ones[gaining] - ratios * others[gaining], 0.0)
    return excess


def _enough(k: int) -> float:
    """Return how many times k/rate a crowd must be for "fewer than k were drawn" to have a chance of e^-36 at most.

    By Chernoff's bound that is e^(−k·(f − 1 − ln f)) for f times k expected.
    """
    times = 1.0
    while k * (times - 1.0 - math.log(times)) < _FAINT:
        times += 0.25
    return times
