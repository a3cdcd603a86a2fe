"""Nearest: what a release without an epsilon would promise, had it a secret sample in front."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from incrowd.accounting.accountant import charge_of
from incrowd.core.loss import Crowd, Loss, Sampled, Syntactic
from incrowd.core.unit import Unit

_RATES = (Fraction(1, 10), Fraction(1, 2))
_DELTA = Fraction(1, 10**6)


@dataclass(frozen=True)
class Nearest:
    """Sampled suppression below the same k, or below a larger one: what it costs."""

    k: int
    rate: Fraction
    epsilon: Decimal
    delta: Fraction


def nearest_safe(loss: Loss, k: int | None, unit: Unit, population: int | None) -> tuple[Nearest, ...]:
    """Return what sampled suppression would promise for a release that promises a form, or crowds, and no epsilon.

    The k is the stated one, or the least twice, four times … as large that reaches an epsilon of at most 2 at a delta
    of one in a million, or a tenth of one over the population.  Every released column then belongs to the class.

    >>> [(each.k, str(each.rate)) for each in nearest_safe(Syntactic("k-anonymity"), 5, Unit(), None)]
    [(10, '1/10'), (40, '1/2')]
    """
    if k is None or unit.max_rows > 1 or not isinstance(loss, Crowd | Syntactic):
        return ()
    delta = _DELTA if population is None else min(_DELTA, Fraction(1, 10 * max(1, population)))
    return tuple(_least(max(2, k), rate, delta, unit) for rate in _RATES)


def _least(k: int, rate: Fraction, delta: Fraction, unit: Unit) -> Nearest:
    while True:
        epsilon = charge_of(Sampled(rate, Crowd(k)), delta, unit.adjacency).epsilon
        if epsilon.is_finite() and epsilon <= 2:
            return Nearest(k, rate, epsilon, delta)
        k *= 2
