"""Noise on every count: its scale from a budget or from a wanted error, what it costs, and how far it reaches."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from incrowd.accounting import accountant, additive
from incrowd.core.loss import Approximate, Gaussian, Grouped, Laplace, Loss, Sampled
from incrowd.core.steps.counts import Law
from incrowd.core.steps.samples import moved, of_unit
from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.mechanisms.add_noise import AddGaussian, AddLaplace, Threshold

CONFIDENCE = Fraction(95, 100)  # of all intervals that are printed; 95 % is what statistical offices use
_DIGITS = 9  # of a searched scale; what is returned was tried
_LARGEST = Fraction(2**48)  # the widest noise that can be drawn (`noise/system.py`)


@dataclass(frozen=True)
class NoiseRequest:
    """What a policy asks of the noise: its kind, and ε or an error; δ where the noise or unknown bins need one."""

    kind: str
    epsilon: Fraction | None
    delta: Fraction | None
    error: int | None
    rate: Fraction | None


@dataclass(frozen=True)
class Noise:
    """Noise that was settled: `epsilon` and `delta` are what it costs the unit, `within` holds for 95 % of counts."""

    kind: str
    scale: Fraction
    loss: Loss
    epsilon: Decimal
    delta: Fraction
    within: int
    threshold: Threshold | None

    @property
    def law(self) -> Law:
        """Its name in a step."""
        return Law.LAPLACE if self.kind == "laplace" else Law.GAUSSIAN

    @property
    def mechanism(self) -> AddLaplace | AddGaussian:
        """What adds the noise."""
        return AddLaplace(self.scale) if self.kind == "laplace" else AddGaussian(self.scale)


@lru_cache(maxsize=256)
def settle_noise(request: NoiseRequest, unit: Unit, *, unknown: bool) -> Noise:
    """Return the noise with the least scale that keeps the budget, or the largest that keeps the error.

    `unknown` bins, found while reading, are released from a threshold on: half of δ pays for it beside Gaussian noise,
    all of it beside Laplace noise, which needs none itself.

    >>> settle_noise(NoiseRequest("laplace", Fraction(1, 2), None, None, None), Unit(), unknown=False).within
    6
    >>> settle_noise(NoiseRequest("laplace", None, None, 10, None), Unit(), unknown=False).epsilon < Decimal("0.3")
    True
    """
    _check(request, unit, unknown=unknown)
    gaussian = request.kind == "gaussian"
    whole = request.delta or Fraction(0)
    hidden = (whole / 2 if gaussian else whole) if unknown else Fraction(0)
    scale = _scale(request, unit, whole - hidden)
    loss = noise_loss(request.kind, scale, unit, request.rate)
    spend = accountant.charge_of(loss, whole - hidden, unit.adjacency)
    if not spend.epsilon.is_finite():
        raise Infeasible("this noise has no epsilon at this delta: allow a larger error or a larger delta.")
    threshold = None
    if unknown:
        loss = Approximate(Fraction(spend.epsilon), whole)
        kind = AddGaussian if gaussian else AddLaplace
        threshold = Threshold(kind(scale, unit.max_rows, unit.max_rows * moved(unit)), hidden)
    within = (
        additive.gaussian_error(Gaussian(scale), CONFIDENCE)
        if gaussian
        else additive.laplace_error(Laplace(scale), CONFIDENCE)
    )
    return Noise(request.kind, scale, loss, spend.epsilon, whole, within, threshold)


def noise_loss(kind: str, scale: Fraction, unit: Unit, rate: Fraction | None) -> Loss:
    """Return what independent noise on the counts of all bins costs a unit.

    On a secret sample each row has a coin of its own: the loss of a sampled row, for a group of a person's rows.

    >>> noise_loss("laplace", Fraction(2), Unit(), None)
    Laplace(scale=Fraction(2, 1), sensitivity=1)
    """
    single = Laplace(scale) if kind == "laplace" else Gaussian(scale)
    if rate is None:
        return of_unit(single, unit)
    row = Sampled(rate, single)
    return Grouped(unit.max_rows, row) if unit.max_rows > 1 else row


def _check(request: NoiseRequest, unit: Unit, *, unknown: bool) -> None:
    if request.kind not in ("laplace", "gaussian"):
        raise InvalidParameter("noise is laplace or gaussian.")
    if (request.epsilon is None) == (request.error is None):
        raise InvalidParameter("give epsilon, or the error that 95 % of counts may have; the other one is solved.")
    if request.epsilon is not None and request.epsilon <= 0:
        raise InvalidParameter("epsilon must be above 0.")
    if request.error is not None and request.error < 0:
        raise InvalidParameter("an error cannot be negative.")
    needed = unknown or request.kind == "gaussian"
    if needed != (request.delta is not None):
        raise InvalidParameter(
            "delta is needed for Gaussian noise and for bins that are not known before rows are read."
            if needed
            else "Laplace noise on known bins has no delta: leave it out."
        )
    if request.delta is not None and not 0 < request.delta < 1:
        raise InvalidParameter("delta must lie strictly between 0 and 1, such as 1e-8.")
    if request.rate is not None and not 0 < request.rate < 1:
        raise InvalidParameter("the rate of a secret sample lies strictly between 0 and 1; leave it out to read all.")
    if request.rate is not None and (unknown or unit.adjacency is Adjacency.REPLACE):
        raise InvalidParameter(
            "a secret sample saves nothing here: it needs known bins, and rows that are added or removed. Leave the "
            "rate out."
        )


def _scale(request: NoiseRequest, unit: Unit, delta: Fraction) -> Fraction:
    """Return the scale of the noise: exactly where there is a formula, else the least of nine digits that is enough."""
    if request.error is not None:
        return _widest(request.kind, request.error)
    epsilon = request.epsilon or Fraction(0)
    rows = unit.max_rows * moved(unit)
    if request.kind == "laplace" and request.rate is None:
        return rows / epsilon

    def enough(scale: Fraction) -> bool:
        loss = noise_loss(request.kind, scale, unit, request.rate)
        if not delta:
            return Fraction(accountant.charge_of(loss, 0, unit.adjacency).epsilon) <= epsilon
        return Fraction(accountant.delta(loss, epsilon, unit.adjacency).value) <= delta

    return _least(enough)


def _widest(kind: str, error: int) -> Fraction:
    if kind == "laplace":
        return additive.laplace_for_error(error, CONFIDENCE).noise.scale
    # from the tail bound 2·exp(−m²/(2σ²)) at m = error + 1, cut to a short fraction from below
    limit = (error + 1) / math.sqrt(2.0 * math.log(2.0 / float(1 - CONFIDENCE)))
    return Fraction(math.floor(limit * 10**6), 10**6)


def _least(enough: Callable[[Fraction], bool]) -> Fraction:
    low, high = Fraction(0), Fraction(1)
    while not enough(high):
        low, high = high, 2 * high
        if high > _LARGEST:
            raise Infeasible("no noise of a usable size meets this budget; allow more epsilon or delta.")
    while high - low > high / 10**_DIGITS:
        middle = Fraction(float((low + high) / 2)).limit_denominator(10**12)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
