"""Audit: a lower bound on epsilon that outputs prove, with stated confidence; passing an audit proves nothing.

An auditor runs a mechanism many times on two neighboring tables, or once with many canaries, and guesses the input.
The claimed epsilon bounds how often such guesses are right.  An audit proves "epsilon is at least", never "at most".
The attack and its threshold must be fixed on other outputs than those that are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from incrowd.attacks.finding import CONFIDENCE
from incrowd.errors import InvalidParameter

_MOST = 60.0
"""Upper end of the bisection: with all r guesses right, one run shows about ln(r/3) at 95 %, far below 60."""


@dataclass(frozen=True)
class AuditResult:
    """What an audit proves: epsilon is at least `epsilon`; `ceiling` is the largest value that it can show."""

    epsilon: float
    ceiling: float
    delta: float
    confidence: float
    attack: str

    def sentence(self, claim: float | None = None) -> str:
        """Return what was shown, and whether a claim is refuted; never that epsilon is small.

        >>> AuditResult(0.2, 5.6, 0.0, 0.95, "count above 10").sentence(1.0)
        'No violation of epsilon 1 found by count above 10; this audit could have shown at most epsilon 5.6 ...'
        """
        how = f"with confidence {self.confidence:.4g} and delta {self.delta:g}"
        if claim is not None and self.epsilon > claim:
            return f"Refuted: {self.attack} shows epsilon at least {self.epsilon:.4g} {how}, and {claim:g} is claimed."
        what = "No violation found" if claim is None else f"No violation of epsilon {claim:g} found"
        return (
            f"{what} by {self.attack}; this audit could have shown at most epsilon {self.ceiling:.3g} {how}. "
            "That proves nothing: another attack may show more."
        )


@dataclass(frozen=True)
class AuditCounts:
    """How often an event occurred with a person (`tp` of `n1`) and without (`fp` of `n0`)."""

    tp: int
    n1: int
    fp: int
    n0: int

    def __post_init__(self) -> None:
        if not (0 <= self.tp <= self.n1 and 0 <= self.fp <= self.n0 and self.n1 and self.n0):
            raise InvalidParameter(
                "an audit counts how often an event occurred among outputs with a person, and among outputs without."
            )

    def bounds(self, confidence: float) -> tuple[float, float]:
        """Return a lower bound of the true-positive rate and an upper bound of the other, simultaneous."""
        from scipy.stats import beta

        alarm = (1.0 - confidence) / 2.0
        low = float(beta.ppf(alarm, self.tp, self.n1 - self.tp + 1)) if self.tp else 0.0
        high = float(beta.isf(alarm, self.fp + 1, self.n0 - self.fp)) if self.fp < self.n0 else 1.0
        return low, high


def two_worlds(seen: AuditCounts, delta: float = 0.0, confidence: float = CONFIDENCE) -> float:
    """Return a lower bound of epsilon from outputs of two neighboring tables.

    One-sided Clopper–Pearson bounds at (1 − confidence)/2 each; both directions use the same two.

    >>> round(two_worlds(AuditCounts(300, 1000, 50, 1000)), 4)
    1.4244
    """
    _check(delta, confidence)
    low, high = seen.bounds(confidence)
    directions = ((low - delta, high), (1.0 - high - delta, 1.0 - low))
    return max([0.0, *(math.log(up / down) for up, down in directions if up > 0.0 and down > 0.0)])


def ceiling(trials: int, confidence: float = CONFIDENCE) -> float:
    """Return the largest epsilon that a perfect attack can show with `trials` outputs of each table.

    >>> [round(ceiling(n), 1) for n in (100, 1000, 10_000)]
    [3.3, 5.6, 7.9]
    """
    return two_worlds(AuditCounts(trials, trials, 0, trials), 0.0, confidence)


def gaussian(seen: AuditCounts, confidence: float = CONFIDENCE) -> float:
    """Return a lower bound of mu; it tests claims of Gaussian mechanisms alone.

    >>> round(gaussian(AuditCounts(300, 1000, 50, 1000)), 4)
    0.9034
    """
    from scipy.stats import norm

    low, high = seen.bounds(confidence)
    return max(0.0, float(norm.isf(high) - norm.isf(low)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon that a mu-Gaussian mechanism has at a delta (Dong, Roth & Su 2022, Corollary 2.13).

    >>> round(gaussian_epsilon(0.9034133966628544, 1e-5), 4)
    3.8931
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    if mu <= 0.0:
        return 0.0

    def over(epsilon: float) -> float:
        first, second = norm.cdf(-epsilon / mu + mu / 2.0), norm.logcdf(-epsilon / mu - mu / 2.0)
        return float(first - math.exp(epsilon + second)) - delta

    return 0.0 if over(0.0) <= 0.0 else float(brentq(over, 0.0, 10.0 + 20.0 * mu + mu * mu, xtol=1e-12))


def one_run(canaries: int, guesses: int, right: int, delta: float = 0.0, confidence: float = CONFIDENCE) -> float:
    """Return a lower bound of epsilon from one run: each canary is in by a fair coin, and `right` guesses are right.

    Under (epsilon, delta) the probability of as many right guesses is at most beta + 2 m delta max_i P[v > W >= v -
    i]/i, where W is binomial with r trials of chance e^epsilon/(1 + e^epsilon) and beta = P[W >= v].  Tight at delta =
    0.

    Source: Steinke, Nasr & Jagielski 2023, Theorem 5.2.

    >>> round(one_run(1000, 100, 95, 1e-5), 3)
    2.165
    """
    _check(delta, confidence)
    if not 0 <= right <= guesses <= canaries or not guesses:
        raise InvalidParameter(
            "one run needs canaries, at least one guess about them, and no more right guesses than guesses."
        )
    alarm = 1.0 - confidence
    chance = partial(_chance_of_as_many, canaries, guesses, right, delta)
    if chance(0.0) > alarm:
        return 0.0
    low, high = 0.0, _MOST
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if chance(middle) <= alarm else (low, middle)
    return low


def _chance_of_as_many(canaries: int, guesses: int, right: int, delta: float, epsilon: float) -> float:
    from scipy.stats import binom

    p = 1.0 / (1.0 + math.exp(-epsilon))
    beta = float(binom.sf(right - 1, guesses, p))
    if not delta or not right:
        return beta
    steps = np.arange(1, right + 1)
    mass = binom.sf(right - 1 - steps, guesses, p) - beta
    return beta + 2.0 * canaries * delta * float((mass / steps).max())


def audit(
    worlds: tuple[Callable[[], float], Callable[[], float]],
    trials: int = 1000,
    delta: float = 0.0,
    confidence: float = CONFIDENCE,
) -> AuditResult:
    """Audit a mechanism through its public interface: a random number with a person, and one without.

    First, `trials // 2` outputs of each choose the event: the number is at least, or at most, a threshold.  They are
    not counted.  Then `trials` outputs of each are counted.
    """
    learned = [np.array([draw() for _ in range(max(10, trials // 2))], float) for draw in worlds]
    sign, threshold = _event(learned[0], learned[1])
    counted = [sum(sign * draw() >= sign * threshold for _ in range(trials)) for draw in worlds]
    seen = AuditCounts(counted[0], trials, counted[1], trials)
    attack = f"a number {'at least' if sign > 0 else 'at most'} {threshold:.6g}"
    return AuditResult(two_worlds(seen, delta, confidence), ceiling(trials, confidence), delta, confidence, attack)


def _event(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[int, float]:
    """Return the side and the threshold that separate two samples best, by the bound they would give."""
    best = (-1.0, 1, 0.0)
    values: Sequence[float] = np.unique(np.concatenate([one, other])).tolist()
    for sign in (1, -1):
        for value in values[:: max(1, len(values) // 200)]:
            counts = [int((sign * sample >= sign * value).sum()) for sample in (one, other)]
            bound = two_worlds(AuditCounts(counts[0], len(one), counts[1], len(other)))
            best = max(best, (bound, sign, value))
    return best[1], best[2]


def _check(delta: float, confidence: float) -> None:
    if not 0.0 <= delta < 1.0 or not 0.0 < confidence < 1.0:
        raise InvalidParameter("delta must lie in [0, 1), and the confidence between 0 and 1, such as 0.95.")
