"""What a secret sample saves: a mechanism run on a Poisson sample is more private than on everyone."""

from __future__ import annotations

import math
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from incrowd.core.rounding import Number, exact, float_down, float_up, not_below
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter

_RELATIVE = 1e-13  # ε up to 600 is rounded by 7·10⁻¹⁴, which e^ε shows as a relative error; log1p only shrinks it
_LARGE = 600  # from here on e^ε nears the end of the floats and sampling saves no more than ln(rate)
_RAREST = Fraction(1, 10**40)  # e^600 over this is below 10³⁰¹; over a lower rate it would pass for infinity


class Sampling(StrEnum):
    """How the secret sample is drawn."""

    POISSON = "poisson"
    FIXED_SIZE = "fixed-size"


def amplify(
    epsilon: Number,
    delta: Number,
    rate: Number,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    sampling: Sampling = Sampling.POISSON,
) -> tuple[float, float]:
    """Return the (ε′, δ′) of an (ε, δ)-private mechanism that is run on a secret Poisson sample; both rounded up.

    ε′ = ln(1 + rate·(e^ε − 1)) and δ′ = rate·δ.

    Source: Li, Qardaji & Su 2010, Theorem 3, here for the standard (ε, δ) definition. Proof: let Q be the output's
    law without person t, R the law given that t is sampled, Z = rate·R + (1−rate)·Q, a = 1 + rate·(e^ε − 1).
    Removing t: Z − aQ = rate·(R − e^ε·Q), so the excess is at most rate·δ. Adding t: Q − aZ = cQ − a·rate·R with
    c = 1 − a(1−rate) ≤ rate, and a·rate ≥ c·e^ε because (1−rate)(e^ε − 1)² ≥ 0, so it is at most c·δ ≤ rate·δ.

    Requires that every row has its own independent secret coin, and that rows are added or removed. A mechanism that
    keeps its guarantee *after* sampling is what Li et al. (Definition 4) call private under sampling. Such guarantees
    add up only if every mechanism draws its own sample. Their composition theorem (Theorem 2) multiplies probabilities
    although both mechanisms see one and the same sample. On a shared sample a coarse and a fine count of 100 others
    and t differ by one exactly if t was drawn: δ is about the rate, for every ε.

    >>> epsilon, delta = amplify(1, "1e-6", "0.1")
    >>> round(epsilon, 6), round(delta, 12)
    (0.158565, 1e-07)
    """
    _require(adjacency, sampling)
    guaranteed, failing, share = _guarantee(epsilon, delta, rate)
    if guaranteed > _LARGE:
        return float_up(guaranteed), float_up(failing * share)
    value = math.log1p(float(share) * math.expm1(float(guaranteed)))
    return min(not_below(value, _RELATIVE), float_up(guaranteed)), not_below(float_up(failing * share), _RELATIVE)


def before_sampling(
    epsilon: Number,
    delta: Number,
    rate: Number,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    sampling: Sampling = Sampling.POISSON,
) -> tuple[float, float]:
    """Return the (ε, δ) a mechanism may spend on the sample so that the whole is (ε′, δ′)-private; both rounded down.

    ε = ln(1 + (e^ε′ − 1)/rate) and δ = δ′/rate, the inverse of `amplify`, under the same conditions.

    >>> epsilon, delta = before_sampling("0.1585650787", "1e-7", "0.1")
    >>> round(epsilon, 6), round(delta, 12)
    (1.0, 1e-06)
    """
    _require(adjacency, sampling)
    guaranteed, failing, share = _guarantee(epsilon, delta, rate)
    allowed = min(1.0, max(0.0, float(failing / share) * (1.0 - _RELATIVE)))
    if guaranteed > _LARGE or share < _RAREST:
        return float_down(guaranteed), allowed
    value = math.log1p(math.expm1(float(guaranteed)) / float(share))
    return value * (1.0 - _RELATIVE), allowed


def _require(adjacency: Adjacency, sampling: Sampling) -> None:
    if sampling is not Sampling.POISSON:
        raise InvalidParameter(
            "the rows of a sample of fixed size are not independent, and this amplification does not hold for it: "
            "sample every row independently (poisson)."
        )
    if adjacency is not Adjacency.ADD_REMOVE:
        raise InvalidParameter(
            "this amplification holds for rows that are added or removed, not replaced: "
            "state the mechanism's loss for added or removed rows."
        )


def _guarantee(epsilon: Number, delta: Number, rate: Number) -> tuple[Fraction, Fraction, Fraction]:
    guaranteed, failing = exact(epsilon, "epsilon"), exact(delta, "delta")
    if guaranteed < 0:
        raise InvalidParameter("epsilon cannot be negative.")
    if not 0 <= failing <= 1:
        raise InvalidParameter("delta is a probability: between 0 and 1.")
    return guaranteed, failing, _rate(rate)


def _rate(rate: Number) -> Fraction:
    share = exact(rate, "the sampling rate")
    if not 0 < share <= 1:
        raise InvalidParameter(f"a sampling rate lies above 0 and is at most 1; {share} was given.")
    return share


SMALLEST_DELTA = Fraction(1, 10**20)
"""The smallest δ of a shuffled batch: the tails that a sum leaves out stay far below it."""
_DEVIATIONS = 14.0  # beyond, a binomial number has e^(−98) < 10⁻⁴² of its mass on a side, which is added
_UP = 1.0 + 1e-9  # masses of a window are right to 10⁻¹¹ up to a billion people, and only positive terms are added
_TAIL_ERROR = 1e-13
"""Times √n: ten times the relative error of SciPy's binomial masses and tails (tests/accounting/test_margins.py)."""
_DIGITS = 9
"""Counts keep so many binary digits, and are rounded down: ε comes out larger by 0.2 % at most."""
_STEPS = 36  # halvings: ε is within ln(ratio)·2⁻³⁶ of the least; what is returned was evaluated

Reals = NDArray[np.float64]


def shuffled_delta(ratio: Fraction, people: int, epsilon: float, values: int | None = None) -> float:
    """Return δ at ε of one report each of n people, shuffled; never below the truth of the bound.

    All use the same randomizer, by which no report is likelier for one value than for another by more than `ratio`.
    With `values`, it is known to be randomized response over so many, for which less is lost.

    Guarantee: δ(ε) ≤ E[((p − α) A − (α p − 1) B)⁺] / n, (A, B) multinomial(n; 1/(p+1), 1/(p+1)), α = e^ε, p = ratio,
    for a replaced report, in both directions.
    Assumes: n counts honest people whose reports nobody can attribute.
    Source: Feldman, McMillan & Talwar 2023; the sum is theirs, evaluated here.

    >>> round(shuffled_delta(Fraction(math.e), 100, 0.5) * 1e6, 4)
    1.7024
    """
    _check(ratio, people)
    p, alpha = float_up(ratio), math.exp(epsilon) * (1.0 - 1e-15)
    if alpha >= p:
        return 0.0
    if values is not None and values > 2:
        return min(1.0, _response(p, alpha, people, values))
    chance = 2.0 / (p + 1.0)
    counts, masses, missed = _window(people - 1, chance)
    return min(1.0, (float(masses @ _clone_excess(p, alpha, counts + 1)) + missed) * _UP)


def shuffled_epsilon(ratio: Fraction, people: int, delta: Fraction, values: int | None = None) -> float:
    """Return the least ε at δ of shuffled reports, rounded up; ln(ratio) at most.

    >>> round(shuffled_epsilon(Fraction(math.e), 10_000, Fraction(1, 10**6)), 4)
    0.0432
    """
    check_delta(delta)
    low, high = 0.0, math.log(ratio) * (1.0 + 1e-14)
    if shuffled_delta(ratio, people, 0.0, values) <= delta:
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        fits = shuffled_delta(ratio, people, middle, values) <= delta
        low, high = (low, middle) if fits else (middle, high)
    return high


def _clone_excess(p: float, alpha: float, crowd: NDArray[np.int64]) -> Reals:
    """Return the excess given how many reports are clones, (p − α) P[B ≥ j − 1] − (αp − 1) P[B ≥ j], B fair binomial.

    Written with P[B = j − 1] and one tail: the difference of two tails would lose half of the digits in a large crowd.
    """
    from scipy.stats import binom

    share = (alpha * p - 1.0) / ((p - 1.0) * (alpha + 1.0))
    least = np.floor(crowd * share * (1.0 - 1e-15)).astype(np.int64) + 1
    gained = (p - alpha) * binom.pmf(least - 1, crowd - 1, 0.5)
    lost = (alpha - 1.0) * (p + 1.0) * _upper(crowd - 1, least)
    excess: Reals = np.maximum((gained - lost + _slack(crowd) * (gained + np.abs(lost))) / (p + 1.0), 0.0)
    return excess


def _slack(number: Reals | NDArray[np.int64]) -> Reals:
    return np.asarray(_TAIL_ERROR * np.sqrt(number), np.float64)


def _upper(number: NDArray[np.int64], least: NDArray[np.int64]) -> Reals:
    """Return P[Bin(number, 1/2) ≥ least]."""
    from scipy.special import betainc

    inner = betainc(np.maximum(least, 1).astype(float), np.maximum(number - least + 1, 1).astype(float), 0.5)
    return np.where(least <= 0, 1.0, np.where(least > number, 0.0, inner))


@lru_cache(maxsize=1024)
def _window(number: int, chance: float) -> tuple[NDArray[np.int64], Reals, float]:
    """Return the likely values of a binomial number, their masses, and at most what both tails have.

    A search for ε meets the same numbers at every step, fewer than a thousand of them.
    """
    from scipy.stats import binom

    spread = _DEVIATIONS * math.sqrt(number * chance * (1.0 - chance)) + _DEVIATIONS
    low, high = max(0, math.floor(number * chance - spread)), min(number, math.ceil(number * chance + spread))
    counts = np.arange(low, high + 1)
    missed = float(binom.cdf(low - 1, number, chance) + binom.sf(high, number, chance))
    return counts, np.asarray(binom.pmf(counts, number, chance), np.float64), missed


def _response(p: float, alpha: float, people: int, values: int) -> float:
    """Return δ for randomized response over more than two values.

    Of S reports that say nothing of their values (each with chance d / (p + d − 1)), A name the one value and B the
    other; the excess is ((p − 1)(A − α B) − (α − 1) S)⁺ / n.  Divided by S its mean does not grow with S, so that S may
    be rounded down: to its first binary digits, whatever the others are.  A sum that keeps more digits is smaller.
    """
    share = values / (p + values - 1.0)
    counts, masses, missed = _window(people - 1, share)
    number = counts + 1
    step = 1 << np.maximum(np.frexp(number)[1] - _DIGITS, 0).astype(np.int64)
    silent, starts = np.unique(number // step * step, return_index=True)
    grouped = np.add.reduceat(masses, starts)
    excess = [_excess(p, alpha, int(number_silent), values) for number_silent in silent]
    return share * (float(grouped @ np.array(excess)) + missed * (p - 1.0)) * _UP


def _excess(p: float, alpha: float, silent: int, values: int) -> float:
    """Return E[((p − 1)(A − α B) − (α − 1) S)⁺] / S, (A, B) multinomial(S; 1/d, 1/d).

    Given A, B is binomial, of mean μ, and E[(t − B)⁺] = (t − μ) P[B ≤ t] + μ (1 − c) P[B′ = ⌊t⌋], B′ of a trial less.
    """
    from scipy.special import betaincc
    from scipy.stats import binom

    ones, masses, missed = _window(silent, 1.0 / values)
    over = (p - 1.0) * ones - (alpha - 1.0) * silent
    positive = (over > 0.0) & (masses > 0.0)
    rest, chance, other = silent - ones[positive], 1.0 / (values - 1.0), (values - 2.0) / (values - 1.0)
    limit = over[positive] / ((p - 1.0) * alpha)
    most = np.minimum(np.floor(limit), rest)
    below = np.where(most >= rest, 1.0, betaincc(most + 1.0, np.maximum(rest - most, 1.0), chance))
    ahead = (limit - rest * chance) * below
    here = rest * chance * other * np.where(most >= rest, 0.0, binom.pmf(most, np.maximum(rest - 1, 0), chance))
    inner = np.maximum(ahead + here + _slack(rest) * (np.abs(ahead) + here), 0.0)
    return float(masses[positive] @ inner) * (p - 1.0) * alpha / silent + missed * (p - 1.0)


def check_delta(delta: Fraction) -> None:
    """Refuse a δ at which no shuffled batch is guaranteed anything.

    >>> check_delta(Fraction(1, 10**30))
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: shuffled reports need a delta of at least 1e-20. Ask for 1e-6, or 1e-12.
    """
    if not 0 < delta < 1:
        raise InvalidParameter("shuffled reports are guaranteed at a delta strictly between 0 and 1, such as 1e-6.")
    if delta < SMALLEST_DELTA:
        raise InvalidParameter("shuffled reports need a delta of at least 1e-20. Ask for 1e-6, or 1e-12.")


def _check(ratio: Fraction, people: int) -> None:
    if ratio <= 1:
        raise InvalidParameter("a report that says something has a ratio above 1.")
    if people < 2:
        raise InvalidParameter("a crowd of shuffled reports has at least two people.")
