"""Robust: a biased sample, drawn by others with chances that are known only in part, or drawn here by a column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from incrowd.accounting import accountant
from incrowd.accounting.blending.robust import Bias, theorem2_delta, zero_knowledge_epsilon
from incrowd.accounting.suppression.inverses import least_k
from incrowd.core.cells import Cells
from incrowd.core.coins import Coins
from incrowd.core.counts import Counts
from incrowd.core.domain import Type
from incrowd.core.loss import THE_ROWS, Crowd, RobustlySampled
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Schema
from incrowd.core.steps.samples import DrawnBefore, DrawnHere, Survey
from incrowd.core.unit import Unit
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.shared.sampling import Parameters, Target

_EPSILONS = "at the stated delta no epsilon holds"


@dataclass(frozen=True)
class Robust:
    """How the rows were drawn from their population, by a survey for example, before they came here.

    All but `irregular` people were drawn with a chance between `low` and `high`, each by a coin of their own that
    nobody knows; the irregular ones with any chance up to `max_rate`, and it may be known that they are in.  People who
    chose to take part were not drawn: for them no such chance exists.  With `probability` the rows are a population,
    and the sample is drawn here, everyone with the chance that this column says.

    >>> Robust(Fraction(1, 20), Fraction(1, 10)).bias
    Bias(low=Fraction(1, 20), high=Fraction(1, 10), irregular=0, max_rate=Fraction(1, 10))
    """

    low: Fraction
    high: Fraction
    irregular: int = 0
    max_rate: Fraction | None = None
    probability: str | None = None

    def __post_init__(self) -> None:
        if self.probability is not None and self.irregular:
            raise InvalidParameter("where chances stand in a column, nobody is irregular: leave irregular out.")
        if self.max_rate is not None and not self.irregular:
            raise InvalidParameter("max_rate is that of irregular people, and there are none: leave it out.")
        _ = self.bias  # which refuses rates that mean nothing

    @property
    def bias(self) -> Bias:
        """The rates in full: without irregular people none is above `high`, else by default they may all be in."""
        largest = self.high if not self.irregular else Fraction(1) if self.max_rate is None else self.max_rate
        return Bias(self.low, self.high, self.irregular, largest)

    def loss(self, k: int) -> RobustlySampled:
        """Return the loss of suppression below k; the sample is the rows themselves, unless it is drawn here."""
        bias = self.bias
        sample = THE_ROWS if self.probability is None else None
        return RobustlySampled(bias.low, bias.high, bias.irregular, bias.max_rate, Crowd(k), sample)


@lru_cache(maxsize=256)
def solve_robust(k: int | None, robust: Robust, target: Target, unit: Unit) -> Parameters:
    """Return k, ε and δ on a biased sample, given δ and one of the others; `rate` is the highest regular one.

    Source: Gehrke, Hay, Lui & Pass 2012, Theorem 2, by the exact worst case, whose δ does not rise with k.

    >>> asked = Robust(Fraction(1, 10), Fraction(3, 25), 2, Fraction(1, 2))
    >>> solve_robust(None, asked, Target(Fraction(1, 10**6), Fraction(1)), Unit()).k
    18
    """
    if unit.max_rows > 1:
        raise InvalidParameter("on a biased sample each person has one row: keep max_rows at 1.")
    if (k is None) == (target.epsilon is None):
        raise InvalidParameter("a biased sample needs delta and one of epsilon and k; the other one is solved.")
    solved = "k" if k is None else "epsilon"
    if k is None:
        k = least_k(lambda candidate: _meets(robust.loss(candidate), target, unit), robust.irregular + 2)
    epsilon = _epsilon(robust.loss(k), target.delta, unit)
    if epsilon is None:
        raise Infeasible(
            f"{_EPSILONS} at k = {k} with {robust.irregular} irregular people: raise k, or allow a larger delta."
        )
    return Parameters(k, robust.high, epsilon, target.delta, solved)


@dataclass(frozen=True)
class Degraded:
    """The same release if the rows were more biased: ε at the stated δ, None where no ε holds."""

    ratio: Fraction
    irregular: int
    epsilon: Decimal | None


def degradation(robust: Robust, k: int, delta: Fraction, unit: Unit) -> tuple[Degraded, ...]:
    """Return how ε grows with the bias: with rates up to 1, 1½ and 2 times `low`, and 0, 1, … irregular people.

    >>> rows = degradation(Robust(Fraction(1, 10), Fraction(1, 10)), 30, Fraction(1, 10**6), Unit())
    >>> [(str(row.ratio), row.irregular, float(round(row.epsilon, 3))) for row in rows[:2]]
    [('1', 0, 0.122), ('1', 1, 0.98)]
    """
    ratios = sorted({Fraction(1), Fraction(3, 2), Fraction(2), robust.high / robust.low})
    people = sorted({0, 1, k // 10, robust.irregular})
    rows = []
    for ratio in ratios:
        for irregular in people:
            high = robust.low * ratio
            if high < 1 and irregular < k - 1:
                worse = Robust(robust.low, high, irregular, _largest(robust, high, irregular))
                rows.append(Degraded(ratio, irregular, _epsilon(worse.loss(k), delta, unit)))
    return tuple(rows)


def _largest(robust: Robust, high: Fraction, irregular: int) -> Fraction | None:
    if not irregular:
        return None
    return None if robust.max_rate is None else max(robust.max_rate, high)


def _meets(loss: RobustlySampled, target: Target, unit: Unit) -> bool:
    bound = accountant.delta(loss, target.epsilon or 0, unit.adjacency)
    return Fraction(bound.value) <= target.delta


def _epsilon(loss: RobustlySampled, delta: Fraction, unit: Unit) -> Decimal | None:
    spend = accountant.charge_of(loss, delta, unit.adjacency)
    return spend.epsilon if spend.epsilon.is_finite() else None


def survey(robust: Robust) -> Survey:
    """Return the step that says how the sample was drawn: before, so that every row is read, or here."""
    bias = robust.bias
    rates = (bias.low, bias.high, bias.irregular, bias.max_rate)
    return DrawnBefore(*rates) if robust.probability is None else DrawnHere(*rates, robust.probability)


def published_numbers(k: int, bias: Bias) -> Mapping[str, float]:
    """Return ε and δ of the theorem as it was published."""
    return {"epsilon of theorem 2": zero_knowledge_epsilon(0, bias), "delta of theorem 2": theorem2_delta(k, bias)}


def with_chances(cells: Cells, schema: Schema, column: str) -> Cells:
    """Return the cells split by the column of chances, or refuse a column that holds no numbers.

    >>> from incrowd.core.schema import Column, Role, Schema
    >>> schema = Schema((Column("sex"), Column("chance", Role.IDENTIFIER, Type.DECIMAL)))
    >>> with_chances(Cells.of(schema, {}), schema, "chance").names
    ('sex', 'chance')
    """
    chance = schema[column]
    if chance.type is not Type.DECIMAL:
        raise InvalidParameter(f"the column {column!r} holds chances of being drawn: declare it with type: decimal.")
    if chance.name in cells.names:
        raise InvalidParameter(f"the column {column!r} of probabilities would be released: make its role identifier.")
    return Cells((*cells.recodings, Recoding(chance, 0)))


def draw_sample(counts: Counts, low: Fraction, high: Fraction, coins: Coins) -> Counts:
    """Return how many rows of each cell a secret sample keeps; the last column is everyone's chance, which goes.

    A chance above 0 but outside [low, high] is moved to the nearer end, and a row without one, or with a chance of 0,
    is not drawn: both are decided by the row alone.  Rows that agree in all columns and in their chance are
    interchangeable, so tossing as many exact coins as there are of them draws each by a coin of its own.
    """
    *columns, _ = counts.names
    chances, codes = counts.classes[-1].values().to_pylist(), counts.codes()[-1]
    sample = np.zeros(len(counts), np.int64)
    for place in range(len(counts)):
        value = chances[codes[place]]
        if value is not None and 0 < float(value) < np.inf:
            chance = min(max(Fraction(value), low), high)
            sample[place] = int(coins.bernoulli(chance, int(counts.counts[place])).sum())
    return replace(counts, counts=sample).marginal(columns)
