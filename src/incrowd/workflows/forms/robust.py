"""Claims about a biased sample, derived again: the laws are written out and every crowd size is tried."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.certificate import Certificate
from incrowd.core.loss import THE_ROWS, Crowd, RobustlySampled
from incrowd.core.unit import Adjacency
from incrowd.workflows.forms.checks import TOLERANCE, steps_of, uncharged, whole
from incrowd.workflows.forms.form import Problem

_LARGEST = 10_000
_TOO_MANY = "the crowds are too many to try one by one; the claim was not derived again"


def check_private(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    """Derive again what a biased sample promises to people who are added, removed or replaced."""
    unit = certificate.guarantee.unit
    if (given["adjacency"], given["max_rows"]) != (str(unit.adjacency), 1) or unit.max_rows != 1:
        return Problem("its adjacency, or its rows of a person, are not those of the guarantee")
    loss = _loss(given)
    unlike = _unlike(loss, certificate) or uncharged(given, certificate)
    replaced = unit.adjacency is Adjacency.REPLACE
    epsilon = float(Fraction(str(given["epsilon"]))) / (2 if replaced else 1)
    return unlike or _beyond(given, loss, epsilon, 1.0 + math.exp(min(epsilon, 700.0)) if replaced else 1.0)


def check_zero_knowledge(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    """Derive again that a simulator with a biased sample of everyone else does nearly as well: the same numbers."""
    loss = _loss(given)
    unlike = _single(certificate) or _unlike(loss, certificate) or uncharged(given, certificate)
    return unlike or _beyond(given, loss, float(Fraction(str(given["epsilon"]))), 1.0)


def check_published(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    """Compute ε and δ of the published theorem again, from their formulas."""
    loss = _loss(given)
    unlike = _single(certificate) or _unlike(loss, certificate)
    if unlike is not None:
        return unlike
    epsilon, delta = published(loss)
    told = (float(Fraction(str(given["epsilon"]))), float(Fraction(str(given["delta"]))))
    near = all(derived <= stated * TOLERANCE for derived, stated in zip((epsilon, delta), told, strict=True))
    return None if near else Problem(f"the theorem gives epsilon {epsilon:.6g} and delta {delta:.6g}")


def biased_delta(loss: RobustlySampled, epsilon: float) -> float | None:
    """Return δ at ε by trying every crowd size, for a regular person and for an irregular one; None if too many.

    Others in a crowd are drawn at `high` at most, and at that or not at all in the worst case.  Irregular people can
    fill a crowd up, so it hides only k − l of the regular ones; for an irregular person there are l − 1 others.

    >>> loss = RobustlySampled(Fraction(1, 10), Fraction(3, 25), 5, Fraction(1), Crowd(50))
    >>> f"{biased_delta(loss, 1.0744816703):.3e}"
    '6.762e-10'
    """
    regular = _worst(loss.inner.k - loss.irregular, loss.high, loss.high, epsilon)
    if not loss.irregular:
        return regular
    other = _worst(loss.inner.k - loss.irregular + 1, loss.high, loss.max_rate, epsilon)
    return None if regular is None or other is None else max(regular, other)


def published(loss: RobustlySampled) -> tuple[float, float]:
    """Return ε and δ of Gehrke, Hay, Lui & Pass 2012, Theorem 2, for a crowd without noise, from the formulas.

    >>> loss = RobustlySampled(Fraction(1, 10), Fraction(3, 25), 5, Fraction(1), Crowd(50))
    >>> [f"{number:.6f}" for number in published(loss)]
    ['0.974482', '0.001170']
    """
    low, high, largest = float(loss.low), float(loss.high), float(loss.max_rate)
    x = high / low * (1 - low) * (2 - low) / (1 - high) ** 2
    g, h = low * x / (low * x + 1 - low), high / (high + x * (1 - high))
    left = loss.inner.k - loss.irregular
    removed = largest / high * math.exp(-left * _divergence(g, high) / g)
    added = largest / (1 - low) * math.exp(-(left - 1) * _divergence(h, low) / h)
    return math.log(largest * x + 1 - largest), min(1.0, max(removed, added))


def _worst(k: int, rate: Fraction, own: Fraction, epsilon: float) -> float | None:
    """Return the largest distance over all numbers n of others: beyond the last one tried it only falls.

    Once every outcome that tells is one that is published, another person in the crowd is post-processing.
    """
    p, mine, factor = float(rate), float(own), math.exp(epsilon)
    apart = 1.0 + (factor - 1.0) / mine
    adding = 1.0 - factor * (1.0 - mine)
    last = math.ceil(k * (p * apart + 1.0 - p) / (p * apart)) + 2
    if adding > 0.0:
        nearer = adding / (factor * mine)
        last = max(last, math.ceil(k * (p * nearer + 1.0 - p) / (p * nearer)) + 2)
    if last > _LARGEST:
        return None
    worst, others = 0.0, np.ones(1)
    for _ in range(last + 1):
        absent, present = _shown(np.append(others, 0.0), k), _shown(np.append(0.0, others), k)
        mixed = mine * present + (1.0 - mine) * absent
        worst = max(worst, _distance(mixed, absent, factor), _distance(absent, mixed, factor))
        others = np.append(others * (1.0 - p), 0.0) + np.append(0.0, others * p)
    return worst


def _shown(law: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Return the law of what is published of a count: everything below k is 0."""
    shown = law.copy()
    shown[0], shown[1:k] = law[:k].sum(), 0.0
    return shown


def _distance(left: NDArray[np.float64], right: NDArray[np.float64], factor: float) -> float:
    return float(np.maximum(0.0, left - factor * right).sum())


def _divergence(x: float, y: float) -> float:
    return x * math.log(x / y) + (1 - x) * math.log((1 - x) / (1 - y))


def _loss(given: Mapping[str, Any]) -> RobustlySampled:
    low, high, largest = (Fraction(str(given[name])) for name in ("low", "high", "max_rate"))
    sample = {"before": THE_ROWS, "here": None}[given["drawn"]]
    return RobustlySampled(low, high, whole(given["irregular"]), largest, Crowd(whole(given["k"])), sample)


def _unlike(loss: RobustlySampled, certificate: Certificate) -> Problem | None:
    """Return that the rates of a claim are not those of the guarantee, or not those of the steps."""
    if certificate.guarantee.loss != loss:
        return Problem("it is not what the guarantee describes")
    if 0 < loss.irregular >= loss.inner.k - 1:
        return Problem("its irregular people leave nobody of the crowd to hide among")
    sample = steps_of(certificate)["sample"]
    told = (*(Fraction(str(sample[name])) for name in ("low", "high", "max_rate", "rate")), sample["irregular"])
    drawn, rate = ("here", loss.high) if loss.sample is None else ("before", Fraction(1))
    if sample["drawn"] != drawn:
        return Problem("the steps say that the sample was drawn elsewhere")
    said = told == (loss.low, loss.high, loss.max_rate, rate, loss.irregular)
    return None if said else Problem("the steps say other rates")


def _single(certificate: Certificate) -> Problem | None:
    unit = certificate.guarantee.unit
    if unit.max_rows > 1 or unit.adjacency is not Adjacency.ADD_REMOVE:
        return Problem("its theorem speaks of units of one row, added or removed, and the guarantee of others")
    return None


def _beyond(given: Mapping[str, Any], loss: RobustlySampled, epsilon: float, times: float) -> Problem | None:
    derived, claimed = biased_delta(loss, epsilon), float(Fraction(str(given["delta"])))
    if derived is None:
        return Problem(_TOO_MANY, undecided=True)
    if derived * times > claimed * TOLERANCE:
        return Problem(f"its delta is {derived * times:.6g} there, and the claim says {claimed:.6g}")
    return None
