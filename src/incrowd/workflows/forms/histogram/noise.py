"""Histograms in which every count has noise: their steps and claims, derived again without the accountants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from incrowd.core.certificate import Certificate, Claim
from incrowd.core.loss import Approximate, Gaussian, Grouped, Laplace, Loss, Pure, Sampled, ZeroConcentrated
from incrowd.core.unit import Adjacency
from incrowd.workflows.forms.checks import TOLERANCE, steps_of, uncharged, whole
from incrowd.workflows.forms.form import Problem

_KINDS = {"laplace": "integer Laplace", "gaussian": "integer Gaussian"}
_MISSED = 0.05
_WIDEST = 100_000


def check_noise(certificate: Certificate) -> Problem | None:
    """Return where the steps of the noise contradict the guarantee, or None."""
    steps = steps_of(certificate)
    noise, hidden = steps["noise"], _hidden(certificate)
    if noise["noise"] not in _KINDS.values():
        return Problem("its noise is not known here", undecided=True)
    if strays(noise, whole(noise["within"])):
        return Problem("more than 5 % of counts lie further from the truth than the steps say")
    loss = certificate.guarantee.loss
    if not hidden and not known_bins(steps["count"]["columns"]):
        return Problem("bins that nobody listed are found in the rows: their threshold must have a delta")
    if not hidden:
        return None if loss == _loss(certificate) else Problem("these steps do not give such a guarantee")
    rows, moves = certificate.guarantee.unit.max_rows, _moves(certificate)
    passed = rows * moves * _tail(noise, whole(steps["threshold"]["least"]) - rows)
    if passed > float(hidden) * TOLERANCE:
        return Problem("the threshold is too low for its delta: it could show a bin that one person is alone in")
    if hidden > certificate.guarantee.delta:
        return Problem("the delta of the threshold is larger than that of the guarantee")
    spent = Fraction(str(certificate.accounting["spent"]["epsilon"]))
    promised = Approximate(spent, certificate.guarantee.delta)
    return None if loss == promised else Problem("these steps do not give such a guarantee")


def check_claim(claim: Claim, certificate: Certificate) -> Problem | None:
    """Return what is wrong with a claim, or None."""
    given, unit = claim.parameters, certificate.guarantee.unit
    if claim.kind != kind_of(certificate):
        return Problem(f"claims of kind {claim.kind!r} are not known here", undecided=True)
    if whole(given["max_rows"]) != unit.max_rows or given["adjacency"] != str(unit.adjacency):
        return Problem("its rows of a person, or its adjacency, are not those of the guarantee's unit")
    steps = steps_of(certificate)
    stated = (_KINDS[str(given["noise"])], Fraction(str(given["scale"])), Fraction(str(given.get("rate", 1))))
    if stated != (steps["noise"]["noise"], Fraction(str(steps["noise"]["scale"])), _rate(steps)):
        return Problem("its noise, scale or rate are not those of the steps")
    unlike = uncharged(given, certificate, at_delta="delta" in given or certificate.guarantee.delta > 0)
    return unlike or check_noise(certificate) or _beyond(given, certificate)


def known_bins(columns: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the labels of all these columns are declared: listed, or told by their number and hash."""
    return all(isinstance(each.get("labels"), list) or isinstance(each.get("number"), int) for each in columns)


def kind_of(certificate: Certificate) -> str:
    """Return the kind of claim that the guarantee carries."""
    return "approximate differential privacy" if certificate.guarantee.delta else "pure differential privacy"


def _beyond(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    """Return that a stated ε, or a δ at it, is below the derived one."""
    epsilon, scale = float(Fraction(str(given["epsilon"]))), Fraction(str(given["scale"]))
    delta = float(Fraction(str(given.get("delta", 0))) - _hidden(certificate))
    rows, moves, rate = certificate.guarantee.unit.max_rows, _moves(certificate), _rate(steps_of(certificate))
    if given["noise"] == "laplace":
        single = math.log1p(float(rate) * math.expm1(min(float(1 / scale), 700.0))) if rate < 1 else float(1 / scale)
        least = rows * moves * single
        return Problem(f"its epsilon is {least:.6g} at least") if least > epsilon * TOLERANCE else None
    if scale > _WIDEST:
        return Problem("the noise is too wide to write out its law; the claim was not derived again", undecided=True)
    if rate < 1 or rows * moves == 1:
        found = _sampled_delta(float(scale), float(rate), epsilon / rows)
        found *= sum(math.exp(step * epsilon / rows) for step in range(rows))
    else:
        found = concentrated_delta(rows**2 * moves / (2.0 * float(scale) ** 2), epsilon)
    return Problem(f"at epsilon {epsilon:.6g} its delta is {found:.6g} at least") if found > delta * TOLERANCE else None


def _sampled_delta(scale: float, rate: float, epsilon: float) -> float:
    """Return δ of Gaussian noise on one count that one row, in the sample with chance `rate`, moves by 1."""
    return rate * gaussian_delta(scale, math.log1p(math.expm1(min(epsilon, 700.0)) / rate))


def gaussian_delta(scale: float, epsilon: float) -> float:
    """Return δ of integer Gaussian noise on a count that moves by 1, from its law written out.

    >>> f"{gaussian_delta(5.0, 1.0):.4e}"
    '1.8293e-08'
    """
    reach = math.ceil(40.0 * scale) + 2
    outcomes = np.arange(-reach, reach + 1, dtype=np.float64)
    law = np.exp(-(outcomes**2) / (2.0 * scale * scale))
    moved = np.exp(-((outcomes - 1.0) ** 2) / (2.0 * scale * scale))
    over = moved - math.exp(min(epsilon, 700.0)) * law
    return float(np.sum(np.maximum(0.0, over)) / np.sum(law))


def concentrated_delta(rho: float, epsilon: float) -> float:
    """Return a δ of ρ-zero-concentrated privacy at ε: the least over orders of Rényi divergence.

    Source: Canonne, Kamath & Steinke 2020, Proposition 12, tried on a grid that is then refined.

    >>> concentrated_delta(0.1, 3.0) < 1e-4
    True
    """
    low, high = 1e-6, 1e9
    for _ in range(3):
        above = np.geomspace(low, high, 20_001)
        logs = (
            above * ((1.0 + above) * rho - epsilon) - np.log(above) + (1.0 + above) * (np.log(above) - np.log1p(above))
        )
        best = int(np.argmin(logs))
        low, high = float(above[max(0, best - 1)]), float(above[min(len(above) - 1, best + 1)])
    return math.exp(min(0.0, float(logs[best])))


def strays(noise: Mapping[str, Any], within: int) -> bool:
    """Whether more than 5 % of noisy counts lie further from the truth than `within`."""
    return _tail(noise, within + 1) * 2.0 > _MISSED * TOLERANCE


def _tail(noise: Mapping[str, Any], least: int) -> float:
    """Return P[z ≥ least], for Gaussian noise a bound on it."""
    scale = float(Fraction(str(noise["scale"])))
    if noise["noise"] == "integer Laplace":
        return math.exp(-least / scale) / (1.0 + math.exp(-1.0 / scale)) if least > 0 else 1.0
    if least <= 0:
        return 1.0
    reach = np.arange(least, least + math.ceil(40.0 * scale) + 2, dtype=np.float64)
    around = np.arange(-math.ceil(40.0 * scale) - 2, math.ceil(40.0 * scale) + 3, dtype=np.float64)
    spread = 2.0 * scale * scale
    return float(np.sum(np.exp(-(reach**2) / spread)) / np.sum(np.exp(-(around**2) / spread)))


def _loss(certificate: Certificate) -> Loss:
    """Return what such noise on the counts of all bins costs the guarantee's unit."""
    steps, rows, moves = steps_of(certificate), certificate.guarantee.unit.max_rows, _moves(certificate)
    scale, rate = Fraction(str(steps["noise"]["scale"])), _rate(steps)
    laplace = steps["noise"]["noise"] == "integer Laplace"
    single: Loss = Laplace(scale) if laplace else Gaussian(scale)
    if rate < 1:
        row = Sampled(rate, single)
        return Grouped(rows, row) if rows > 1 else row
    if rows * moves == 1:
        return single
    return Pure(rows * moves / scale) if laplace else ZeroConcentrated(rows**2 * moves / (2 * scale**2))


def _hidden(certificate: Certificate) -> Fraction:
    """Return the δ of a threshold that hides bins nobody listed; a threshold that merely saves space has none."""
    return Fraction(str(steps_of(certificate).get("threshold", {}).get("delta", 0)))


def _rate(steps: Mapping[str, Mapping[str, Any]]) -> Fraction:
    return Fraction(str(steps["sample"]["rate"]))


def _moves(certificate: Certificate) -> int:
    return 1 if certificate.guarantee.unit.adjacency is Adjacency.ADD_REMOVE else 2
