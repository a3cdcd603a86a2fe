"""The parameters of sampled suppression: delta is given, and two of epsilon, k and the rate; the third is solved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from incrowd.accounting import accountant, people
from incrowd.accounting.suppression import inverses
from incrowd.core.loss import Crowd, Grouped, Loss, Pure, Sampled, Sequence
from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import Infeasible, InvalidParameter


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


def solve(k: int | None, rate: Fraction | None, target: Target, unit: Unit) -> Parameters:
    """Return all four parameters, given δ and two of the others; the ε returned is the least that holds.

    >>> solve(None, Fraction(1, 10), Target(Fraction(1, 10**6), Fraction(1, 2)), Unit()).k
    10
    >>> solve(20, Fraction(1, 10), Target(Fraction(1, 10**6)), Unit()).solved
    'epsilon'
    """
    if [k, rate, target.epsilon].count(None) != 1:
        raise InvalidParameter(
            "a secret sample needs delta and exactly two of epsilon, k and rate; the third is solved."
        )
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


def _smallest_k(rate: Fraction, epsilon: Fraction, delta: Fraction, unit: Unit) -> int:
    if unit.max_rows == 1:
        return inverses.smallest_k(epsilon, delta, rate, unit.adjacency)
    return people.smallest_k(epsilon, delta, rate, unit.max_rows, unit.adjacency)


def _largest_rate(k: int, epsilon: Fraction, delta: Fraction, unit: Unit) -> Fraction:
    if unit.max_rows == 1:
        return inverses.largest_rate(epsilon, delta, k, unit.adjacency)
    return people.largest_rate(epsilon, delta, k, unit.max_rows, unit.adjacency)
