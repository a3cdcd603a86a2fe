"""Several tables together, derived a second time: every crowd tried at every ratio, the losses added one by one.

Nothing here comes from the accountants.  For each ratio a the excess of "with you" over a times "without you" is taken
at its largest over all sizes of a crowd.  Between the ratios of a fine grid a straight line stands in, which lies above
(such a function is convex).  A function that consists of lines is the excess of two laws with finitely many losses:
the bend at a is the mass of "without you" there, and a times that the mass of "with you".  Losses of independent
tables add up, so their masses are convolved.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_WORK = 1e8  # sizes of crowds times outcomes and ratios: some seconds
_FAINT = 36.0  # what is left out has a chance of e^-36 at most
_WIDEST, _FINEST = 0.0025, 0.00025
_TOP, _BOTTOM = 1e-40, 1e-12
_HIGH, _MOST = Fraction(9, 10), 64


def slices_delta(k: int, rate: Fraction, tables: int, epsilon: float, choosing: float = 0.0) -> float | None:
    """Return δ at ε of so many tables, each with its own sample, and of a private choice; None if it cannot be tried.

    The choice tells no more than one bit that is right with chance e^c/(1 + e^c), c being its ε: if it is right, ε − c
    is left for the tables, if it is wrong ε + c.

    >>> one, two = slices_delta(8, Fraction(1, 10), 1, 0.5), slices_delta(8, Fraction(1, 10), 2, 0.8527)
    >>> from incrowd.workflows.rederive import suppression_delta
    >>> math.isclose(one, suppression_delta(8, Fraction(1, 10), 0.5), rel_tol=1e-4)
    True
    >>> two < 1.0001e-6
    True
    """
    if rate > _HIGH or tables > _MOST or (excesses := _excesses(k, rate)) is None:
        return None
    knots, removed, added = excesses
    odds, worst = math.exp(choosing), 0.0
    for ahead, behind in ((removed, added), (added, removed)):
        losses, masses, infinite = _together(knots, ahead, behind, tables)

        def at(x: float, of: tuple[Floats, Floats, float] = (losses, masses, infinite)) -> float:
            return of[2] + float(of[1] @ np.maximum(0.0, -np.expm1(x - of[0])))

        worst = max(worst, (odds * at(epsilon - choosing) + at(epsilon + choosing)) / (1.0 + odds))
    return worst


def _together(knots: Floats, ahead: Floats, behind: Floats, tables: int) -> tuple[Floats, Floats, float]:
    """Return losses, their masses and the mass of an infinite loss, for so many tables; knots are losses of one."""
    one = _trimmed(1 - len(knots), _masses(knots, ahead, behind), float(ahead[-1]))
    first, sums, infinite = one
    for _ in range(tables - 1):
        both = infinite + one[2] - infinite * one[2]
        first, sums, infinite = _trimmed(first + one[0], np.convolve(sums, one[1]), both)
    return (first + np.arange(len(sums))) * knots[1], sums, infinite


def _trimmed(first: int, masses: Floats, infinite: float) -> tuple[int, Floats, float]:
    """Return the place of the first loss, the masses from there on and that of an infinite loss, both ends cut.

    The top that is cut becomes infinite, the bottom joins the lowest that is kept: both ways δ can only grow, by 1e-40,
    and by one part in 10¹², since all the rest, which shows at least as much, weighs 10¹² times as much.
    """
    last = len(masses) - int(np.searchsorted(np.cumsum(masses[::-1]), _TOP))
    lowest = min(int(np.searchsorted(np.cumsum(masses), _BOTTOM)), last - 1)
    kept = masses[lowest:last].copy()
    kept[0] += masses[:lowest].sum()
    return first + lowest, kept, infinite + float(masses[last:].sum())


def _masses(knots: Floats, ahead: Floats, behind: Floats) -> Floats:
    """Return the masses of "with you" at the losses −last … last, from the excess on either side.

    Exchange the two laws and a loss changes its sign: there "with you" stands where "without you" stood, so the bend of
    the other side's excess is its mass at once.  What is left lies at a loss of 0.
    """
    ratios = np.exp(knots)
    gained = _bends(ratios, ahead) * ratios[1:]
    lost = _bends(ratios, behind)
    rest = max(0.0, 1.0 - float(ahead[-1]) - float(gained.sum()) - float(lost.sum()))
    return np.concatenate([lost[::-1], [rest], gained])


def _bends(ratios: Floats, excess: Floats) -> Floats:
    """Return by how much the slope changes at each ratio but the first; beyond the last the excess stays the same."""
    slopes = np.append(np.diff(excess) / np.diff(ratios), 0.0)
    bends: Floats = np.maximum(np.diff(slopes), 0.0)
    return bends


@lru_cache(maxsize=8)
def _excesses(k: int, rate: Fraction) -> tuple[Floats, Floats, Floats] | None:
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
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, largest + 1, dtype=np.float64)))])
    without = _published(k, 0, rate, factorials)
    for n in range(1, largest + 1):
        with_you = _published(k, n, rate, factorials)
        removed = np.maximum(removed, _excess(with_you, np.append(without, 0.0), ratios))
        added = np.maximum(added, _excess(np.append(without, 0.0), with_you, ratios))
        without = with_you
    left = np.maximum(1.0 - ratios * float(1 - rate), 0.0)
    last = int(np.flatnonzero(left * largest >= k)[-1])
    added[last:] = added[last] * left[last:] / left[last]
    return knots, removed, added


def _published(k: int, n: int, rate: Fraction, factorials: Floats) -> Floats:
    """Return the law of what is published of n records: 0 if fewer than k were drawn, else how many."""
    drawn = np.arange(n + 1)
    ways = factorials[n] - factorials[drawn] - factorials[n - drawn]
    law: Floats = np.exp(ways + drawn * math.log(float(rate)) + (n - drawn) * math.log(float(1 - rate)))
    return np.where(drawn >= k, law, np.where(drawn == 0, law[:k].sum(), 0.0))


def _excess(one: Floats, other: Floats, ratios: Floats) -> Floats:
    """Return for each ratio a the sum of max(0, one − a·other), over outcomes in the order of their quotients."""
    quotients = np.divide(one, other, out=np.full(len(one), np.inf), where=other > 0.0)
    order = np.argsort(-quotients, kind="stable")
    ones, others = (np.concatenate([[0.0], np.cumsum(law[order])]) for law in (one, other))
    gaining = np.searchsorted(-quotients[order], -ratios, side="left")
    excess: Floats = np.maximum(ones[gaining] - ratios * others[gaining], 0.0)
    return excess


def _enough(k: int) -> float:
    """Return how many times k/rate a crowd must be for "fewer than k were drawn" to have a chance of e^-36 at most.

    By Chernoff's bound that is e^(−k·(f − 1 − ln f)) for f times k expected.
    """
    times = 1.0
    while k * (times - 1.0 - math.log(times)) < _FAINT:
        times += 0.25
    return times
