"""What an attacker can prove: a lower bound on epsilon from the outputs on two neighboring tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from scipy.stats import beta

from incrowd.accounting.suppression import tight_delta
from tests.statistics.alarm import FALSE_ALARM

Law = dict[object, float]


@dataclass(frozen=True)
class Claim:
    """What sampled suppression claims at one epsilon; delta is the accountant's."""

    k: int
    rate: Fraction
    epsilon: float

    @property
    def delta(self) -> float:
        return tight_delta.delta(self.k, self.rate, self.epsilon)


@dataclass(frozen=True)
class Trials:
    """How often an event was seen in so many independent outputs."""

    seen: int
    of: int

    @classmethod
    def count(cls, outcomes: Iterable[bool]) -> Trials:
        found = list(outcomes)
        return cls(sum(found), len(found))

    @property
    def least(self) -> float:
        """A chance below which the event's lies with probability FALSE_ALARM / 2 at most (Clopper & Pearson 1934)."""
        return float(beta.ppf(FALSE_ALARM / 2, self.seen, self.of - self.seen + 1)) if self.seen else 0.0

    @property
    def most(self) -> float:
        """A chance above which the event's lies with probability FALSE_ALARM / 2 at most."""
        return float(beta.isf(FALSE_ALARM / 2, self.seen + 1, self.of - self.seen)) if self.seen < self.of else 1.0


def proved_epsilon(with_you: Trials, without: Trials, delta: float) -> float:
    """Return an epsilon below which no mechanism with this delta gives such outputs; wrong with FALSE_ALARM at most."""
    excess = with_you.least - delta
    return math.log(excess / without.most) if excess > 0 else -math.inf


def distance(one: Law, other: Law, epsilon: float) -> float:
    """Return the delta of two laws at epsilon: the sum of what one has above e^epsilon times the other."""
    return math.fsum(max(0.0, mass - math.exp(epsilon) * other.get(outcome, 0.0)) for outcome, mass in one.items())


def worst_crowd(claim: Claim, upto: int = 60) -> tuple[int, Callable[[int], bool]]:
    """Return the crowd size at which a removal is easiest to see, and the event on the published count to look for."""
    laws = [published(claim, n) for n in range(upto + 1)]
    n = max(range(1, upto + 1), key=lambda size: distance(laws[size], laws[size - 1], claim.epsilon))
    event = {j for j, mass in laws[n].items() if mass > math.exp(claim.epsilon) * laws[n - 1].get(j, 0.0)}
    return n, lambda count: count in event


def published(claim: Claim, n: int) -> Law:
    """Return the law of the published count of a crowd of n: 0 if fewer than k are in the sample."""
    p = float(claim.rate)
    law: Law = {0: 0.0}
    for j in range(n + 1):
        shown = j if j >= claim.k else 0
        law[shown] = law.get(shown, 0.0) + math.comb(n, j) * p**j * (1 - p) ** (n - j)
    return law
