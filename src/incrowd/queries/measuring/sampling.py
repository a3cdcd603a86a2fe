"""Sampling: answers for all rows from a secret sample of them."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from incrowd.accounting import accountant
from incrowd.core.loss import Pure, Sampled
from incrowd.errors import Infeasible
from incrowd.queries.measuring.ratios import Floats, Interval

_DIGITS = 10**12


def inner_epsilon(epsilon: Fraction, rate: Fraction) -> Fraction:
    """Return the ε that may be spent on a secret sample: ln(1 + (e^ε − 1) / rate), to twelve digits, never too much.

    Source: amplification by Poisson sampling; what is returned was charged by the accountant.

    >>> inner_epsilon(Fraction(1), Fraction(1, 10)) > Fraction(29, 10)
    True
    """
    wanted = math.log1p(math.expm1(float(epsilon)) / float(rate)) if epsilon < 500 else float(epsilon)
    for backward in (0, 1, 10, 100, 10**4, 10**6, 10**8):
        tried = Fraction(math.floor(wanted * _DIGITS) - backward, _DIGITS)
        if tried > 0 and Fraction(accountant.charge_of(Sampled(rate, Pure(tried)), 0).epsilon) <= epsilon:
            return tried
    raise Infeasible("this epsilon cannot be spent on a secret sample: leave the rate out.")


def widened(interval: Interval, rate: Fraction, squares: Floats, miss: float) -> Interval:
    """Return the interval of a total over all rows from that of its sample.

    The total over the sample, divided by the rate, has the variance Σ x² · (1 − rate) / rate over all rows; `squares`
    is an estimate of Σ x² over the sample, from above.  Its error is taken for normal, and squared half-widths add up:
    an approximation, good from some ten rows of the sample on.
    """
    times = 1.0 / float(rate)
    middle, half = (interval.low + interval.high) / 2.0 * times, (interval.high - interval.low) / 2.0 * times
    spread = np.sqrt(np.maximum(squares, 1.0) * (1.0 - float(rate))) * times
    reach = np.hypot(half, NormalDist().inv_cdf(1.0 - miss / 2.0) * spread)
    return Interval(middle - reach, middle + reach)
