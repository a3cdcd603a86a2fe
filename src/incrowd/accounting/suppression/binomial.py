"""Binomial masses and tails in log space, right from 1 down to far below the smallest float."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# ln n! − Stirling's formula for n = 0 … 15, to the last digit of a float (Loader 2000)
_SMALL_STIRLING = (
    0.0,
    0.08106146679532726,
    0.0413406959554093,
    0.02767792568499834,
    0.020790672103765093,
    0.016644691189821193,
    0.013876128823070748,
    0.01189670994589177,
    0.010411265261972096,
    0.009255462182712733,
    0.00833056343336287,
    0.007573675487951841,
    0.00694284010720953,
    0.006408994188004207,
    0.0059513701127588475,
    0.005554733551962801,
)
_NEGLIGIBLE = 1e-19  # a term this small beside the sum ends a series
_LOG_NEGLIGIBLE = -math.log(_NEGLIGIBLE)
_FEW_TERMS = 40  # up to here a plain loop is faster than an array
_BLOCK = 1 << 16  # terms in an array at a time: half a megabyte
_UNSEEN = 1e-14  # a mass that no forecast shows


def log_mass(j: int, n: int, p: float, q: float) -> float:
    """Return ln P[Bin(n, p) = j].

    Source: Loader 2000, "Fast and accurate computation of binomial probabilities" (saddle-point form).
    Requires q = 1 - p, passed on its own so that neither end loses digits.

    >>> math.isclose(log_mass(2, 4, 0.5, 0.5), math.log(6 / 16))
    True
    >>> log_mass(5, 4, 0.5, 0.5)
    -inf
    """
    if j < 0 or j > n:
        return -math.inf
    if p <= 0.0 or q <= 0.0:
        return 0.0 if j == (n if q <= 0.0 else 0) else -math.inf
    if j == 0:
        return n * _log_of(q, p)
    if j == n:
        return n * _log_of(p, q)
    rest = n - j
    exponent = (_stirling_error(n) - _stirling_error(j)) - _stirling_error(rest)
    exponent -= _deviance(j, n * p) + _deviance(rest, n * q)
    return exponent - _HALF_LOG_TWO_PI + 0.5 * math.log(n / (j * rest))


def log_upper_tail(m: int, n: int, p: float, q: float) -> float:
    """Return ln P[Bin(n, p) >= m]: 0.0 if certain, -inf if impossible.

    The light side is the mass at m times a series of positive terms; the heavy side is one minus the
    other, light, side, which is then at most one half. Nothing cancels. Requires q = 1 - p.

    >>> math.isclose(log_upper_tail(3, 4, 0.5, 0.5), math.log(5 / 16))
    True
    >>> log_upper_tail(1000, 2502, 0.01, 0.99) < -2900
    True
    """
    if m <= 0:
        return 0.0
    if m > n or p <= 0.0:
        return -math.inf
    if q <= 0.0:
        return 0.0
    if m > n * p:
        return log_mass(m, n, p, q) + math.log(tail_sums(m, n, p / q)[0])
    return math.log1p(-math.exp(log_lower_tail(m - 1, n, p, q)))


def log_lower_tail(m: int, n: int, p: float, q: float) -> float:
    """Return ln P[Bin(n, p) <= m]: 0.0 if certain, -inf if impossible; the mirror of the upper tail.

    >>> math.isclose(log_lower_tail(1, 4, 0.5, 0.5), math.log(5 / 16))
    True
    """
    return log_upper_tail(n - m, n, q, p)


def upper_tails(m: int, n: int, chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P[Bin(n, p) >= m] for many p at once, with an error below 1e-9: for forecasts, not for guarantees.

    The masses at m follow from the one at p = m / n, and the light side is summed for those that are not negligible.

    >>> upper_tails(3, 4, np.array([0.0, 0.5, 1.0])).round(9).tolist()
    [0.0, 0.3125, 1.0]
    """
    if m <= 0 or m > n:
        return np.full(len(chances), float(m <= 0))
    tails = (n * chances >= m).astype(np.float64)
    inside = np.flatnonzero((chances > 0.0) & (chances < 1.0)) if m < n else np.zeros(0, np.intp)
    p, top = chances[inside], m / n
    logs = log_mass(m, n, top, (n - m) / n) + m * np.log(p / top) + (n - m) * np.log1p((top - p) / (1.0 - top))
    some = logs > math.log(_UNSEEN)
    inside, p, mass = inside[some], p[some], np.exp(logs[some])
    upper = n * p < m
    odds = np.where(upper, p / (1.0 - p), (1.0 - p) / p)
    starts = np.where(upper, m, n - m)  # the lower side is the upper side of the mirror, without its first mass
    term, total = mass, np.where(upper, mass, 0.0)
    for step in range(1, n + 1):
        term = term * (odds * np.maximum(n - starts - step + 1, 0) / (starts + step))
        total = total + term
        if not np.any(term > _UNSEEN):
            break
    tails[inside] = np.where(upper, total, 1.0 - total)
    return tails if m < n else chances**n


def tail_sums(m: int, n: int, odds: float) -> tuple[float, float]:
    """Return P[X >= m] / P[X = m] and E[max(0, X - m)] / P[X = m] of a binomial X with odds p / (1 - p).

    Both are series of positive terms, each term from the one before by the ratio of neighboring masses.
    Requires 0 <= m <= n. For m at or above the mean the terms fall from the start.

    >>> tail_sums(1, 2, 1.0)
    (1.5, 0.5)
    """
    terms = _terms_needed(m, n, odds)
    if terms > _FEW_TERMS:
        return _long_tail_sums(m, n, odds, terms)
    left = n - m
    term = total = 1.0
    excess = 0.0
    for i in range(1, left + 1):
        term *= (left - i + 1) * odds / (m + i)
        total += term
        excess += i * term
        if term < _NEGLIGIBLE * total:
            break
    return total, excess


def log_lower_tail_bound(m: int, n: int, p: float, q: float) -> float:
    """Return an upper bound of ln P[Bin(n, p) <= m] at the price of two logarithms.

    Source: Chernoff 1952 and Hoeffding 1963: P[Bin(n, p) <= m] <= exp(-n KL(m / n || p)) for m <= n p.

    >>> log_lower_tail(10, 200, 0.1, 0.9) < log_lower_tail_bound(10, 200, 0.1, 0.9) < -3
    True
    """
    if m < 0:
        return -math.inf
    if m >= n * p:
        return 0.0
    return -(_deviance(m, n * p) + _deviance(n - m, n * q))


def _terms_needed(m: int, n: int, odds: float) -> int:
    # The k-th term is below r^k, for the first ratio r, and below exp(-k^2 / (2 m + 2)) if r < 1.
    ratio = (n - m) * odds / (m + 1)
    if ratio >= 1.0:
        return n - m
    geometric = _LOG_NEGLIGIBLE / -math.log(ratio) if ratio > 0.0 else 0.0
    return min(n - m, math.ceil(min(geometric, math.sqrt(2.0 * _LOG_NEGLIGIBLE * (m + 1.0)))))


def _long_tail_sums(m: int, n: int, odds: float, terms: int) -> tuple[float, float]:
    total, excess, last = 1.0, 0.0, 1.0
    block = min(terms + 1, _BLOCK)
    for start in range(0, n - m, block):
        steps = np.arange(start + 1.0, min(start + block, n - m) + 1.0)
        ratios = (n - m + 1.0) - steps
        ratios *= odds
        ratios /= steps + m
        ratios[0] *= last
        masses = np.multiply.accumulate(ratios)
        total += float(np.add.reduce(masses))
        excess += float(masses.dot(steps))
        last = float(masses[-1])
        if last < _NEGLIGIBLE * total:
            break
    return total, excess


def _log_of(value: float, complement: float) -> float:
    return math.log(value) if value < 0.5 else math.log1p(-complement)


def _stirling_error(n: int) -> float:
    # ln n! - (n ln n - n + ln sqrt(2 pi n))
    if n < len(_SMALL_STIRLING):
        return _SMALL_STIRLING[n]
    square = 1.0 / (n * n)
    inner = 1.0 / 1260 - square * (1.0 / 1680 - square * (1.0 / 1188 - square * (691.0 / 360360)))
    return (1.0 / 12 - square * (1.0 / 360 - square * inner)) / n


def _deviance(x: int, mean: float) -> float:
    # x ln(x / mean) + mean - x >= 0; its error is that of the product `mean`, times |mean - x|.
    if x == 0:
        return mean
    relative = (mean - x) / x
    logarithm = math.log1p(relative) if relative > -0.5 else math.log(mean / x)
    return x * (relative - logarithm)
