"""What a secret sample saves: a mechanism run on a Poisson sample is more private than on everyone."""

from __future__ import annotations

import math
from enum import StrEnum
from fractions import Fraction

from incrowd.core.rounding import Number, exact, float_down, float_up, not_below
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter

_RELATIVE = 1e-13
_LARGE = 600  # from here on e^ε nears the end of the floats and sampling saves no more than ln(rate)


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
    if guaranteed > _LARGE:
        return float_down(guaranteed), allowed
    value = math.log1p(math.expm1(float(guaranteed)) / float(share))
    return value * (1.0 - _RELATIVE), allowed


def _require(adjacency: Adjacency, sampling: Sampling) -> None:
    if sampling is not Sampling.POISSON:
        raise InvalidParameter(
            "a sample of fixed size ties the rows' coins together, and this amplification does not hold for it: "
            "sample every row by its own coin (poisson)."
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
