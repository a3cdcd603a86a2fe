"""The parameters of sampled suppression: delta is given, and two of epsilon, k and the rate; the third is solved."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from incrowd.accounting import accountant, people
from incrowd.accounting.amplification import amplify
from incrowd.accounting.suppression import inverses
from incrowd.accounting.suppression.inverses import feasible_k, largest_decimal, least_k
from incrowd.core.cells import Cells
from incrowd.core.loss import Crowd, Grouped, Loss, Pure, Sampled, Sequence
from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.counts import small_counts
from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import Infeasible, InvalidParameter

_TWO_OF_THREE = "a secret sample needs delta and exactly two of epsilon, k and rate; the third is solved."


@dataclass(frozen=True)
class Target:
    """The δ of a guarantee, and its ε unless that is solved: the keys `delta` and `epsilon` of a method."""

    delta: Fraction
    epsilon: Fraction | None = None

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise InvalidParameter("delta must lie strictly between 0 and 1, such as 1e-8.")
        if self.epsilon is not None and self.epsilon < 0:
            raise InvalidParameter("epsilon cannot be negative.")

    @classmethod
    def of(cls, epsilon: Fraction | None, delta: Fraction | None) -> Target | None:
        """Return the two keys as one value, None where both were left out; ε without δ is refused.

        >>> Target.of(Fraction(1), Fraction(1, 10**6))
        Target(delta=Fraction(1, 1000000), epsilon=Fraction(1, 1))
        """
        if delta is not None:
            return cls(delta, epsilon)
        if epsilon is not None:
            raise InvalidParameter("epsilon is that of a secret sample, which needs delta too, such as delta: 1e-8.")
        return None


@dataclass(frozen=True)
class Parameters:
    """A complete set: sampled suppression at (k, rate) is (ε, δ)-private for its unit; which one was solved."""

    k: int
    rate: Fraction
    epsilon: Decimal
    delta: Fraction
    solved: str


def loss_of(k: int, rate: Fraction, unit: Unit) -> Loss:
    """Return the loss of one release by sampled suppression for a unit.

    >>> loss_of(20, Fraction(1, 10), Unit())
    Sampled(rate=Fraction(1, 10), inner=Crowd(k=20, epsilon=Fraction(0, 1)), sample=None)
    """
    row = Sampled(rate, Crowd(k))
    return Grouped(unit.max_rows, row) if unit.max_rows > 1 else row


@lru_cache(maxsize=256)
def solve(k: int | None, rate: Fraction | None, target: Target, unit: Unit) -> Parameters:
    """Return all four parameters, given δ and two of the others; the ε returned is the least that holds.

    >>> solve(None, Fraction(1, 10), Target(Fraction(1, 10**6), Fraction(1, 2)), Unit()).k
    10
    >>> solve(20, Fraction(1, 10), Target(Fraction(1, 10**6)), Unit()).solved
    'epsilon'
    """
    if [k, rate, target.epsilon].count(None) != 1:
        raise InvalidParameter(_TWO_OF_THREE)
    solved = "k" if k is None else "rate" if rate is None else "epsilon"
    if k is None and rate is not None and target.epsilon is not None:
        k = _smallest_k(rate, target.epsilon, target.delta, unit)
    elif rate is None and k is not None and target.epsilon is not None:
        rate = _largest_rate(k, target.epsilon, target.delta, unit)
    if k is None or rate is None:
        raise AssertionError("two of three were given")
    if solved == "epsilon" and unit.max_rows == 1:
        inverses.smallest_epsilon(target.delta, k, rate, unit.adjacency)  # refuses delta < rate ** k, with a way out
    spend = accountant.charge_of(loss_of(k, rate, unit), target.delta, unit.adjacency)
    if not spend.epsilon.is_finite():
        raise Infeasible(
            f"no epsilon gives a person with {unit.max_rows} rows this delta at k = {k}: "
            "raise k, lower the rate or max_rows, or allow a larger delta."
        )
    return Parameters(k, rate, spend.epsilon, target.delta, solved)


def require_crowds_of_people(unit: Unit) -> None:
    """Raise if one row among several is kept of a person: without a sample, counts then guarantee people nothing."""
    if not unit.single:
        raise InvalidParameter(
            "without a secret sample this guarantees crowds, and somebody of whom one row among several is kept blends "
            "with nobody. Write more: drop beside the person column, which leaves out people with more rows, or more: "
            "refuse."
        )


@lru_cache(maxsize=256)
def solve_behind(choosing: Fraction, k: int | None, rate: Fraction | None, target: Target, unit: Unit) -> Parameters:
    """Return all four parameters where a private choice of ε `choosing` stands in front: ε and δ are of both.

    What a ledger charges a unit for choice and release together is never above `epsilon`: the least k, or the
    largest rate of six digits, is sought with which it is not.  The ε returned is that of the release alone.

    >>> solve_behind(Fraction(1, 2), None, Fraction(1, 10), Target(Fraction(1, 10**6), Fraction(1)), Unit()).k
    10
    """
    alone = solve(k, rate, target, unit)
    if target.epsilon is None or _both(choosing, alone.k, alone.rate, target, unit) <= target.epsilon:
        return alone
    if choosing >= target.epsilon:
        raise Infeasible(
            f"the choice alone costs epsilon {float(choosing):g}, and choice and release together may cost "
            f"{float(target.epsilon):g}. Choose with less, or raise epsilon."
        )
    limit = target.epsilon
    if alone.solved == "k":
        more = inverses.least_k(lambda k: _both(choosing, k, alone.rate, target, unit) <= limit, alone.k + 1)
        return replace(solve(more, alone.rate, Target(target.delta), unit), solved="k")

    def meets(rate: Fraction) -> bool:
        return rate < alone.rate and _both(choosing, alone.k, rate, target, unit) <= limit

    less = inverses.largest_decimal(meets, target.delta, alone.k)
    return replace(solve(alone.k, less, Target(target.delta), unit), solved="rate")


def _both(choosing: Fraction, k: int, rate: Fraction, target: Target, unit: Unit) -> Fraction:
    """Return the ε that a ledger charges for a private choice and the release behind it; huge if it is infinite."""
    epsilon = charged(Sequence((Pure(choosing), loss_of(k, rate, unit))), target.delta, unit.adjacency)
    return Fraction(epsilon) if epsilon.is_finite() else Fraction(2**64)


@lru_cache(maxsize=1024)
def charged(loss: Loss, delta: Fraction, adjacency: Adjacency) -> Decimal:
    """Return the ε that a ledger charges for a loss at δ; remembered, since plans are made again and again.

    >>> charged(loss_of(20, Fraction(1, 10), Unit()), Fraction(1, 10**6), Adjacency.ADD_REMOVE) < 1
    True
    """
    return accountant.charge_of(loss, delta, adjacency).epsilon


def priced_plan(plan: Plan, parameters: Parameters) -> Plan:
    """Return a plan with the ε that a ledger charges for it; the same plan where only a property of form is left."""
    guarantee = plan.guarantee
    if guarantee.syntactic:
        return plan
    epsilon = charged(guarantee.loss, parameters.delta, guarantee.unit.adjacency)
    settings = {**plan.settings, "rate": parameters.rate, "epsilon": epsilon, "delta": parameters.delta}
    return replace(plan, numbers={"epsilon": epsilon}, settings=settings)


def _smallest_k(rate: Fraction, epsilon: Fraction, delta: Fraction, unit: Unit) -> int:
    if unit.max_rows == 1:
        return inverses.smallest_k(epsilon, delta, rate, unit.adjacency)
    return people.smallest_k(epsilon, delta, rate, unit.max_rows, unit.adjacency)


def _largest_rate(k: int, epsilon: Fraction, delta: Fraction, unit: Unit) -> Fraction:
    if unit.max_rows == 1:
        return inverses.largest_rate(epsilon, delta, k, unit.adjacency)
    return people.largest_rate(epsilon, delta, k, unit.max_rows, unit.adjacency)


def small_counts_loss(k: int, rate: Fraction, unit: Unit, noise: Fraction | None) -> Loss:
    """Return the loss of a histogram on a secret sample for a unit.

    >>> small_counts_loss(5, Fraction(1, 10), Unit(), Fraction(1))
    Sampled(rate=Fraction(1, 10), inner=NoisyWhenSmall(k=5, epsilon=Fraction(1, 1)), sample=None)
    """
    row = Sampled(rate, small_counts(k, noise).crowd)
    return Grouped(unit.max_rows, row) if unit.max_rows > 1 else row


@lru_cache(maxsize=256)
def solve_small_counts(
    k: int | None, rate: Fraction | None, target: Target, unit: Unit, noise: Fraction | None = None
) -> Parameters:
    """Return k, rate, ε and δ, given δ and two of the others; `noise` is the ε of noise on small counts, if any.

    δ does not rise with k nor fall with the rate: above ε = ln(1 + rate·(e^noise − 1)) it is that of sampled
    suppression, below it that of the worst crowd-blending mechanism, which is never smaller.

    >>> solve_small_counts(None, Fraction(1, 10), Target(Fraction(1, 10**6), Fraction(1, 2)), Unit(), Fraction(1)).k
    10
    >>> solve_small_counts(20, Fraction(1, 10), Target(Fraction(1, 10**6)), Unit(), Fraction(1)).solved
    'epsilon'
    """
    if noise is None:
        return solve(k, rate, target, unit)
    if [k, rate, target.epsilon].count(None) != 1:
        raise InvalidParameter(_TWO_OF_THREE)
    solved = "k" if k is None else "rate" if rate is None else "epsilon"
    if k is None and rate is not None:
        k = _smallest_k_with_noise(rate, target, unit, noise)
    if rate is None and k is not None:
        found_k = k
        rate = largest_decimal(
            lambda candidate: _meets_with_noise(found_k, candidate, target, unit, noise), target.delta, k
        )
    if k is None or rate is None:
        raise AssertionError("two of three were given")
    spend = accountant.charge_of(small_counts_loss(k, rate, unit, noise), target.delta, unit.adjacency)
    if not spend.epsilon.is_finite():
        raise Infeasible(
            f"no epsilon gives this delta at k = {k}: it stays at or above rate ** k. Raise k, lower the rate"
            + (" or max_rows" if unit.max_rows > 1 else "")
            + ", or allow a larger delta."
        )
    return Parameters(k, rate, spend.epsilon, target.delta, solved)


def _smallest_k_with_noise(rate: Fraction, target: Target, unit: Unit, noise: Fraction) -> int:
    epsilon = float(target.epsilon or 0) / unit.max_rows
    own, tilt = amplify(noise, 0, rate)[0], math.exp(min(float(noise), 300.0))
    # However large the crowd, one noisy bit on a sample remains: its δ at the wanted ε is a floor for every k.
    floor = (float(rate) * (tilt - 1.0) - math.expm1(epsilon)) / (1.0 + tilt)
    if epsilon < own and floor > float(target.delta):
        raise Infeasible(
            f"no k gives this delta at epsilon {float(target.epsilon or 0):g}: the noise on small counts costs "
            f"{own * unit.max_rows:.6g} at this rate, however large the crowd. Ask for that epsilon or more, or lower "
            "noise_epsilon or the rate."
        )
    return least_k(
        lambda candidate: _meets_with_noise(candidate, rate, target, unit, noise), feasible_k(target.delta, rate)
    )


def _meets_with_noise(k: int, rate: Fraction, target: Target, unit: Unit, noise: Fraction) -> bool:
    bound = accountant.delta(small_counts_loss(k, rate, unit, noise), target.epsilon or 0, unit.adjacency)
    return Fraction(bound.value) <= target.delta


_LARGEST = 2**24  # a rate below 2⁻²⁴ samples nobody of any table
_DIGITS, _HALVINGS = 4, 16  # a searched rate has four digits, rounded down


class SampledSuppression(Method):
    """A method that drops rare tuples of a secret sample, at levels that a private look may have chosen."""

    epsilon: Fraction | None
    delta: Fraction | None

    @property
    def unsampled(self) -> bool:
        """Whether every row is read: then crowds are exact, and there is no ε."""
        raise NotImplementedError

    def parameters(self, unit: Unit) -> Parameters:
        """Return k, rate, ε and δ for a unit, the missing one solved."""
        raise NotImplementedError

    def cells(self, schema: Schema) -> Cells:
        """Return the tuples that can be released."""
        raise NotImplementedError


@dataclass(frozen=True)
class SampledSlices:
    """So many samples for a unit, each released by sampled suppression at one k and one rate."""

    samples: int
    unit: Unit

    def loss(self, k: int, rate: Fraction) -> Loss:
        """Return the loss of all of them.

        >>> SampledSlices(2, Unit()).loss(5, Fraction(1, 10)).parts[1]
        Sampled(rate=Fraction(1, 10), inner=Crowd(k=5, epsilon=Fraction(0, 1)), sample=None)
        """
        part = loss_of(k, rate, self.unit)
        return part if self.samples == 1 else Sequence((part,) * self.samples)

    def epsilon(self, k: int, rate: Fraction, delta: Fraction) -> Decimal:
        """Return what the ledger charges for all of them at δ, by the tightest composition; infinite if nothing does.

        >>> f"{SampledSlices(2, Unit()).epsilon(8, Fraction(1, 10), Fraction(1, 10**6)):.4f}"
        '0.8527'
        """
        return charged(self.loss(k, rate), delta, self.unit.adjacency)

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
        return _solved_slices(self, k, rate, target)


@lru_cache(maxsize=256)
def _solved_slices(slices: SampledSlices, k: int | None, rate: Fraction | None, target: Target) -> Parameters:
    delta, epsilon = target.delta, target.epsilon
    if k is None and rate is not None and epsilon is not None:
        alone, fixed = solve(None, rate, target, slices.unit).k, rate  # several tables never need less than one
        solved, k = "k", least_k(lambda candidate: slices.epsilon(candidate, fixed, delta) <= epsilon, alone)
    elif rate is None and k is not None and epsilon is not None:
        solved, rate = "rate", _largest_rate_of_slices(slices, k, epsilon, delta)
    else:
        solved = "epsilon"
    if k is None or rate is None:
        raise AssertionError("two of three were given")
    solved_epsilon = slices.epsilon(k, rate, delta)
    if not solved_epsilon.is_finite():
        raise Infeasible(
            f"no epsilon gives {slices.samples} tables this delta at k = {k} and rate {rate}: raise k, lower the rate, "
            "make fewer groups, or allow a larger delta."
        )
    return Parameters(k, rate, solved_epsilon, delta, solved)


def _largest_rate_of_slices(slices: SampledSlices, k: int, epsilon: Fraction, delta: Fraction) -> Fraction:
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
