"""Intervals: from how many reports support a value, how many people can have it; and around means of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter

EXACT = 5_000
"""Up to so many people both binomial numbers are written out; beyond, the sum is bounded by one of them."""
ALPHA = Fraction(1, 20)

Counts = NDArray[np.int64]
Shares = NDArray[np.float64]


@dataclass(frozen=True)
class Support:
    """Reports of n people, each of which supports a value with chance p if its person has it, else with chance q."""

    people: int
    p: Fraction
    q: Fraction

    def __post_init__(self) -> None:
        if self.people < 1:
            raise InvalidParameter(
                "there is no report yet, so there is no interval. Wait for one, or check the survey."
            )
        if not 0 <= self.q < self.p <= 1:
            raise InvalidParameter("a value must be likelier supported by those who have it than by others.")

    def estimates(self, counts: Counts) -> Shares:
        """Return the unbiased estimates of shares; a rare value can come out below zero.

        >>> Support(100, Fraction(3, 4), Fraction(1, 4)).estimates(np.array([60])).tolist()
        [0.7]
        """
        p, q = float(self.p), float(self.q)
        return np.asarray((counts / self.people - q) / (p - q), np.float64)

    def intervals(self, counts: Counts, alpha: Fraction = ALPHA) -> tuple[Shares, Shares]:
        """Return for each count which shares of these people fit it, both tails at α / 2.

        Up to 5,000 people both tails of Bin(m, p) + Bin(n − m, q), which grow with m, are inverted exactly.  Beyond,
        the tails of the one binomial number with the same mean bound them (Hoeffding 1956, Theorem 4), which is a
        little wider.

        >>> low, high = Support(60, Fraction(1, 2), Fraction(252, 937)).intervals(np.array([20]))
        >>> (low * 60).round(6).tolist(), (high * 60).round(6).tolist()
        ([0.0], [50.0])
        """
        shown, places = np.unique(counts, return_inverse=True)
        if self.people > EXACT and self.people * float(self.q * (1 - self.q)) > 16.0:
            low, high = self.rates(shown, alpha)
        else:
            ends = [self._ends(int(count), float(alpha) / 2) for count in shown]
            low, high = (np.array([end[side] for end in ends]) / self.people for side in (0, 1))
        return low[places], high[places]

    def rates(self, counts: Counts, alpha: Fraction = ALPHA) -> tuple[Shares, Shares]:
        """Return which rates of a population, of which these people are a random sample, fit each count.

        Source: Clopper & Pearson 1934 for the rate of support, mapped to the rate of the value.
        """
        from scipy.special import betaincinv

        n, half = self.people, float(alpha) / 2
        with np.errstate(invalid="ignore"):
            low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), n - counts + 1, half), 0.0)
            high = np.where(counts < n, betaincinv(counts + 1, np.maximum(n - counts, 1), 1 - half), 1.0)
        p, q = float(self.p), float(self.q)
        return np.clip((low - q) / (p - q), 0.0, 1.0), np.clip((high - q) / (p - q), 0.0, 1.0)

    def _ends(self, count: int, half: float) -> tuple[int, int]:
        """Return the least and the greatest m that fit a count; where none does, the end that is nearest."""
        low = _first(lambda m: self._tails(m, count)[1] > half, self.people)
        high = self.people - _first(lambda m: self._tails(self.people - m, count)[0] > half, self.people)
        return (low, high) if low <= high else (min(low, self.people), max(high, 0))

    def _tails(self, having: int, count: int) -> tuple[float, float]:
        """Return the chances of at most, and of at least, so many supports if `having` people have the value."""
        from scipy.special import bdtr, bdtrc

        p, q, rest = float(self.p), float(self.q), self.people - having
        ones = np.arange(having + 1)
        mass = _masses(having, p)
        left = np.where(count - ones < 0, 0.0, bdtr(np.clip(count - ones, 0, rest), rest, q))
        right = np.where(count - ones <= 0, 1.0, bdtrc(np.clip(count - ones - 1, 0, rest), rest, q))
        right = np.where(count - ones > rest, 0.0, right)
        return float(mass @ left), float(mass @ right)


def mean_interval(
    reports: Shares, variance: float, reach: float, alpha: Fraction = ALPHA
) -> tuple[float, float, float]:
    """Return the mean of independent unbiased estimates within ±reach, and an interval for the mean behind them.

    `variance` bounds that of each estimate around its mean: for a population, with the differences between people.
    The width does not depend on the reports: it is the smaller of Bernstein's, by that variance, and Hoeffding's.

    >>> low, mean, high = mean_interval(np.zeros(1000), 1.0, 2.0)
    >>> mean, round(high, 3)
    (0.0, 0.09)
    """
    if not len(reports):
        raise InvalidParameter("there is no report yet, so there is no interval. Wait for one, or check the survey.")
    number, log = len(reports), math.log(2 / float(alpha))
    wide = (reach + 1) / 3
    bernstein = (wide * log + math.sqrt((wide * log) ** 2 + 2 * number * variance * log)) / number
    hoeffding = 2 * reach * math.sqrt(log / (2 * number))
    mean, width = float(np.mean(reports)), min(bernstein, hoeffding)
    return max(-1.0, mean - width), mean, min(1.0, mean + width)


def _first(holds: Callable[[int], bool], most: int) -> int:
    """Return the least number from 0 to `most` at which a condition holds that then goes on to hold, or most + 1."""
    low, high = 0, most + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _masses(number: int, chance: float) -> Shares:
    from scipy.special import gammaln, xlog1py, xlogy

    ones = np.arange(number + 1)
    log = gammaln(number + 1) - gammaln(ones + 1) - gammaln(number - ones + 1)
    return np.asarray(np.exp(log + xlogy(ones, chance) + xlog1py(number - ones, -chance)), np.float64)
