"""The parameters of histograms on a secret sample: delta is given, and two of epsilon, k and the rate."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from incrowd.accounting import accountant
from incrowd.accounting.amplification import amplify
from incrowd.accounting.suppression.inverses import feasible_k, largest_decimal, least_k
from incrowd.core.loss import Grouped, Loss, Sampled
from incrowd.core.steps.counts import small_counts
from incrowd.core.unit import Unit
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.crowds import parameters as suppression
from incrowd.methods.crowds.parameters import Parameters, Target


def loss_of(k: int, rate: Fraction, unit: Unit, noise: Fraction | None) -> Loss:
    """Return the loss of a histogram on a secret sample for a unit.

    >>> loss_of(5, Fraction(1, 10), Unit(), Fraction(1))
    Sampled(rate=Fraction(1, 10), inner=NoisyWhenSmall(k=5, epsilon=Fraction(1, 1)), sample=None)
    """
    row = Sampled(rate, small_counts(k, noise).crowd)
    return Grouped(unit.max_rows, row) if unit.max_rows > 1 else row


@lru_cache(maxsize=256)
def solve(
    k: int | None, rate: Fraction | None, target: Target, unit: Unit, noise: Fraction | None = None
) -> Parameters:
    """Return k, rate, ε and δ, given δ and two of the others; `noise` is the ε of noise on small counts, if any.

    δ does not rise with k nor fall with the rate: above ε = ln(1 + rate·(e^noise − 1)) it is that of sampled
    suppression, below it that of the worst crowd-blending mechanism, which is never smaller.

    >>> solve(None, Fraction(1, 10), Target(Fraction(1, 10**6), Fraction(1, 2)), Unit(), Fraction(1)).k
    10
    >>> solve(20, Fraction(1, 10), Target(Fraction(1, 10**6)), Unit(), Fraction(1)).solved
    'epsilon'
    """
    if noise is None:
        return suppression.solve(k, rate, target, unit)
    if [k, rate, target.epsilon].count(None) != 1:
        raise InvalidParameter(
            "a secret sample needs delta and exactly two of epsilon, k and rate; the third is solved."
        )
    solved = "k" if k is None else "rate" if rate is None else "epsilon"
    if k is None and rate is not None:
        k = _smallest_k(rate, target, unit, noise)
    if rate is None and k is not None:
        found_k = k
        rate = largest_decimal(lambda each: _meets(found_k, each, target, unit, noise), target.delta, k)
    if k is None or rate is None:
        raise AssertionError("two of three were given")
    spend = accountant.charge_of(loss_of(k, rate, unit, noise), target.delta, unit.adjacency)
    if not spend.epsilon.is_finite():
        raise Infeasible(
            f"no epsilon gives this delta at k = {k}: it stays at or above rate ** k. Raise k, lower the rate"
            + (" or max_rows" if unit.max_rows > 1 else "")
            + ", or allow a larger delta."
        )
    return Parameters(k, rate, spend.epsilon, target.delta, solved)


def _smallest_k(rate: Fraction, target: Target, unit: Unit, noise: Fraction) -> int:
    wanted = float(target.epsilon or 0) / unit.max_rows
    own, tilt = amplify(noise, 0, rate)[0], math.exp(min(float(noise), 300.0))
    # However large the crowd, one noisy bit on a sample remains: its δ at the wanted ε is a floor for every k.
    floor = (float(rate) * (tilt - 1.0) - math.expm1(wanted)) / (1.0 + tilt)
    if wanted < own and floor > float(target.delta):
        raise Infeasible(
            f"no k gives this delta at epsilon {float(target.epsilon or 0):g}: the noise on small counts costs "
            f"{own * unit.max_rows:.6g} at this rate, however large the crowd. Ask for that epsilon or more, or lower "
            "noise_epsilon or the rate."
        )
    return least_k(lambda each: _meets(each, rate, target, unit, noise), feasible_k(target.delta, rate))


def _meets(k: int, rate: Fraction, target: Target, unit: Unit, noise: Fraction) -> bool:
    bound = accountant.delta(loss_of(k, rate, unit, noise), target.epsilon or 0, unit.adjacency)
    return Fraction(bound.value) <= target.delta
