"""The price of slices: several releases by sampled suppression, each with its own sample, as one guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from incrowd.core.loss import Loss, Pure, Sequence
from incrowd.core.unit import Unit
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.crowds.parameters import Parameters, Target, charged, loss_of, solve

_LARGEST = 2**24
_DIGITS, _HALVINGS = 4, 16


@dataclass(frozen=True)
class SampledSlices:
    """So many samples for a unit, each released by sampled suppression at one k and one rate."""

    samples: int
    unit: Unit

    def loss(self, k: int, rate: Fraction, choosing: Fraction | None = None) -> Loss:
        """Return the loss of all of them, behind a private choice if there is one.

        >>> SampledSlices(2, Unit()).loss(5, Fraction(1, 10)).parts[1]
        Sampled(rate=Fraction(1, 10), inner=Crowd(k=5, epsilon=Fraction(0, 1)), sample=None)
        """
        parts = ((Pure(choosing),) if choosing is not None else ()) + (loss_of(k, rate, self.unit),) * self.samples
        return parts[0] if len(parts) == 1 else Sequence(parts)

    def epsilon(self, k: int, rate: Fraction, delta: Fraction, choosing: Fraction | None = None) -> Decimal:
        """Return what the ledger charges for all of them at δ, by the tightest composition; infinite if nothing does.

        >>> f"{SampledSlices(2, Unit()).epsilon(8, Fraction(1, 10), Fraction(1, 10**6)):.4f}"
        '0.8527'
        """
        return charged(self.loss(k, rate, choosing), delta, self.unit.adjacency)

    def solve(self, k: int | None, rate: Fraction | None, target: Target) -> Parameters:
        """Return all four parameters, given δ and two of ε, k and the rate; ε is that of all slices together.

        A larger k and a smaller rate never cost more, so the least k and the largest rate are found by halving.

        >>> SampledSlices(2, Unit()).solve(None, Fraction(1, 10), Target(Fraction(1, 10**6), Fraction(1))).k
        8
        """
        if self.samples == 1:
            return solve(k, rate, target, self.unit)
        if [k, rate, target.epsilon].count(None) != 1:
            raise InvalidParameter("slices need delta and exactly two of epsilon, k and rate; the third is solved.")
        return _solved(self, k, rate, target)


@lru_cache(maxsize=256)
def _solved(slices: SampledSlices, k: int | None, rate: Fraction | None, target: Target) -> Parameters:
    delta, epsilon = target.delta, target.epsilon
    if k is None and rate is not None and epsilon is not None:
        solved, k = "k", _least_k(slices, rate, epsilon, delta)
    elif rate is None and k is not None and epsilon is not None:
        solved, rate = "rate", _largest_rate(slices, k, epsilon, delta)
    else:
        solved = "epsilon"
    if k is None or rate is None:
        raise AssertionError("two of three were given")
    found = slices.epsilon(k, rate, delta)
    if not found.is_finite():
        raise Infeasible(
            f"no epsilon gives {slices.samples} tables this delta at k = {k} and rate {rate}: raise k, lower the rate, "
            "make fewer groups, or allow a larger delta."
        )
    return Parameters(k, rate, found, delta, solved)


def _least_k(slices: SampledSlices, rate: Fraction, epsilon: Fraction, delta: Fraction) -> int:
    """Return the least k that is enough; one table alone, whose k is known, never needs a larger one than several."""
    low = solve(None, rate, Target(delta, epsilon), slices.unit).k
    high = low
    while slices.epsilon(high, rate, delta) > epsilon:
        low, high = high + 1, 2 * high
        if high > _LARGEST:
            raise Infeasible(
                f"no k brings {slices.samples} tables at rate {rate} to this epsilon and delta: lower the rate, make "
                "fewer groups, or allow more."
            )
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if slices.epsilon(middle, rate, delta) <= epsilon else (middle + 1, high)
    return high


def _largest_rate(slices: SampledSlices, k: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a rate of a few digits that is enough, near the largest; several tables never allow more than one does."""
    high = solve(k, None, Target(delta, epsilon), slices.unit).rate
    low = high
    while slices.epsilon(k, low, delta) > epsilon:
        low, high = low / 2, low
        if low * _LARGEST < 1:
            raise Infeasible(
                f"no rate brings {slices.samples} tables to this epsilon and delta at k = {k}: raise k, make fewer "
                "groups, or allow more."
            )
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slices.epsilon(k, middle, delta) <= epsilon else (low, middle)
    return _short(low)


def _short(rate: Fraction) -> Fraction:
    """Return a rate rounded down to a few digits.

    >>> _short(Fraction(1, 3))
    Fraction(3333, 10000)
    """
    tens = Fraction(1)
    while rate * tens < 10 ** (_DIGITS - 1):
        tens *= 10
    return int(rate * tens) / tens
