"""Noise: which noise, how much of it, and from where on a group that nobody listed is shown."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from incrowd.accounting import accountant
from incrowd.accounting.concentrated import largest_rho
from incrowd.core.coins import LARGEST_SCALE
from incrowd.core.loss import Approximate, Pure, Sampled
from incrowd.core.unit import Unit
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.mechanisms.vector_noise import AddCube, AddGaussianVector
from incrowd.noise.system import LARGEST_CUBE, MOST_COORDINATES
from incrowd.queries.measuring.intervals import MISS, NoiseLaw
from incrowd.queries.measuring.statistics import Of, Statistics
from incrowd.queries.query import Contribution, QueryTerms

_LARGEST = Fraction(2**20)  # an ε of a million protects nobody: a typing error, and the search for one ends here
_SMALLEST = Fraction(1, 2**38)  # below, an ε is as good as nothing, and the bisection would only run on
_DIGITS = 10**9  # an ε of picks has nine decimals, rounded down, so that ε²/2 stays within its part of ρ


@dataclass(frozen=True)
class Workload:
    """What noise is needed for: statistics, and how many things are picked in each group."""

    statistics: Statistics
    picks: int
    contribution: Contribution
    unit: Unit

    @property
    def parts(self) -> int:
        """Among how many things the budget is shared: each statistic is one, each pick is one."""
        return len(self.statistics.all) + self.picks


@dataclass(frozen=True)
class CountThreshold:
    """The least noisy count of an unknown group that is shown, and the δ that it takes."""

    least: int
    delta: Fraction


@dataclass(frozen=True)
class NoiseChoice:
    """Noise on the vectors of statistics, ε of each pick, the threshold of unknown groups, and δ of all.

    `share` is what Gaussian noise has of ε and δ where picks or a threshold have the rest.
    """

    noise: AddCube | AddGaussianVector | None
    pick: Fraction | None
    threshold: CountThreshold | None
    delta: Fraction
    share: Approximate | None = None


def choose_noise(workload: Workload, terms: QueryTerms, meets: Callable[[NoiseLaw, Fraction], bool]) -> NoiseChoice:
    """Return the noise that the terms pay for.

    Statistics and picks share ε (or ρ) in proportion to their number.  Statistics get cube noise; with a δ they get
    Gaussian noise where that is narrower.  Unknown groups take δ for their threshold: all of it beside cube noise, half
    of it beside Gaussian noise.  With an error instead of ε, the least ε is sought for which the law of the noise
    `meets` it.
    """
    _check(workload, terms)
    if terms.rho is not None:
        return _drawable(_concentrated(workload, terms.rho, terms.delta))
    if terms.epsilon is not None and terms.rate is not None:
        return _drawable(_private(workload, inner_epsilon(terms.epsilon, terms.rate), Fraction(0)))
    if terms.epsilon is not None:
        return _drawable(_private(workload, terms.epsilon, terms.delta))
    error = terms.error or Fraction(0)

    def enough(epsilon: Fraction) -> bool:
        noise = _private(workload, epsilon, terms.delta).noise
        return noise is not None and meets(noise.law, error)

    return _drawable(_private(workload, _least(enough), terms.delta))


def _private(workload: Workload, epsilon: Fraction, delta: Fraction) -> NoiseChoice:
    """Settle pure or approximate privacy: cube noise, or Gaussian noise if it is narrower."""
    if len(workload.statistics.all) > MOST_COORDINATES and not delta:
        raise InvalidParameter(f"a query adds up at most {MOST_COORDINATES} numbers: ask for fewer, or give a delta.")
    pure = _cube(workload, epsilon, delta)
    if not delta or not workload.statistics.all:
        return pure
    gaussian = _gaussian(workload, epsilon, delta)
    return gaussian if len(workload.statistics.all) > MOST_COORDINATES else min(pure, gaussian, key=_width)


def _cube(workload: Workload, epsilon: Fraction, delta: Fraction) -> NoiseChoice:
    statistics, share = workload.statistics, epsilon / workload.parts
    pick = share if workload.picks else None
    if not statistics.all:
        return NoiseChoice(None, pick, None, Fraction(0))
    noise = AddCube(share * len(statistics.all), statistics.widths, statistics.rows)
    threshold = _threshold(workload, noise.law, delta)
    return NoiseChoice(noise, pick, threshold, Fraction(0) if threshold is None else delta)


def _gaussian(workload: Workload, epsilon: Fraction, delta: Fraction) -> NoiseChoice:
    """Settle Gaussian noise: its ε and δ, ε of the picks and δ of the threshold add up to the guaranteed (ε, δ)."""
    statistics, part = workload.statistics, epsilon / workload.parts
    hidden = Fraction(0) if statistics.counting is None else delta / 2
    rho = largest_rho(part * len(statistics.all), delta - hidden)
    noise = AddGaussianVector.costing(rho, statistics.widths, statistics.rows)
    threshold = _threshold(workload, noise.law, hidden)
    alone = threshold is None and not workload.picks
    share = None if alone else Approximate(part * len(statistics.all), delta - hidden)
    return NoiseChoice(noise, part if workload.picks else None, threshold, delta, share)


def _concentrated(workload: Workload, rho: Fraction, delta: Fraction) -> NoiseChoice:
    """Settle by ρ: a pick of ε is ε²/2-zero-concentrated (Bun & Steinke 2016, Proposition 1.4)."""
    statistics, part = workload.statistics, rho / workload.parts
    pick = Fraction(math.isqrt(math.floor(2 * part * _DIGITS**2)), _DIGITS) if workload.picks else None
    noise, threshold = None, None
    if statistics.all:
        noise = AddGaussianVector.costing(part * len(statistics.all), statistics.widths, statistics.rows)
        threshold = _threshold(workload, noise.law, delta / 2)
    return NoiseChoice(noise, pick, threshold, delta)


def _threshold(workload: Workload, law: NoiseLaw, delta: Fraction) -> CountThreshold | None:
    """Return the least noisy count of an unknown group that is shown, None where groups are known.

    Groups that only one unit has are at most `groups`; without the unit none of them is shown, and with it each is
    shown with chance at most P[count + noise ≥ threshold] ≤ delta / groups: (0, delta) once, beside the noise of the
    groups that others have too.  One person counts as one, or as so many rows as a unit has.
    """
    statistics = workload.statistics
    if statistics.counting is None:
        return None
    alone = 1 if statistics.all[statistics.counting].of is Of.PEOPLE else workload.contribution.rows
    return CountThreshold(alone + law.reach(statistics.counting, delta / workload.contribution.groups), delta)


def _check(workload: Workload, terms: QueryTerms) -> None:
    if max(terms.epsilon or 0, terms.rho or 0) > _LARGEST:
        raise InvalidParameter("an epsilon or rho above a million protects nobody: give a smaller one.")
    if workload.statistics.counting is not None and not terms.delta:
        raise InvalidParameter("groups without declared values need a threshold, and that a delta: give 1e-8.")
    if terms.error is not None and not workload.statistics.all:
        raise InvalidParameter("an error can be asked of counts and sums only: give epsilon instead.")
    plain = workload.unit == Unit() and workload.statistics.counting is None and terms.epsilon is not None
    if terms.rate is not None and (terms.delta or not plain):
        raise InvalidParameter("a secret sample needs rows as units, declared groups and no delta: leave the rate out.")


def _drawable(choice: NoiseChoice) -> NoiseChoice:
    """Refuse noise that is too wide to be drawn, before anything is charged."""
    match choice.noise:
        case AddCube(law=law):
            scales = [width * law.scale / law.fine for width in law.widths]
            too_wide = max(scales) > LARGEST_SCALE or (len(scales) > 1 and law.scale > LARGEST_CUBE)
        case AddGaussianVector(law=normal):
            too_wide = max(normal.scales) > LARGEST_SCALE
        case _:
            too_wide = False
    if too_wide:
        raise Infeasible("the noise would be too wide to be drawn: pay more, or CLAMP values to a narrower range.")
    return choice


def _width(choice: NoiseChoice) -> float:
    """Return how wide the noise of the first statistic is."""
    return math.inf if choice.noise is None else choice.noise.law.combined((0, 0), (1.0, 0.0), MISS)


def _least(enough: Callable[[Fraction], bool]) -> Fraction:
    """Return nearly the least ε, to six digits, that is enough; what is returned was itself tried."""
    low, high = Fraction(0), Fraction(1, 2**10)
    while not enough(high):
        low, high = high, 2 * high
        if high > _LARGEST:
            raise Infeasible("no epsilon of a usable size gives answers this exact; allow a larger error.")
    while high - low > high / 10**6 and high > _SMALLEST:
        middle = Fraction(float((low + high) / 2)).limit_denominator(10**12)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


_FINE = 10**12  # twelve digits, rounded down; what is returned was charged by the accountant


def inner_epsilon(epsilon: Fraction, rate: Fraction) -> Fraction:
    """Return the ε that may be spent on a secret sample: ln(1 + (e^ε − 1) / rate), to twelve digits, never too much.

    Source: amplification by Poisson sampling; what is returned was charged by the accountant.

    >>> inner_epsilon(Fraction(1), Fraction(1, 10)) > Fraction(29, 10)
    True
    """
    inner = math.log1p(math.expm1(float(epsilon)) / float(rate)) if epsilon < 500 else float(epsilon)
    for backward in (0, 1, 10, 100, 10**4, 10**6, 10**8):
        tried = Fraction(math.floor(inner * _FINE) - backward, _FINE)
        if tried > 0 and Fraction(accountant.charge_of(Sampled(rate, Pure(tried)), 0).epsilon) <= epsilon:
            return tried
    raise Infeasible("this epsilon cannot be spent on a secret sample: leave the rate out.")
