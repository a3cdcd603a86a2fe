"""What an attacker can prove: a lower bound on epsilon from the outputs on two neighboring tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom

from incrowd.accounting.suppression import tight_delta
from incrowd.noise.tails import CubeLaw
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

    def least(self, alarm: float = FALSE_ALARM / 2) -> float:
        """Return a chance below which the event's lies with probability `alarm` at most (Clopper & Pearson 1934)."""
        return float(beta.ppf(alarm, self.seen, self.of - self.seen + 1)) if self.seen else 0.0

    def most(self, alarm: float = FALSE_ALARM / 2) -> float:
        """Return a chance above which the event's lies with probability `alarm` at most."""
        return float(beta.isf(alarm, self.seen + 1, self.of - self.seen)) if self.seen < self.of else 1.0


def proved_epsilon(with_you: Trials, without: Trials, delta: float, events: int = 1) -> float:
    """Return an epsilon below which no mechanism with this delta gives such outputs.

    It is wrong with probability FALSE_ALARM / 2 at most, for so many events together.
    """
    alarm = FALSE_ALARM / 4 / events
    excess = with_you.least(alarm) - delta
    return math.log(excess / without.most(alarm)) if excess > 0 else -math.inf


def sure_epsilon(chances: tuple[float, float], trials: int, delta: float = 0.0, events: int = 1) -> float:
    """Return an epsilon that so many outputs prove by an event with these chances, with you and without you.

    They prove less with probability FALSE_ALARM / 2 at most: a quarter for each count that lies beyond its quantile.
    """
    fewest = Trials(int(binom.ppf(FALSE_ALARM / 4, trials, chances[0])), trials)
    most = Trials(int(binom.isf(FALSE_ALARM / 4, trials, chances[1])), trials)
    return proved_epsilon(fewest, most, delta, events)


@dataclass(frozen=True)
class Events:
    """A list of events, written down before any output is seen: a number equals, reaches or stays below a value."""

    values: Sequence[float]

    def __len__(self) -> int:
        """Return how many there are: three a value, each of them as likely to speak for a row as against it."""
        return 6 * len(self.values)

    def proved(self, one: Sequence[float], other: Sequence[float], delta: float = 0.0) -> float:
        """Return the epsilon that the most telling event proves, whichever of the two laws has more of it."""
        laws = np.array(one), np.array(other)
        return max(
            proved_epsilon(_trials(chosen(first, value)), _trials(chosen(second, value)), delta, len(self))
            for first, second in (laws, laws[::-1])
            for value in self.values
            for chosen in (np.equal, np.greater_equal, np.less_equal)
        )

    def sure(self, chances: tuple[float, float], trials: int, delta: float = 0.0) -> float:
        """Return what is proved at least if one of the events has these chances; less with FALSE_ALARM / 2 at most."""
        return sure_epsilon(chances, trials, delta, len(self))


def reaching(steps: int, scale: float) -> float:
    """Return the chance that integer Laplace noise of this scale is at least so many steps."""
    a = math.exp(-1 / scale)
    return a**steps / (1 + a) if steps >= 0 else 1 - a ** (1 - steps) / (1 + a)


def shifted(steps: int, scale: float) -> tuple[float, float]:
    """Return the chances to reach a true number in spite of Laplace noise, and from so many steps below it."""
    return reaching(0, scale), reaching(steps, scale)


def reaching_in_cube(law: CubeLaw, place: int, least: int) -> float:
    """Return the chance that one coordinate of cube noise is at least so much.

    Given a radius J, drawn with weight |B(J)| e^(−J / scale), the noise is uniform in the box B(J).
    """
    radii = np.arange(int(60 * law.scale))
    halves = [radii * width // law.fine for width in law.widths]
    weights = np.prod([2.0 * half + 1 for half in halves], axis=0) * np.exp(-radii / float(law.scale))
    half = halves[place]
    return float((weights * np.clip(half - least + 1, 0, 2 * half + 1) / (2.0 * half + 1)).sum() / weights.sum())


def _trials(seen: NDArray[Any]) -> Trials:
    return Trials(int(seen.sum()), seen.size)


def distance(one: Mapping[Any, float], other: Mapping[Any, float], epsilon: float) -> float:
    """Return the delta of two laws at epsilon: the sum of what one has above e^epsilon times the other."""
    return math.fsum(max(0.0, mass - math.exp(epsilon) * other.get(outcome, 0.0)) for outcome, mass in one.items())


def worst_crowd(claim: Claim, upto: int = 60) -> tuple[int, Callable[[int], bool]]:
    """Return the crowd size at which a removal is easiest to see, and the event on the published count to look for."""
    laws = [published(claim, n) for n in range(upto + 1)]
    n = max(range(1, upto + 1), key=lambda size: distance(laws[size], laws[size - 1], claim.epsilon))
    event = {j for j, mass in laws[n].items() if mass > math.exp(claim.epsilon) * laws[n - 1].get(j, 0.0)}
    return n, lambda count: count in event


def published(claim: Claim, n: int) -> dict[int, float]:
    """Return the law of the published count of a crowd of n: 0 if fewer than k are in the sample."""
    p = float(claim.rate)
    law = {0: 0.0}
    for j in range(n + 1):
        shown = j if j >= claim.k else 0
        law[shown] = law.get(shown, 0.0) + math.comb(n, j) * p**j * (1 - p) ** (n - j)
    return law
